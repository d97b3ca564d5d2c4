/* Enters another domain with a library of its own. */
#include "attack.h"

int main(void) {
    char here[4096], preload[5000], audit[5000], path[5000];
    if (!getcwd(here, sizeof here)) return 3;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/library", here);
    snprintf(audit, sizeof audit, "LD_AUDIT=%s/library", here);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", here);
    char *words[] = {"vault", NULL}, *environment[] = {preload, audit, path, NULL};
    execve("./vault", words, environment);
    return 3;
}

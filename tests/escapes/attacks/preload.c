/* Enters another domain, by the program that it is given, with a library of its own. */
#include "attack.h"

int main(int argc, char **argv) {
    char here[4096], preload[5000], audit[5000], path[5000];
    if (!getcwd(here, sizeof here)) return 3;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/library", here);
    snprintf(audit, sizeof audit, "LD_AUDIT=%s/library", here);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", here);
    char *words[] = {argc > 1 ? argv[1] : "./vault", NULL}, *environment[] = {preload, audit, path, NULL};
    execve(words[0], words, environment);
    return 3;
}

/* Has a process of another domain die, and looks for the memory that it leaves. */
#include "attack.h"
#include <dirent.h>

int main(void) {
    int status;
    char *words[] = {"vault", "die", NULL};
    pid_t child = fork();
    if (child == 0) {
        execve("./vault", words, words + 2);
        _exit(3);
    }
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 3;
    if (WCOREDUMP(status)) escaped("its memory was dumped");
    DIR *here = opendir(".");
    for (struct dirent *entry; (entry = readdir(here));)
        if (!strncmp(entry->d_name, "core.", 5) || !strcmp(entry->d_name, "core")) escaped(entry->d_name);
    return 0;
}

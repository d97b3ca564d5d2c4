/* Has another domain meet links to what only that may change. */
#include "attack.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
    char file[4096], missing[4096], service[4096];
    if (argc < 3) return 3;
    snprintf(file, sizeof file, "%s/file", argv[1]);
    snprintf(missing, sizeof missing, "%s/made", argv[1]);
    snprintf(service, sizeof service, "%s/service", argv[1]);
    const char *names[] = {"file", "second", "directory", "dangling", "stolen", "by_link"};
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) unlink(names[n]);
    if (symlink(file, "file") || symlink("file", "second") || symlink(argv[1], "directory") || symlink(missing, "dangling") ||
        symlink(service, "by_link"))
        return 3;
    if (!strcmp(argv[2], "reserved")) {
        char name[4096];
        snprintf(name, sizeof name, "%s.json", argv[1]);
        unlink(name);
        if (symlink(file, name)) return 3;
    }
    int own = open("own", O_WRONLY | O_CREAT, 0600);
    if (own < 0 || close(own)) return 3;
    pid_t child = fork();
    if (child == 0) {
        execv("./deputy", (char *[]){"deputy", argv[1], argv[2], NULL});
        _exit(3);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 3;
    return WEXITSTATUS(status);
}

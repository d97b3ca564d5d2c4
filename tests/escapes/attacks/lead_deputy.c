/* Has another domain meet links to what only that may change; with "brought" or "looked", those
   that are there. */
#include "attack.h"
#include <sys/wait.h>

static int make_links(const char *directory, int is_reserved) {
    char file[4096], missing[4096], service[4096];
    snprintf(file, sizeof file, "%s/file", directory);
    snprintf(missing, sizeof missing, "%s/made", directory);
    snprintf(service, sizeof service, "%s/service", directory);
    const char *names[] = {"file", "second", "directory", "dangling", "stolen", "by_link"};
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) unlink(names[n]);
    if (symlink(file, "file") || symlink("file", "second") || symlink(directory, "directory") || symlink(missing, "dangling") ||
        symlink(service, "by_link"))
        return 3;
    if (is_reserved) {
        char name[4096];
        snprintf(name, sizeof name, "%s.json", directory);
        unlink(name);
        if (symlink(file, name)) return 3;
    }
    int own = open("own", O_WRONLY | O_CREAT, 0600);
    return own < 0 || close(own) ? 3 : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 3;
    int are_there = !strcmp(argv[2], "brought") || !strcmp(argv[2], "looked");
    if (!are_there && make_links(argv[1], !strcmp(argv[2], "reserved"))) return 3;
    pid_t child = fork();
    if (child == 0) {
        execv("./deputy", (char *[]){"deputy", argv[1], argv[2], NULL});
        _exit(3);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 3;
    return WEXITSTATUS(status);
}

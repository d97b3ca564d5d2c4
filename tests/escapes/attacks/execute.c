/* Executes a file that can be read but not executed, by every way. Argument: its path. */
#include "attack.h"

static void try(const char *way, int fd, const char *path, int flags) {
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"x", NULL};
        if (fd == AT_FDCWD) execve(path, words, words + 1);
        syscall(SYS_execveat, fd, path, words, words + 1, flags);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) escaped(way);
    fprintf(stderr, "held: %s\n", way);
}

int main(int argc, char **argv) {
    char name[64], script[4096];
    int fd = open(argv[1], O_RDONLY), handle = open(argv[1], O_PATH);
    if (fd < 0) return 3;
    try("by path", AT_FDCWD, argv[1], 0);
    try("by descriptor", fd, "", AT_EMPTY_PATH);
    try("by handle", handle, "", AT_EMPTY_PATH);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    try("by link of /proc", AT_FDCWD, name, 0);
    snprintf(name, sizeof name, "/dev/fd/%d", handle);
    try("by /dev/fd", AT_FDCWD, name, 0);
    unlink("link");
    if (symlink(argv[1], "link")) return 3;
    try("by symbolic link", AT_FDCWD, "link", 0);
    int out = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    int length = snprintf(script, sizeof script, "#!%s\n", argv[1]);
    if (write(out, script, length) != length) return 3;
    close(out);
    try("as interpreter", AT_FDCWD, "./script", 0);
    return argc != 2;
}

/* Executes memory of its own, which policy lets nobody execute: by its name, as what a script is
 * run by, and by a path
   that is exchanged while the exec is decided. Argument: `run`, when it is what has been executed. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/xattr.h>

static char *path;
static char wanted[64];
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        strcpy(path, "./plain");
        strcpy(path, wanted);
    }
    return none;
}

/* Copies this program. */
static void copy(int out) {
    static char program[1 << 20];
    int in = open("/proc/self/exe", O_RDONLY);
    ssize_t length = read(in, program, sizeof program);
    close(in);
    if (write(out, program, length) != length) _exit(3);
}

static void try(const char *way, const char *file) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {(char *)file, "run", NULL};
        execve(file, words, words + 2);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child) _exit(3);
    if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) escaped(way);
}

static int memory(unsigned flags) {
    int fd = memfd_create("program", flags);
    if (fd < 0) return fd;
    copy(fd);
    fchmod(fd, 0755);
    /* An access control list that lets its owner execute it. */
    static const unsigned list[] = {2, 7 << 16 | 1, -1, 4 << 16 | 4, -1, 4 << 16 | 32, -1};
    fsetxattr(fd, "system.posix_acl_access", list, sizeof list, 0);
    return fd;
}

int main(int argc, char **argv) {
    char exe[64] = "", script[128];
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) return 3;
    if (strncmp(exe, "/memfd:", 7) == 0) _exit(ESCAPED);
    if (argc == 2) _exit(8);
    /* The last flag says that it shall be executable, also where nothing is without saying so. */
    unsigned flags[] = {0, 2 /* MFD_ALLOW_SEALING */, 0x10 /* MFD_EXEC */};
    for (int n = 0; n < 3; n++) {
        int fd = memory(flags[n]);
        if (fd < 0) continue;
        /* An open descriptor to write would keep it from being executed. */
        snprintf(wanted, sizeof wanted, "/proc/self/fd/%d", fd);
        int again = open(wanted, O_RDONLY);
        close(fd);
        snprintf(wanted, sizeof wanted, "/proc/self/fd/%d", again);
        try("by its name", wanted);
        unlink("script");
        int out = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
        int length = snprintf(script, sizeof script, "#!%s\n", wanted);
        if (write(out, script, length) != length) return 3;
        close(out);
        try("for a script", "./script");
        unlink("plain");
        out = open("plain", O_WRONLY | O_CREAT | O_TRUNC, 0755);
        copy(out);
        close(out);
        path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        strcpy(path, "./plain");
        pthread_t thread;
        over = 0;
        pthread_create(&thread, NULL, swap, NULL);
        for (double end = now() + 0.7; now() < end;) try("by an exchanged path", path);
        over = 1;
        pthread_join(thread, NULL);
        close(again);
    }
    return 0;
}

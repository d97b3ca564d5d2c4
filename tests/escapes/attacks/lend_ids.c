/* Makes programs that run with their owner's IDs for anybody who executes them. */
#include "attack.h"
#include <linux/openat2.h>

static void look(const char *name) {
    struct stat st;
    if (stat(name, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID)) escaped(name);
}

/* What is refused is no attack that was repelled: these calls go on without the bits. */
static void must_work(const char *what, long result) {
    if (result < 0) {
        perror(what);
        exit(2);
    }
}

int main(void) {
    umask(0);
    /* What an attack before this one has left. */
    for (char name[] = "A"; *name <= 'F'; ++*name) unlink(name);
    int fd = open("A", O_WRONLY | O_CREAT, 0755);
    chmod("A", 04755), look("A");
    fchmod(fd, 02755), look("A");
    fchmodat(AT_FDCWD, "A", 06755, 0), look("A");
    syscall(452, fd, "", 06755, AT_EMPTY_PATH), look("A");
    must_work("open", open("B", O_WRONLY | O_CREAT, 04755));
    must_work("creat", creat("C", 04755));
    must_work("mknod", mknod("D", S_IFREG | 04755, 0));
    struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 06755};
    must_work("openat2", syscall(SYS_openat2, AT_FDCWD, "E", &how, sizeof how));
    fd = open(".", O_WRONLY | O_TMPFILE, 06755);
    must_work("open a file without a name", fd);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    must_work("linkat", linkat(AT_FDCWD, path, AT_FDCWD, "F", AT_SYMLINK_FOLLOW));
    for (char name[] = "A"; *name <= 'F'; ++*name) look(name);
    return 0;
}

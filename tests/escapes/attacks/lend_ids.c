/* Makes programs that run with their owner's IDs for anybody who executes them. */
#include "attack.h"
#include <linux/openat2.h>

static void look(const char *name) {
    struct stat st;
    if (stat(name, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID)) escaped(name);
}

int main(void) {
    umask(0);
    int fd = open("a", O_WRONLY | O_CREAT, 0755);
    /* These go on without the bits. */
    chmod("a", 04755), look("a");
    fchmod(fd, 02755), look("a");
    fchmodat(AT_FDCWD, "a", 06755, 0), look("a");
    syscall(452, fd, "", 06755, AT_EMPTY_PATH), look("a");
    must_fail("open", open("b", O_WRONLY | O_CREAT, 04755));
    must_fail("creat", creat("c", 04755));
    must_fail("mknod", mknod("d", S_IFREG | 04755, 0));
    struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 04755};
    must_fail("openat2", syscall(SYS_openat2, AT_FDCWD, "e", &how, sizeof how));
    for (char name[] = "a"; *name <= 'e'; ++*name) look(name);
    return 0;
}

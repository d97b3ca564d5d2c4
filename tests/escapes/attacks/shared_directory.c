/* Reads, writes, lists, links and removes shared memory of a program outside, and uses its own.
 * Argument: the name of a file in /dev/shm. */
#include "attack.h"
#include <dirent.h>
#include <sys/mman.h>

static void must_work(const char *what, long answer) {
    if (answer >= 0) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

int main(int argc, char **argv) {
    char theirs[256], other[256], own[256];
    snprintf(theirs, sizeof theirs, "/dev/shm/%s", argv[1]);
    snprintf(other, sizeof other, "/dev/shm/%s-other", argv[1]);
    snprintf(own, sizeof own, "/%s-own-%d", argv[1], getpid());
    must_not_read("reading", open(theirs, O_RDONLY));
    must_not_read("reading and writing", open(theirs, O_RDWR));
    must_fail("writing", open(theirs, O_WRONLY));
    must_fail("cutting", truncate(theirs, 0));
    must_fail("linking", link(theirs, other));
    must_fail("renaming", rename(theirs, other));
    must_fail("removing", unlink(theirs));
    /* Where the directory is its own, the name is free. */
    int made = open(theirs, O_RDWR | O_CREAT, 0600);
    must_not_read("making what exists", made);
    /* What it has made is its own, by any name. */
    int fd = shm_open(own, O_RDWR | O_CREAT | O_EXCL, 0600);
    must_work("making", fd);
    must_work("growing", ftruncate(fd, 4096));
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must_work("mapping", at == MAP_FAILED ? -1 : 0);
    strcpy(at, "own");
    int again = shm_open(own, O_RDWR, 0);
    must_work("opening again", again);
    char text[4] = "";
    must_work("reading", read(again, text, 4));
    if (strcmp(text, "own")) return 1;
    char from[300];
    snprintf(from, sizeof from, "/dev/shm%s", own);
    if (made < 0) must_fail("putting it in the place of theirs", rename(from, theirs));
    must_work("giving it another name", rename(from, other));
    must_work("removing", unlink(other));
    return argc != 2;
}

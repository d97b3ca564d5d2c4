/* Reads, writes, lists, links and removes what a program outside has in a directory that it shares
 * with the run, puts something into its directory, and uses its own.
 * Arguments: the directory, the name of a file in it, and of a directory with a file `file`. */
#include "attack.h"
#include <dirent.h>
#include <sys/mman.h>

static void must_work(const char *what, long answer) {
    if (answer >= 0) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

static char *path(const char *format, const char *one, const char *two) {
    char *made = malloc(4096);
    snprintf(made, 4096, format, one, two);
    return made;
}

static long make(const char *at) { return open(at, O_WRONLY | O_CREAT, 0600); }

/* Where it has a view, the directory is its own: what it makes there reaches nobody. */
static void enter(const char *directory, const char *own) {
    const char *file = path("%s/%s", directory, "file"), *new = path("%s/%s", directory, "new");
    must_fail("reading in a directory", open(file, O_RDONLY));
    must_fail("removing in a directory", unlink(file));
    must_fail("making a file in a directory", make(new));
    must_fail("making a directory in a directory", mkdir(new, 0700));
    must_fail("making a link in a directory", symlink("/", new));
    must_fail("making a FIFO in a directory", mkfifo(new, 0600));
    must_fail("linking into a directory", link(own, new));
    must_fail("moving into a directory", rename(own, new));
    must_fail("writing without a name", open(directory, O_TMPFILE | O_RDWR, 0600));
    must_fail("moving a directory", rename(directory, path("%s%s", directory, "-moved")));
}

int main(int argc, char **argv) {
    const char *theirs = path("%s/%s", argv[1], argv[2]), *directory = path("%s/%s", argv[1], argv[3]);
    const char *other = path("%s%s", theirs, "-other"), *from = path("%s%s", theirs, "-own");
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
    int fd = open(from, O_RDWR | O_CREAT | O_EXCL, 0600);
    must_work("making", fd);
    must_work("growing", ftruncate(fd, 4096));
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must_work("mapping", at == MAP_FAILED ? -1 : 0);
    strcpy(at, "own");
    int again = open(from, O_RDWR);
    must_work("opening again", again);
    char text[4] = "";
    must_work("reading", read(again, text, 4));
    if (strcmp(text, "own")) return 1;
    enter(directory, from);
    if (made < 0) must_fail("putting it in the place of theirs", rename(from, theirs));
    /* So are directories, and what is in them. */
    const char *own = path("%s%s", from, ".d"), *inner = path("%s/%s", own, "d");
    must_work("making a directory", mkdir(own, 0700));
    must_work("making a directory in it", mkdir(inner, 0700));
    must_work("making a file in it", make(path("%s/%s", inner, "f")));
    must_work("moving into it", rename(from, path("%s/%s", own, "g")));
    must_work("moving out of it", rename(path("%s/%s", own, "g"), from));
    must_work("removing in it", unlink(path("%s/%s", inner, "f")));
    must_work("removing it", rmdir(inner) | rmdir(own));
    must_work("giving it another name", rename(from, other));
    must_work("removing", unlink(other));
    return argc != 4;
}

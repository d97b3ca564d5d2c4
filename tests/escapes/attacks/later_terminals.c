/* Opens terminals of the same user that somebody outside has made since the run began. Says which
 * numbers of terminals it had and has given back; gets paths of terminals, one a line. With `fast`,
 * none is opened for reading alone. */
#include "attack.h"
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

enum { OWN = 8 };
static int is_fast;

/* A terminal of its own works. */
static int own_terminal(int *place) {
    char text[8] = "", name[64];
    int number, master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master) || ioctl(master, TIOCGPTN, &number)) _exit(3);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    *place = open(name, O_PATH);
    int slave = open(name, O_RDWR | O_NOCTTY);
    if (slave < 0 || *place < 0) _exit(4);
    if (write(slave, "hello", 5) != 5 || read(master, text, 5) != 5 || strcmp(text, "hello")) _exit(5);
    close(slave);
    snprintf(name, sizeof name, "/proc/self/fd/%d", *place);
    slave = open(name, O_RDWR | O_NOCTTY);
    if (slave < 0) _exit(6);
    close(slave);
    if (fork() == 0) {
        /* Also as the terminal of a session. */
        setsid();
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        _exit(ioctl(open(name, O_RDWR), TIOCSCTTY, 0) != 0 || open("/dev/tty", O_RDWR) < 0);
    }
    int status;
    if (wait(&status) < 0 || status != 0) _exit(7);
    return master;
}

static void try_all(const char *path, int flags, const char *how) {
    char way[128], name[64];
    int directory = open("/dev/pts", O_RDONLY | O_DIRECTORY), place = open(path, O_PATH);
    struct open_how limits = {.flags = flags};
    snprintf(way, sizeof way, "%s, %s", path, how);
    must_fail(way, open(path, flags));
    must_fail(way, openat(directory, path + strlen("/dev/pts/"), flags));
    must_fail(way, syscall(SYS_openat2, AT_FDCWD, path, &limits, sizeof limits));
    unlink("link");
    if (symlink(path, "link") != 0) _exit(8);
    must_fail(way, open("link", flags));
    snprintf(name, sizeof name, "/proc/self/fd/%d", place);
    must_fail(way, open(name, flags));
    snprintf(name, sizeof name, "/dev/fd/%d", place);
    must_fail(way, open(name, flags));
    snprintf(name, sizeof name, "/proc/self/root%s", path);
    must_fail(way, open(name, flags));
    if (fork() == 0) {
        setsid();
        int taken = open(path, flags & ~O_NOCTTY);
        must_fail(way, taken);
        must_fail("/dev/tty", open("/dev/tty", flags));
        _exit(0);
    }
    int status;
    if (wait(&status) < 0) _exit(9);
    if (status != 0) escaped(way);
    close(directory);
    close(place);
}

static void attack(const char *path) {
    struct stat seen;
    int both = O_NOCTTY | O_NONBLOCK;
    if (stat(path, &seen) != 0 || !S_ISCHR(seen.st_mode)) _exit(10);
    try_all(path, both | O_RDWR, "to read and write");
    try_all(path, both | O_WRONLY, "to write");
    if (!is_fast) try_all(path, both | O_RDONLY, "to read");
    must_fail("its mode", chmod(path, 0622));
    must_fail("its times", utimensat(AT_FDCWD, path, NULL, 0));
    must_fail("a watch", inotify_add_watch(inotify_init1(IN_CLOEXEC), path, IN_ALL_EVENTS));
}

int main(int argc, char **argv) {
    int masters[OWN], places[OWN], numbers[OWN];
    char path[64], name[64];
    is_fast = argc > 1;
    for (int n = 0; n < OWN; n++) masters[n] = own_terminal(&places[n]);
    for (int n = 0; n < OWN; n++) {
        if (ioctl(masters[n], TIOCGPTN, &numbers[n])) return 11;
        printf("%d ", numbers[n]);
        close(masters[n]);
    }
    printf("\n");
    fflush(stdout);
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        attack(path);
        for (int n = 0; n < OWN; n++) {
            if (atoi(path + strlen("/dev/pts/")) != numbers[n]) continue;
            snprintf(name, sizeof name, "/proc/self/fd/%d", places[n]);
            must_fail("a place of before", open(name, O_RDWR | O_NOCTTY));
        }
    }
    close(own_terminal(&places[0]));
    return 0;
}

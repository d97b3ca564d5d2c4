/* In a run: has others ask for a run inside, and sees who enters it. The words are a file that holds the request, and
   what only the run around may read. */
#include "attack.h"
#include <sys/resource.h>
#include <sys/un.h>

#define REQUEST "/proc/self/attr/dewar/exec"

static char request[1 << 22];
static size_t length;

static int answered(int fd) {
    char answer[4096] = "";
    for (size_t sent = 0; sent < length;) {
        ssize_t more = send(fd, request + sent, length - sent, MSG_NOSIGNAL);
        if (more <= 0) return 0;
        sent += more;
    }
    shutdown(fd, SHUT_WR);
    ssize_t got = read(fd, answer, sizeof answer - 1);
    return got > 0 && strncmp(answer, "in ", 3) == 0;
}

/* Whether a program that this process executes can read the file. */
static int reads_after(void (*before)(void), const char *file) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (before) before();
        close(1);
        open("/dev/null", O_WRONLY);
        execlp("cat", "cat", file, NULL);
        _exit(99);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void ask(void) {
    if (!answered(open(REQUEST, O_RDWR))) _exit(98);
}

/* Two at once, from two threads' worth of descriptors: the last holds, and both bound it. */
static void ask_twice(void) {
    int first = open(REQUEST, O_RDWR), second = open(REQUEST, O_RDWR);
    if (!answered(second) || !answered(first)) _exit(98);
}

/* By a descriptor of its parent's: that one would enter, not who writes. */
static int of_parent;
static void ask_for_parent(void) { answered(of_parent); }

static void fail_first(void) {
    ask();
    char *words[] = {"nothing", NULL};
    execv("./nothing", words);
    execv("granted", words);
}

int main(int argc, char **argv) {
    if (argc < 3) return 3;
    int fd = open(argv[1], O_RDONLY);
    for (ssize_t got; (got = read(fd, request + length, sizeof request - length)) > 0;) length += got;
    if (!length || !reads_after(NULL, argv[2])) return 3;
    if (reads_after(ask, argv[2])) escaped("the promise");
    if (reads_after(ask_twice, argv[2])) escaped("by two requests");
    if (reads_after(fail_first, argv[2])) escaped("by an exec that fails");
    /* The others of the run around are as they were. */
    if (!reads_after(NULL, argv[2])) return 3;
    of_parent = open(REQUEST, O_RDWR);
    if (!reads_after(ask_for_parent, argv[2])) escaped("another process into a run inside");
    struct rlimit mark;
    getrlimit(RLIMIT_LOCKS, &mark);
    struct rlimit other = {mark.rlim_cur + 1, mark.rlim_max};
    must_fail("another mark", setrlimit(RLIMIT_LOCKS, &other));
    must_fail("another mark by prlimit", prlimit(0, RLIMIT_LOCKS, &other, NULL));
    /* This process has been asked for, and may do less from its next program on. */
    close(1);
    open("/dev/null", O_WRONLY);
    execlp("sh", "sh", "-c", "cat \"$0\" 2>/dev/null && exit 42; exit 0", argv[2], NULL);
    return 3;
}

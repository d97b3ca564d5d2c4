/* What every attack needs: it ends with 0 when held, with ESCAPED when it got through. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ESCAPED 42

static inline void escaped(const char *way) {
    fprintf(stderr, "escaped: %s\n", way);
    _exit(ESCAPED);
}

/* A way out that must fail; says how it did. */
static inline void must_fail(const char *way, long answer) {
    if (answer >= 0) escaped(way);
    fprintf(stderr, "held: %s: %s\n", way, strerror(errno));
}

/* A file that must not be readable. */
static inline void must_not_read(const char *way, int fd) {
    char byte;
    if (fd >= 0 && read(fd, &byte, 1) == 1) escaped(way);
    fprintf(stderr, "held: %s: %s\n", way, strerror(errno));
    if (fd >= 0) close(fd);
}

static inline double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

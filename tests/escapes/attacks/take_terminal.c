/* In the background: makes a group of its own the foreground of the terminal that it was given,
 * so that what is typed for others comes to it, in every way; and joins the group that is the
 * foreground. */
#include "attack.h"
#include <pthread.h>
#include <sys/ioctl.h>
#include <termios.h>

static int other;

static void take(const char *way, int terminal) {
    must_fail(way, tcsetpgrp(terminal, getpgrp()));
    if (tcgetpgrp(0) == getpgrp()) escaped(way);
}

/* Puts the terminal in the place of another file, and back. */
static void *swap(void *at) {
    for (;;) {
        dup2(other, *(int *)at);
        dup2(0, *(int *)at);
    }
    return NULL;
}

static void take_swapped(const char *name, const char *way) {
    int at = dup(0);
    pthread_t thread;
    other = open(name, O_RDWR | O_NOCTTY);
    if (other < 0 || at < 0 || pthread_create(&thread, NULL, swap, &at)) _exit(3);
    for (int turn = 0; turn < 1000; turn++) {
        if (tcsetpgrp(at, getpgrp()) == 0 || tcgetpgrp(0) == getpgrp()) escaped(way);
    }
    fprintf(stderr, "held: %s\n", way);
}

/* Does one of them in a process with a group of its own. With PIDs of its own it is stopped
 * until the run is in the foreground; it is continued again and again. */
static void in_child(void (*way)(void)) {
    int status, stops = 0;
    pid_t child = fork();
    if (child == 0) {
        if (setpgid(0, 0) != 0) _exit(3);
        way();
        _exit(0);
    }
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        if (tcgetpgrp(0) == child) escaped("stopped, in the foreground");
        if (++stops == 100) kill(child, SIGKILL);
        kill(child, SIGCONT);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status));
    fprintf(stderr, "held: stopped %d times\n", stops);
}

static void ignoring(void) {
    signal(SIGTTOU, SIG_IGN);
    take("ignoring SIGTTOU", 0);
}

static void blocking(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, NULL);
    take("blocking SIGTTOU", 0);
    take("by /dev/tty", open("/dev/tty", O_RDWR));
}

static void swapping(void) {
    signal(SIGTTOU, SIG_IGN);
    take_swapped("/dev/ptmx", "in the place of another terminal");
}

static void swapping_null(void) {
    signal(SIGTTOU, SIG_IGN);
    take_swapped("/dev/null", "in the place of no terminal");
}

static void *toggle(void *none) {
    for (;;) {
        signal(SIGTTOU, SIG_IGN);
        signal(SIGTTOU, SIG_DFL);
    }
    return none;
}

static void ignoring_late(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, toggle, NULL)) _exit(3);
    for (int turn = 0; turn < 1000; turn++) {
        if (tcsetpgrp(0, getpgrp()) == 0 || tcgetpgrp(0) == getpgrp()) escaped("ignoring SIGTTOU late");
    }
}

static void joining(void) {
    pid_t foreground = tcgetpgrp(0);
    /* With PIDs of its own it has no name for it. */
    if (foreground <= 0) return;
    must_fail("joining the foreground", setpgid(0, foreground));
    must_fail("joining a group beside it", setpgid(0, getsid(0)));
}

int main(void) {
    if (!isatty(0)) return 5;
    in_child(ignoring);
    in_child(blocking);
    in_child(ignoring_late);
    in_child(swapping_null);
    in_child(swapping);
    in_child(joining);
    return 0;
}

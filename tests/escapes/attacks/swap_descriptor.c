/* Signals by a PID descriptor, while another thread has its number mean in turn a child and a process outside. That one, its
 * descriptor's source, has made the socket pair that is the standard input (outside: the same program, before Dewar). */
#include "attack.h"
#include <pthread.h>

enum { PEERPIDFD = 77, NUMBER = 100, SECONDS = 2 };
static int own, outside;
static volatile int over;
static volatile sig_atomic_t reached;

static void note(int signal) { reached = signal; }

static int be_outside(char **words) {
    int ends[2], status;
    signal(SIGUSR1, note);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 3;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGUSR1, SIG_DFL);
        dup2(ends[0], 0);
        execv(words[0], words);
        _exit(3);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (reached) escaped("signals a process outside");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

static void *swap(void *none) {
    while (!over) {
        dup2(own, NUMBER);
        for (volatile int n = 0; n < 3000; n++) continue;
        dup2(outside, NUMBER);
        for (volatile int n = 0; n < 3000; n++) continue;
    }
    return none;
}

int main(int argc, char **argv) {
    socklen_t size = sizeof outside;
    pthread_t thread;
    int done = 0;
    if (argc > 2 && !strcmp(argv[1], "outside")) return be_outside(argv + 2);
    if (getsockopt(0, SOL_SOCKET, PEERPIDFD, &outside, &size)) {
        fprintf(stderr, "no attack: SO_PEERPIDFD: %s\n", strerror(errno));
        return 0;
    }
    must_fail("plainly", syscall(SYS_pidfd_send_signal, outside, SIGUSR1, NULL, 0));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN);
        for (;;) pause();
    }
    usleep(50000);
    own = syscall(SYS_pidfd_open, child, 0);
    if (own < 0 || syscall(SYS_pidfd_send_signal, own, SIGUSR1, NULL, 0)) return 4;
    /* What a program says of a signal itself is as the kernel wants it. */
    siginfo_t told = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    if (syscall(SYS_pidfd_send_signal, own, SIGUSR1, &told, 0)) return 5;
    if (!syscall(SYS_pidfd_send_signal, own, SIGUSR2, &told, 0) || errno != EINVAL) return 6;
    dup2(own, NUMBER);
    pthread_create(&thread, NULL, swap, NULL);
    for (double end = now() + SECONDS; now() < end;) done += !syscall(SYS_pidfd_send_signal, NUMBER, SIGUSR1, NULL, 0);
    over = 1;
    pthread_join(thread, NULL);
    kill(child, SIGKILL);
    fprintf(stderr, "held: %d signals\n", done);
    return done ? 0 : 7;
}

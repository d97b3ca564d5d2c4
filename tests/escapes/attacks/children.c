/* Has children of every kind when it enters another domain; each tries to use that domain's rights.
   Argument: a file that only the other domain may write. */
#include "attack.h"
#include <pthread.h>
#include <sched.h>

static const char *file;

static void try(void) {
    for (double end = now() + 0.5; now() < end;) {
        int fd = open(file, O_WRONLY);
        if (fd >= 0) {
            if (write(fd, "stolen", 6) != 6) _exit(3);
            _exit(0);
        }
        usleep(500);
    }
    _exit(0);
}

/* Exits by a call that nobody decides, so that the list of children changes while it is read. */
static void pass(void) {
    usleep(rand() % 20000);
    syscall(SYS_exit, 0);
}

static void breed(void) {
    for (int n = 0; n < 60; n++) {
        pid_t child = n % 7 == 3 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (child) continue;
        if (n % 7 == 5) {
            /* An orphan of a process that is killed. */
            pid_t parent = getpid();
            if (fork() == 0) {
                kill(parent, SIGKILL);
                try();
            }
            pause();
        }
        if (n % 7 == 1 || n % 7 == 3) try();
        pass();
    }
}

/* Not for ever: that would be an attack on the machine. */
static void *forks(void *none) {
    for (int n = 0; n < 5000; n++)
        if (fork() == 0) try();
    return none;
}

static void *enters(void *none) {
    char *words[] = {"vault", NULL};
    usleep(3000);
    execve("./vault", words, words + 1);
    perror("execve");
    _exit(3);
    return none;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    file = argv[1];
    must_fail("write", open(file, O_WRONLY));
    signal(SIGCHLD, SIG_IGN);
    breed();
    if (argc > 2) pthread_create(&threads[0], NULL, forks, NULL);
    pthread_create(&threads[1], NULL, enters, NULL);
    pthread_join(threads[1], NULL);
    return 3;
}

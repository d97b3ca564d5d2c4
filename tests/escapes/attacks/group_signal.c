/* In a domain that may not signal the first one: signals its own process group, while another
 * thread of it goes into the
   group of a process of the first domain. */
#include "attack.h"
#include <pthread.h>

static pid_t own, victim;
static volatile int over;

static void *change(void *none) {
    while (!over) {
        setpgid(0, victim);
        setpgid(0, own);
    }
    return none;
}

static int attack(void) {
    pthread_t thread;
    int refused = 0;
    own = getpid();
    signal(SIGUSR1, SIG_IGN);
    if (setpgid(0, 0) || pthread_create(&thread, NULL, change, NULL)) return 3;
    /* On a busy machine a turn of the other thread takes longer. */
    for (double end = now() + 1; now() < end || (!refused && now() < end + 20);)
        refused += kill(0, SIGUSR1) < 0;
    over = 1;
    pthread_join(thread, NULL);
    return refused ? 0 : 4;
}

int main(int argc, char **argv) {
    int status;
    char number[16], *words[] = {"narrow", number, NULL};
    if (argc > 1) return victim = atoi(argv[1]), attack();
    victim = fork();
    if (victim == 0) {
        setpgid(0, 0);
        for (;;) pause();
    }
    setpgid(victim, victim);
    snprintf(number, sizeof number, "%d", victim);
    pid_t attacker = fork();
    if (attacker == 0) {
        execve("./narrow", words, words + 2);
        _exit(3);
    }
    if (waitpid(attacker, &status, 0) != attacker) return 3;
    if (waitpid(victim, NULL, WNOHANG)) escaped("killed a process of the first domain");
    kill(victim, SIGKILL);
    return status ? 5 : 0;
}

/* Has a domain that it may not signal killed by its own death: a signal that its child is to have then goes with that from program
 * to program, by a domain between the two. Arguments: gate or vault, and a descriptor, in those. */
#include "attack.h"
#include <poll.h>
#include <sys/prctl.h>

static void execute(const char *program, const char *word, int said) {
    char number[16];
    snprintf(number, sizeof number, "%d", said);
    char *words[] = {(char *)program, (char *)word, number, NULL};
    execve(program, words, words + 3);
    _exit(1);
}

static char due(void) {
    int signal = -1;
    return prctl(PR_GET_PDEATHSIG, &signal) ? '?' : signal == SIGKILL ? 'K' : signal == 0 ? '0' : '!';
}

/* What a child says that was started by one that dies: each program what it is to have, and the vault in the end that it lives. */
static void start(const char *program, const char *word, char *told, int most) {
    int said[2], n = 0;
    if (pipe(said)) _exit(3);
    pid_t between = fork();
    if (between == 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execute(program, word, said[1]);
        }
        usleep(700000);
        _exit(0);
    }
    close(said[1]);
    while (n < most - 1 && read(said[0], told + n, 1) == 1) n++;
    told[n] = 0;
    close(said[0]);
    waitpid(between, NULL, 0);
}

int main(int argc, char **argv) {
    char told[8];
    if (argc > 2) {
        int said = atoi(argv[2]);
        char now = due();
        if (write(said, &now, 1) != 1) return 3;
        if (!strcmp(argv[1], "gate")) execute("./vault", "vault", said);
        usleep(1500000);
        return write(said, "!", 1) != 1;
    }
    start(argv[0], "vault", told, sizeof told);
    fprintf(stderr, "in its own domain: %s\n", told);
    if (strcmp(told, "K")) return 4;
    start("./gate", "gate", told, sizeof told);
    fprintf(stderr, "in others: %s\n", told);
    if (strchr(told, 'K') || !strchr(told, '!')) escaped("kills a domain that it may not signal");
    return strcmp(told, "00!") ? 5 : 0;
}

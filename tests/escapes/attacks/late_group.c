/* Kills, or slows down, a group, a member of which enters a domain that may not be signalled while the others are asked about:
 * by a domain between the two. Arguments: kill, or prio; gate or vault, and a descriptor, in those. */
#include "attack.h"
#include <poll.h>
#include <sys/resource.h>

enum { MEMBERS = 200, TURNS = 4, SLOW = 19 };
static int go[2], there[2];

static void enter(const char *program) {
    char number[16], name[16];
    snprintf(number, sizeof number, "%d", there[1]);
    snprintf(name, sizeof name, "./%s", program);
    char *words[] = {name, (char *)program, number, NULL};
    execve(name, words, words + 3);
    _exit(1);
}

/* Enters the vault, by the gate, once it is told to. */
static pid_t start(void) {
    char byte;
    pid_t child = fork();
    if (child) return child;
    setpgid(0, 0);
    close(there[0]);
    if (read(go[0], &byte, 1) == 1) enter("gate");
    _exit(1);
}

/* Whether the vault says that it is there. */
static int is_there(void) {
    struct pollfd ready = {there[0], POLLIN, 0};
    char byte;
    return poll(&ready, 1, 500) == 1 && read(there[0], &byte, 1) == 1;
}

static void turn(const char *way, int n) {
    pid_t members[MEMBERS], first;
    int status;
    if (pipe(go) || pipe(there)) _exit(3);
    first = start();
    setpgid(first, first);
    for (int i = 0; i < MEMBERS; i++) {
        if ((members[i] = fork()) == 0) {
            setpgid(0, first);
            for (;;) pause();
        }
        setpgid(members[i], first);
    }
    double begun = now();
    kill(-first, 0);
    double took = now() - begun;
    pid_t teller = fork();
    if (teller == 0) {
        usleep(n * took * 1e6 / 8 + 200);
        _exit(write(go[1], "x", 1) != 1);
    }
    int answer = *way == 'k' ? kill(-first, SIGKILL) : setpriority(PRIO_PGRP, first, SLOW);
    fprintf(stderr, "answer %d of a call of %.0f ms\n", answer, (now() - begun - took) * 1e3);
    if (is_there()) {
        usleep(50000);
        if (waitpid(first, &status, WNOHANG) == first) escaped("kills a domain that it may not signal");
        if (getpriority(PRIO_PROCESS, first) == SLOW) escaped("slows down a domain that it may not change");
    }
    for (int i = 0; i < MEMBERS; i++) kill(members[i], SIGKILL);
    for (int i = 0; i < MEMBERS; i++) waitpid(members[i], &status, 0);
    waitpid(teller, &status, 0);
    /* It waits for that. */
    close(there[0]);
    close(go[0]);
    close(go[1]);
    waitpid(first, &status, 0);
    close(there[1]);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (argc > 2) there[1] = atoi(argv[2]);
    if (!strcmp(argv[1], "gate")) enter("vault");
    if (!strcmp(argv[1], "vault")) {
        struct pollfd end = {there[1], 0, 0};
        if (write(there[1], "!", 1) == 1) poll(&end, 1, 5000);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    /* From now on domains are told apart. */
    if (pipe(go) || pipe(there)) return 3;
    pid_t first = start();
    if (write(go[1], "x", 1) != 1 || !is_there()) return 4;
    must_fail("kill", kill(first, SIGKILL));
    must_fail("setpriority", setpriority(PRIO_PROCESS, first, SLOW));
    close(there[0]);
    close(there[1]);
    waitpid(first, NULL, 0);
    for (int n = 0; n < (*argv[1] == 'k' ? TURNS : 1); n++) turn(argv[1], n);
    return 0;
}

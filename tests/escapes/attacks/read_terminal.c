// Leaves the session, and with it job control; then reads what is typed into the terminal that it
// was given, and puts it into the file that its argument names. With `traced`, what reads is traced
// by its parent, which lets it go on from every stop; with `forks`, that makes others all the time,
// which nobody traces, and these read.
#include "attack.h"
#include <poll.h>

static void read_all(int out) {
    write(out, "ready:", 6);
    for (;;) {
        char bytes[256];
        struct pollfd terminal = {.fd = 0, .events = POLLIN};
        if (poll(&terminal, 1, -1) < 0) continue;
        ssize_t count = read(0, bytes, sizeof bytes);
        if (count > 0) write(out, bytes, count);
    }
}

static void fork_all(int out) {
    write(out, "ready:", 6);
    for (int alive = 0;; alive++) {
        if (fork() == 0) {
            char bytes[256];
            struct pollfd terminal = {.fd = 0, .events = POLLIN};
            ssize_t count = poll(&terminal, 1, 2000) > 0 ? read(0, bytes, sizeof bytes) : 0;
            if (count > 0) write(out, bytes, count);
            _exit(0);
        }
        while (waitpid(-1, NULL, alive < 40 ? WNOHANG : 0) > 0 && alive > 0) alive--;
    }
}

int main(int argc, char **argv) {
    int out = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (argc < 2 || out < 0) return 3;
    if (fork() == 0) {
        setsid();
        if (argc == 2) read_all(out);
        pid_t child = fork();
        if (child == 0) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            if (strcmp(argv[2], "forks") == 0) fork_all(out);
            read_all(out);
        }
        while (waitpid(child, NULL, 0) == child) ptrace(PTRACE_CONT, child, NULL, NULL);
        return 3;
    }
    for (;;) pause();
}

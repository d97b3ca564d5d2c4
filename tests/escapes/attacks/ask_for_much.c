/* In a run: many processes ask for a long policy each, and wait. The word is a file that holds the request. */
#include "attack.h"

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

int main(int argc, char **argv) {
    pid_t children[8];
    int admitted = 0;
    if (argc < 2) return 3;
    int fd = open(argv[1], O_RDONLY);
    for (ssize_t got; (got = read(fd, request + length, sizeof request - length)) > 0;) length += got;
    for (int n = 0; n < 8; n++) {
        int told[2];
        char yes = 0;
        if (pipe(told)) return 3;
        children[n] = fork();
        if (children[n] == 0) {
            yes = answered(open(REQUEST, O_RDWR));
            write(told[1], &yes, 1);
            pause();
            _exit(0);
        }
        read(told[0], &yes, 1);
        admitted += yes;
    }
    for (int n = 0; n < 8; n++) kill(children[n], SIGKILL);
    if (!admitted) return 3;
    if (admitted * length > (8 << 20)) escaped("the bound on policies from inside");
    return 0;
}

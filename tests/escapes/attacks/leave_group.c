/* Leaves its process group and session in eight branches, each of which goes on in a new child all
 * the time, and writes one byte after the other. Argument: the file to write to. Ends by itself
 * after 100 s. */
#include "attack.h"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    double until = now() + 100;
    int fd = open(argv[1], O_WRONLY | O_APPEND);
    if (fd < 0) return 1;
    for (int branch = 0; branch < 8; branch++) {
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid > 0) continue;
        if (setsid() < 0) _exit(1);
        while (now() < until && write(fd, "x", 1) == 1) {
            if (fork() > 0) _exit(0);
            setsid();
            usleep(1000);
        }
        _exit(0);
    }
    pause();
    return 0;
}

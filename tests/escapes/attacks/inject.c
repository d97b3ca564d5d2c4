/* Types into the terminal, and puts text on its keys. Argument: a terminal of somebody else. */
#include "attack.h"
#include <sys/ioctl.h>

int main(int argc, char **argv) {
    static const unsigned long requests[] = {
        TIOCSTI, 0x541c, 0x4b47, 0x4b49, TIOCEXCL, TIOCSETD, 0x4b45, 0x4b3a, 0x5602,
    };
    int own = open("/dev/tty", O_RDWR);
    char text[64] = "\002";
    for (unsigned n = 0; n < sizeof requests / sizeof *requests; n++) {
        for (int high = 0; high < 2; high++) {
            long request = requests[n] | (long)high << 32;
            must_fail("standard input", syscall(SYS_ioctl, 0, request, text));
            if (errno != EPERM) return 3;
            if (own >= 0) must_fail("/dev/tty", syscall(SYS_ioctl, own, request, text));
        }
    }
    must_fail("another terminal", open(argv[1], O_RDWR | O_NOCTTY));
    must_fail("another terminal, to read", open(argv[1], O_RDONLY | O_NOCTTY));
    return argc != 2;
}

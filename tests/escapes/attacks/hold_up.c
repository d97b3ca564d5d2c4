// Leases what it may only read: whoever opens it for writing outside would wait for the lease.
#include "attack.h"

#ifndef F_SETLEASE
#define F_SETLEASE 1024
#endif

int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) {
        int fd = open(argv[n], O_RDONLY);
        if (fd < 0) {
            perror(argv[n]);
            return 1;
        }
        if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) escaped(argv[n]);
        fprintf(stderr, "held: %s: %s\n", argv[n], strerror(errno));
    }
    return 0;
}

/* The program of another domain: holds a secret in its environment, says that it is there, and waits. With an argument,
   the secret lies in memory that has a descriptor. */
#include "attack.h"
#include <sys/mman.h>

int main(int argc, char **argv) {
    if (argc > 1) {
        int fd = memfd_create("secret", 0);
        if (write(fd, "vault", 5) != 5 || dup2(fd, 9) != 9) return 3;
        usleep(600000);
        return 0;
    }
    if (write(1, "!", 1) != 1) return 7;
    usleep(600000);
    return 0;
}

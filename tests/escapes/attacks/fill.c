/* Looks for memory beyond its limit, in directories that are memory. Argument: the limit, in
 * MiB. */
#include "attack.h"
#include <sys/statvfs.h>

int main(int argc, char **argv) {
    static const char *directories[] = {"/tmp", "/var/tmp", "/dev/shm"};
    for (int n = 0; n < 3; n++) {
        struct statvfs all;
        if (statvfs(directories[n], &all)) return 3;
        unsigned long long mib = (unsigned long long)all.f_blocks * all.f_frsize >> 20;
        if (mib == 0 || mib > strtoull(argv[1], NULL, 10)) escaped(directories[n]);
    }
    return argc != 2;
}

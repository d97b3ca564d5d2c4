/* Leads a link that nobody can change, by one that it can, to what is hidden. Arguments: that link,
 * a file that it may
   lead to, the hidden one. */
#include "attack.h"

static void lead_to(const char *target) {
    unlink("way");
    if (target && symlink(target, "way")) _exit(3);
}

int main(int argc, char **argv) {
    struct stat st;
    if (argc != 4) return 3;
    for (int missing = 0; missing < 2; missing++) {
        lead_to(missing ? NULL : argv[2]);
        for (int n = 0; n < 3; n++) {
            if ((stat(argv[1], &st) == 0) == missing) return 3;
        }
        lead_to(argv[3]);
        must_fail("stat", stat(argv[1], &st));
        must_fail("access", access(argv[1], F_OK));
        must_fail("open", open(argv[1], O_PATH));
    }
    return 0;
}

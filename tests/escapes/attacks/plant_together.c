// One of two runs that make a repository between them: this one makes its `refs` or, with the
// argument `config`, what Git obeys.
// Neither does while the other's is there; both try to do it at one time.
#include "attack.h"

int main(int argc, char **argv) {
    int makes_config = argc > 1 && strcmp(argv[1], "config") == 0;
    const char *other = makes_config ? "x/refs" : "x/config";
    struct stat found;
    double until = now() + 4;
    long made = 0;
    while (now() < until) {
        if (makes_config) {
            int fd = open("x/config", O_CREAT | O_EXCL | O_WRONLY, 0644);
            if (fd < 0) continue;
            close(fd);
        } else if (mkdir("x/refs", 0755) != 0) {
            continue;
        }
        made++;
        for (int i = 0; i < 20; i++) {
            if (stat(other, &found) == 0) escaped("both were made");
        }
        if (makes_config) unlink("x/config");
        else rmdir("x/refs");
    }
    fprintf(stderr, "held: %ld times\n", made);
    return made > 0 ? 0 : 1;
}

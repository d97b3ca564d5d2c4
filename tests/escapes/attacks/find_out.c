/* Asks for what is hidden after what is denied. Arguments: a denied file, and hidden ones. */
#include "attack.h"

int main(int argc, char **argv) {
    must_fail("open", open(argv[1], O_RDONLY));
    if (errno != EACCES) return 3;
    for (int n = 2; n < argc; n++) {
        struct stat status;
        must_fail(argv[n], open(argv[n], O_RDONLY));
        if (errno != ENOENT) escaped("it exists, says open");
        must_fail(argv[n], stat(argv[n], &status));
        if (errno != ENOENT) escaped("it exists, says stat");
    }
    return 0;
}

/* Changes a file that somebody outside saves by a temporary name and a rename: it meets the file by the former name.
 * Arguments: the temporary name, the other, and a file by which it says that it has met it. */
#include "attack.h"

int main(int argc, char **argv) {
    struct stat met, named;
    int fd = -1;
    double end = now() + 20;
    if (argc != 4) return 1;
    while ((fd = open(argv[1], O_RDONLY)) < 0 && now() < end) usleep(1000);
    if (fd < 0 || fstat(fd, &met) != 0) {
        perror("nothing was met");
        return 1;
    }
    close(open(argv[3], O_CREAT | O_WRONLY, 0600));
    while ((stat(argv[2], &named) != 0 || named.st_ino != met.st_ino) && now() < end) usleep(1000);
    if (named.st_ino != met.st_ino) return 1;
    must_fail("to write", open(argv[2], O_WRONLY));
    must_fail("to append", open(argv[2], O_WRONLY | O_APPEND));
    must_fail("to cut", truncate(argv[2], 0));
    must_fail("its mode", chmod(argv[2], 0777));
    return 0;
}

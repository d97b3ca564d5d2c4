/* Binds an abstract name, lets somebody outside have it, and connects and sends to it as to its
 * own, while another thread sends whatever gets a way out. Arguments: the name; "datagram" for that
 * kind. */
#include "attack.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/un.h>

static int s;

static void *send_at_once(void *unused) {
    for (;;) if (send(s, "stolen", 6, MSG_NOSIGNAL | MSG_DONTWAIT) == 6) escaped("a send while connecting");
    return unused;
}

int main(int argc, char **argv) {
    int kind = argc > 2 ? SOCK_DGRAM : SOCK_STREAM;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path + 1, argv[1]);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[1]);
    int own = socket(AF_UNIX, kind, 0);
    if (own < 0 || bind(own, (void *)&name, length)) return 3;
    s = socket(AF_UNIX, kind, 0);
    if (kind == SOCK_STREAM) {
        listen(own, 1);
        if (connect(s, (void *)&name, length)) return 4;
        close(s);
        s = socket(AF_UNIX, kind, 0);
    } else if (sendto(s, "x", 1, 0, (void *)&name, length) != 1) return 4;
    close(own);
    close(open("free", O_CREAT | O_WRONLY, 0600));
    while (access("taken", F_OK)) usleep(1000);
    if (kind == SOCK_DGRAM) must_fail("sendto", sendto(s, "stolen", 6, 0, (void *)&name, length));
    pthread_t thread;
    pthread_create(&thread, NULL, send_at_once, NULL);
    must_fail("connect", connect(s, (void *)&name, length));
    must_fail("send", send(s, "stolen", 6, MSG_NOSIGNAL));
    return argc > 3;
}

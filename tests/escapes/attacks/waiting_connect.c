/* Has a connect wait at the full queue of its own port, lets go of the port, and sees whether what the kernel still
 * sends reaches somebody else. Arguments: how it lets go (`shutdown`, `again`: shutdown, and listen at another port,
 * `signal`: a signal ends the wait, and then close), a file that says which port that was, and one that says that it
 * is taken. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>

enum { SENDERS = 3 };

static struct sockaddr_in own = {.sin_family = AF_INET};
static int waiting, done;

static int stream(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return s;
}

static void *wait_long(void *unused) {
    if (connect(waiting, (void *)&own, sizeof own) == 0) escaped("a connect");
    fprintf(stderr, "the connect has ended: %s\n", strerror(errno));
    done = 1;
    return unused;
}

static void *send_at_once(void *unused) {
    for (;;) {
        if (send(waiting, "stolen", 6, MSG_NOSIGNAL | MSG_DONTWAIT) == 6) escaped("a send while connecting");
        usleep(100);
    }
    return unused;
}

/* Where it listens now, it is reached. */
static void serve_again(int s) {
    struct sockaddr_in now_at;
    socklen_t len = sizeof now_at;
    listen(s, 5);
    getsockname(s, (void *)&now_at, &len);
    if (connect(stream(), (void *)&now_at, len) != 0) {
        perror("it does not serve again");
        exit(1);
    }
}

static void ignore(int unused) { (void)unused; }

int main(int argc, char **argv) {
    int s = stream(), filling = stream();
    socklen_t len = sizeof own;
    pthread_t thread, senders;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (argc != 4 || bind(s, (void *)&own, len) != 0 || listen(s, 0) != 0) {
        perror("no port, so nothing was tried");
        return 1;
    }
    getsockname(s, (void *)&own, &len);
    if (connect(filling, (void *)&own, len) != 0) {
        perror("not even its own");
        return 1;
    }
    struct sigaction plain = {.sa_handler = ignore};
    sigaction(SIGUSR1, &plain, NULL);
    waiting = stream();
    pthread_create(&thread, NULL, wait_long, NULL);
    usleep(200000);
    if (done) {
        fprintf(stderr, "it does not wait, so nothing was tried\n");
        return 1;
    }
    for (int n = 0; n < SENDERS; n++) pthread_create(&senders, NULL, send_at_once, NULL);
    double begun = now();
    if (strcmp(argv[1], "signal") == 0) {
        pthread_kill(thread, SIGUSR1);
        while (!done && now() < begun + 5) usleep(1000);
        close(filling);
        close(s);
    } else {
        if (shutdown(s, SHUT_RDWR) != 0) perror("shutdown");
        if (accept(s, NULL, NULL) >= 0 || errno != EINVAL) {
            perror("it listens still");
            return 1;
        }
        if (strcmp(argv[1], "again") == 0) serve_again(s);
    }
    if (now() > begun + 5) fprintf(stderr, "letting go took %.1f s\n", now() - begun);
    FILE *port = fopen(argv[2], "w");
    fprintf(port, "%d\n", ntohs(own.sin_port));
    fclose(port);
    while (access(argv[3], F_OK) != 0 && now() < begun + 20) usleep(10000);
    /* The kernel sends again after 1, 3 and 7 seconds. */
    sleep(4);
    return 0;
}

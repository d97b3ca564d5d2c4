/* Sends to an address that nobody has decided: a thread, or a process with the same descriptors, puts a socket of datagrams in
 * the place of one of packets between decision and call. Arguments: a port that is not granted, "thread" or "process". */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>

enum { NUMBER = 100, SECONDS = 2 };
static int packets, datagrams;
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        dup2(packets, NUMBER);
        for (volatile int n = 0; n < 30000; n++) continue;
        dup2(datagrams, NUMBER);
        for (volatile int n = 0; n < 30000; n++) continue;
    }
    return none;
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    struct iovec data = {"stolen", 6};
    struct msghdr message = {&address, sizeof address, &data, 1, NULL, 0, 0};
    int ends[2], done = 0, refused = 0, is_process = argc > 2 && !strcmp(argv[2], "process");
    pthread_t thread;
    pid_t child = 0;
    char bytes[8];

    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) return 3;
    packets = ends[0];
    datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    must_fail("plainly", sendmsg(datagrams, &message, 0));
    dup2(packets, NUMBER);
    if (is_process) {
        child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
        if (child == 0) swap(NULL);
    } else {
        pthread_create(&thread, NULL, swap, NULL);
    }
    for (double end = now() + SECONDS; now() < end;) {
        if (sendmsg(NUMBER, &message, MSG_DONTWAIT) < 0) refused++;
        else done++;
        while (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
    }
    over = 1;
    if (child > 0) kill(child, SIGKILL);
    fprintf(stderr, "held: %d packets, %d refused\n", done, refused);
    return done && refused ? 0 : 7;
}

/* Sends packets so that the receiver takes them for somebody else's: the kernel names who sends. */
#include "attack.h"
#include <pthread.h>
#include <sys/un.h>

static void *wait_on(void *none) {
    for (;;) pause();
    return none;
}

/* Two ends, of which the second has a name. */
static int connection(int ends[2]) {
    struct sockaddr_un address = {AF_UNIX, "named"};
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    unlink("named");
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1)) return -1;
    ends[0] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(ends[0], (void *)&address, sizeof address)) return -1;
    return ends[1] = accept(listener, NULL, NULL);
}

static int attack(const int ends[2]) {
    int on = 1;
    setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    struct timeval patience = {1, 0};
    setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char byte = 'x';
    struct iovec piece = {&byte, 1};
    struct mmsghdr messages[1] = {{{.msg_iov = &piece, .msg_iovlen = 1}}};
    long sent[] = {
        sendmsg(ends[0], &messages[0].msg_hdr, 0),
        sendmmsg(ends[0], messages, 1, 0),
        sendto(ends[0], &byte, 1, 0, (struct sockaddr *)&ends, 2),
        send(ends[0], &byte, 1, 0),
    };
    if (sent[3] != 1) {
        perror("not even send sends, so nothing was tried");
        return 1;
    }
    for (int n = 0; n < 4; n++) {
        char control[CMSG_SPACE(sizeof(struct ucred))];
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control,
                                 .msg_controllen = sizeof control};
        if (recvmsg(ends[1], &message, MSG_DONTWAIT) < 0) break;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        struct ucred who = {0};
        if (header) memcpy(&who, CMSG_DATA(header), sizeof who);
        if (who.pid != getpid()) escaped("a packet came in another's name");
        fprintf(stderr, "held: packet %d came from %d\n", n, who.pid);
    }
    return 0;
}

/* By one thread to a pair; by one and by two to a service. */
int main(void) {
    int ends[2];
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        perror("no pair of sockets, so nothing was tried");
        return 1;
    }
    if (attack(ends)) return 1;
    if (connection(ends) < 0) {
        perror("no connection, so nothing was tried");
        return 1;
    }
    if (attack(ends) || pthread_create(&thread, NULL, wait_on, NULL)) return 1;
    return attack(ends);
}

/* Sends packets so that the receiver takes them for somebody else's: the kernel names who sends. */
#include "attack.h"

int main(void) {
    int ends[2], on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        perror("no pair of sockets, so nothing was tried");
        return 1;
    }
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

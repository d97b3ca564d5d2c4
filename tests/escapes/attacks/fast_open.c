/* Connects by sending: TCP Fast Open, by each of the calls that send. Argument: the port. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>

int main(int argc, char **argv) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    char data[] = "stolen";
    struct iovec piece = {data, sizeof data};
    struct mmsghdr message = {.msg_hdr = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1}};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    must_fail("connect", connect(s, (void *)&to, sizeof to));
    must_fail("sendto", sendto(s, data, 6, MSG_FASTOPEN, (void *)&to, sizeof to));
    must_fail("sendmsg", sendmsg(s, &message.msg_hdr, MSG_FASTOPEN));
    must_fail("sendmmsg", sendmmsg(s, &message, 1, MSG_FASTOPEN));
    must_fail("sendto with high bits",
        syscall(SYS_sendto, s, data, 6L, MSG_FASTOPEN | 1L << 40, &to, sizeof to));
    return argc != 2;
}

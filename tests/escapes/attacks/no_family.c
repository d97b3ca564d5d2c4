/* Sends datagrams to an address whose family is none, or another one than the socket's. Argument:
 * the port of a receiver outside, on 127.0.0.1 and ::1. The profile grants datagrams to one other
 * port only. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>

static void all(const char *way, int s, void *to, socklen_t length) {
    char data[] = "stolen";
    struct iovec piece = {data, sizeof data};
    struct mmsghdr message = {.msg_hdr = {
        .msg_name = to, .msg_namelen = length, .msg_iov = &piece, .msg_iovlen = 1}};
    must_fail(way, sendto(s, data, sizeof data, 0, to, length));
    must_fail(way, sendmsg(s, &message.msg_hdr, 0));
    must_fail(way, sendmmsg(s, &message, 1, 0));
}

int main(int argc, char **argv) {
    int port = htons(atoi(argv[1]));
    struct sockaddr_in v4 = {.sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = port};
    int s4 = socket(AF_INET, SOCK_DGRAM, 0), s6 = socket(AF_INET6, SOCK_DGRAM, 0);
    if (s4 < 0 || s6 < 0) {
        perror("no socket, so nothing was tried");
        return 1;
    }
    for (int family = 0; family < 46; family++) {
        v4.sin_family = v6.sin6_family = family;
        all("IPv4", s4, &v4, sizeof v4);
        all("IPv6", s6, &v6, sizeof v6);
        all("IPv4 by an IPv6 socket", s6, &v4, sizeof v4);
        all("IPv6 by an IPv4 socket", s4, &v6, sizeof v6);
    }
    all("nowhere", s6, &any, sizeof any);
    return argc != 2;
}

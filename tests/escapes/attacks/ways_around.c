/* Sets options that lead packets elsewhere than their address says, change what a socket is, or put
 * programs into the kernel, and sends control messages that do the same. Argument: a port that may
 * be sent to, on ::1. */
#include "attack.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static void set(const char *name, int s, int level, int option, const void *value, socklen_t length) {
    must_fail(name, setsockopt(s, level, option, value, length));
    must_fail(name, syscall(SYS_setsockopt, s, 1L << 40 | level, 1L << 40 | option, value, length));
}
#define SET(socket, level, option, value) set(#option, socket, level, option, &value, sizeof value)

static void along(const char *name, int s, int level, int type, const void *value, size_t length, int port) {
    char control[CMSG_SPACE(64)] = {0}, data[] = "stolen";
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct iovec piece = {data, sizeof data};
    struct mmsghdr message = {.msg_hdr = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = CMSG_SPACE(length)}};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message.msg_hdr);
    header->cmsg_level = level, header->cmsg_type = type, header->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(header), value, length);
    must_fail(name, sendmsg(s, &message.msg_hdr, 0));
    must_fail(name, sendmmsg(s, &message, 1, 0));
    connect(s, (void *)&to, sizeof to);
    message.msg_hdr.msg_name = NULL, message.msg_hdr.msg_namelen = 0;
    must_fail(name, sendmsg(s, &message.msg_hdr, 0));
}

int main(int argc, char **argv) {
    int port = atoi(argv[1]), one = 1;
    int u4 = socket(AF_INET, SOCK_DGRAM, 0), u6 = socket(AF_INET6, SOCK_DGRAM, 0), t6 = socket(AF_INET6, SOCK_STREAM, 0);
    if (u4 < 0 || u6 < 0) {
        perror("no socket, so nothing was tried");
        return 1;
    }
    /* A routing header of type 2 (mobile IPv6) that ordinary users may send, and a source route. */
    struct { unsigned char next, length, type, left, reserved[4]; struct in6_addr by; } route = {
        .length = 2, .type = 2, .left = 1, .by = IN6ADDR_LOOPBACK_INIT};
    unsigned char loose[] = {131, 7, 4, 127, 0, 0, 1, 0}, pad[8] = {0, 0, 1, 4};
    struct in6_pktinfo source = {.ipi6_ifindex = 1};
    struct in_pktinfo source4 = {.ipi_ifindex = 1};
    struct sock_filter pass = {BPF_RET | BPF_K, 0, 0, ~0u};
    struct sock_fprog program = {1, &pass};
    struct { struct in6_addr dst; unsigned label; unsigned char action, share; unsigned short flags, expires, linger; unsigned pad; }
        manage = {.dst = IN6ADDR_LOOPBACK_INIT, .action = 1, .flags = 1};
    struct ipv6_mreq group = {.ipv6mr_multiaddr = {{{0xff, 2, [15] = 0x77}}}, .ipv6mr_interface = 1};
    struct ip_mreq group4 = {.imr_multiaddr.s_addr = htonl(0xe0000077)};
    SET(u6, IPPROTO_IPV6, IPV6_RTHDR, route);
    SET(t6, IPPROTO_IPV6, IPV6_RTHDR, route);
    SET(u6, IPPROTO_IPV6, IPV6_HOPOPTS, pad);
    SET(u6, IPPROTO_IPV6, IPV6_DSTOPTS, pad);
    SET(u6, IPPROTO_IPV6, IPV6_RTHDRDSTOPTS, pad);
    SET(u6, IPPROTO_IPV6, IPV6_PKTINFO, source);
    SET(u6, IPPROTO_IPV6, IPV6_JOIN_GROUP, group);
    SET(u4, IPPROTO_IP, IP_ADD_MEMBERSHIP, group4);
    set("IPV6_2292RTHDR", u6, IPPROTO_IPV6, 5, &one, sizeof one);
    set("IPV6_2292PKTOPTIONS", u6, IPPROTO_IPV6, 6, &route, 0);
    set("IPV6_FLOWLABEL_MGR", u6, IPPROTO_IPV6, 32, &manage, sizeof manage);
    set("IP_OPTIONS", u4, IPPROTO_IP, IP_OPTIONS, loose, sizeof loose);
    SET(u4, IPPROTO_IP, IP_FREEBIND, one);
    SET(u4, IPPROTO_IP, IP_TRANSPARENT, one);
    set("SO_BINDTODEVICE", u4, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
    SET(u4, SOL_SOCKET, SO_MARK, one);
    SET(u4, SOL_SOCKET, SO_ATTACH_FILTER, program);
    SET(u4, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program);
    set("UDP_ENCAP", u4, IPPROTO_UDP, 100, &one, sizeof one);
    if (t6 >= 0) {
        SET(t6, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, one);
        SET(t6, IPPROTO_TCP, TCP_REPAIR, one);
        set("TCP_ULP", t6, IPPROTO_TCP, TCP_ULP, "tls", 4);
    }
    along("IPV6_RTHDR along", u6, IPPROTO_IPV6, IPV6_RTHDR, &route, sizeof route, port);
    along("IPV6_2292RTHDR along", u6, IPPROTO_IPV6, 5, &route, sizeof route, port);
    along("IPV6_HOPOPTS along", u6, IPPROTO_IPV6, IPV6_HOPOPTS, pad, sizeof pad, port);
    along("IPV6_DSTOPTS along", u6, IPPROTO_IPV6, IPV6_DSTOPTS, pad, sizeof pad, port);
    along("IPV6_PKTINFO along", u6, IPPROTO_IPV6, IPV6_PKTINFO, &source, sizeof source, port);
    along("IP_PKTINFO along", u4, IPPROTO_IP, IP_PKTINFO, &source4, sizeof source4, port);
    along("IP_RETOPTS along", u4, IPPROTO_IP, IP_RETOPTS, loose, sizeof loose, port);
    along("SO_MARK along", u6, SOL_SOCKET, SO_MARK, &one, sizeof one, port);
    return argc != 2;
}

/* Reaches servers at other addresses of this machine by no address in particular, which the kernel takes for that of
 * the socket. Arguments: a port that is granted at 127.0.0.1, and one that is granted at ::1, by datagrams. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>

static struct sockaddr_in v4(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

static struct sockaddr_in6 v6(const char *host, int port) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, host, &address.sin6_addr);
    return address;
}

int main(int argc, char **argv) {
    int port = atoi(argv[1]), six = atoi(argv[2]);
    struct sockaddr_in other = v4("127.0.0.2", 0), any = v4("0.0.0.0", port);
    struct sockaddr_in6 mapped = v6("::ffff:127.0.0.1", port), none = v6("::", six);

    int stream = socket(AF_INET, SOCK_STREAM, 0);
    if (stream < 0 || bind(stream, (void *)&other, sizeof other) != 0) {
        perror("nothing was tried");
        return 1;
    }
    must_fail("a stream from another address", connect(stream, (void *)&any, sizeof any));

    int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(datagrams, (void *)&other, sizeof other) != 0) return 1;
    if (connect(datagrams, (void *)&any, sizeof any) == 0) send(datagrams, "stolen", 6, 0);
    sendto(datagrams, "stolen", 6, 0, (void *)&any, sizeof any);

    /* The source as a control message. */
    char control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
    struct iovec data = {"stolen", 6};
    struct msghdr message = {&any, sizeof any, &data, 1, control, sizeof control, 0};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof(struct in_pktinfo)), IPPROTO_IP, IP_PKTINFO};
    ((struct in_pktinfo *)CMSG_DATA(head))->ipi_spec_dst = other.sin_addr;
    sendmsg(socket(AF_INET, SOCK_DGRAM, 0), &message, 0);

    /* A source of IPv4 makes `::` an address of IPv4. */
    int both = socket(AF_INET6, SOCK_DGRAM, 0);
    if (connect(both, (void *)&mapped, sizeof mapped) != 0) return 1;
    if (connect(both, (void *)&none, sizeof none) == 0) send(both, "stolen", 6, 0);
    return argc != 3;
}

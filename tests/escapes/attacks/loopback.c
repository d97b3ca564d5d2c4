/* Reaches servers of the machine on loopback: connects, sends, and takes the port's place.
 * Arguments: a port of TCP, one of UDP; a third if no socket is to be had at all. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>

int main(int argc, char **argv) {
    static const char *names[] = {"127.0.0.1", "127.1.2.3", "0.0.0.0"};
    int s = socket(AF_INET, SOCK_STREAM, 0), own = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7)};
    if (argc == 4) {
        must_fail("a socket", s);
        must_fail("another", own);
        must_fail("datagrams", socket(AF_INET, SOCK_DGRAM, 0));
        return 0;
    }
    if (s < 0 || own < 0) {
        perror("no socket, so nothing was tried");
        return 1;
    }
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
        inet_pton(AF_INET, names[n], &to.sin_addr);
        must_fail(names[n], connect(s, (void *)&to, sizeof to));
        to.sin_port = htons(atoi(argv[2]));
        /* It may be sent; the test looks who gets it. */
        sendto(socket(AF_INET, SOCK_DGRAM, 0), "stolen", 6, 0, (void *)&to, sizeof to);
        to.sin_family = AF_UNSPEC;
        sendto(socket(AF_INET, SOCK_DGRAM, 0), "stolen", 6, 0, (void *)&to, sizeof to);
    }
    /* An address of somebody else. */
    inet_pton(AF_INET, "192.0.2.1", &any.sin_addr);
    must_fail("outside", connect(s, (void *)&any, sizeof any));
    must_fail("bound outside", bind(own, (void *)&any, sizeof any));
    return argc != 3;
}

/* Binds abstract names that somebody outside has, with sockets of other types, for which the kernel
 * keeps names apart, and reaches the one outside as its own. Arguments: the name of a stream and
 * that of a datagram socket outside. */
#include "attack.h"
#include <stddef.h>
#include <sys/un.h>

static struct sockaddr_un name = {.sun_family = AF_UNIX};
static socklen_t length;

static void named(const char *text) {
    strcpy(name.sun_path + 1, text);
    length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text);
}

static int own(int kind) {
    int s = socket(AF_UNIX, kind, 0);
    if (s < 0 || bind(s, (void *)&name, length)) exit(3);
    if (kind != SOCK_DGRAM && listen(s, 1)) exit(4);
    return s;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    named(argv[1]);
    own(SOCK_DGRAM), own(SOCK_SEQPACKET);
    int stream = socket(AF_UNIX, SOCK_STREAM, 0);
    must_fail("connect", connect(stream, (void *)&name, length));
    must_fail("send", send(stream, "stolen", 6, MSG_NOSIGNAL));
    /* What it is for goes on: its own of each type. */
    int datagram = socket(AF_UNIX, SOCK_DGRAM, 0), packets = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (sendto(datagram, "x", 1, 0, (void *)&name, length) != 1) return 5;
    if (connect(packets, (void *)&name, length)) return 6;
    named(argv[2]);
    own(SOCK_STREAM);
    must_fail("sendto", sendto(datagram, "stolen", 6, 0, (void *)&name, length));
    must_fail("connect", connect(datagram, (void *)&name, length));
    must_fail("send", send(datagram, "stolen", 6, MSG_NOSIGNAL));
    return 0;
}

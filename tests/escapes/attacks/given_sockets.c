/* Sends by whatever sockets it was given. Arguments: a port outside, the name of a datagram socket
 * outside. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

int main(int argc, char **argv) {
    int port = htons(atoi(argv[1]));
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    strcpy(file.sun_path, argv[2]);
    struct sockaddr_in any = {.sin_family = AF_INET};
    int own = socket(AF_INET, SOCK_STREAM, 0);
    for (int fd = 0; fd < 64; fd++) {
        int kind, state;
        socklen_t length = sizeof kind;
        if (fd == own || getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length)) continue;
        fprintf(stderr, "descriptor %d is a socket of type %d\n", fd, kind);
        if (kind != SOCK_STREAM) {
            if (sendto(fd, "stolen", 6, 0, (void *)&v4, sizeof v4) == 6) escaped("a datagram to an address");
            if (sendto(fd, "stolen", 6, 0, (void *)&file, sizeof file) == 6) escaped("a datagram to a name");
            if (send(fd, "stolen", 6, 0) == 6) escaped("a datagram to a peer");
        }
        length = sizeof state;
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &state, &length);
        struct sockaddr_storage peer;
        length = sizeof peer;
        if (kind == SOCK_STREAM && !state && getpeername(fd, (void *)&peer, &length)) {
            if (connect(fd, (void *)&v4, sizeof v4) == 0) escaped("a connection");
            bind(fd, (void *)&any, sizeof any);
            if (listen(fd, 1) == 0) escaped("a socket that listens");
        }
    }
    return argc != 3;
}

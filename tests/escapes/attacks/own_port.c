/* Connects to a port that was its own when somebody outside has taken it. Arguments: how it lets go of the port
 * (`close` or `shutdown`), a file that says which port that was, and one that says that it is taken. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

enum { PENDING = 8 };

static int stream(int flags) {
    int s = socket(AF_INET, SOCK_STREAM | flags, 0), one = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return s;
}

int main(int argc, char **argv) {
    int s = stream(0), one = 1, pending[PENDING];
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t len = sizeof own;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (argc != 4 || s < 0 || bind(s, (void *)&own, len) != 0 || listen(s, 0) != 0) {
        perror("no port, so nothing was tried");
        return 1;
    }
    getsockname(s, (void *)&own, &len);
    must_fail("sharing the port", setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one));
    /* Its own server is reached, until the queue is full; who comes then goes on trying. */
    for (int n = 0; n < PENDING; n++) {
        pending[n] = stream(SOCK_NONBLOCK);
        int failed = connect(pending[n], (void *)&own, len) != 0 && errno != EINPROGRESS;
        if (n == 0 && failed) {
            perror("not even its own");
            return 1;
        }
        if (n > 1 && !failed) fprintf(stderr, "%d is on its way\n", n);
    }
    if (strcmp(argv[1], "close") == 0) close(s);
    else shutdown(s, SHUT_RD);
    FILE *port = fopen(argv[2], "w");
    fprintf(port, "%d\n", ntohs(own.sin_port));
    fclose(port);
    for (double end = now() + 20; access(argv[3], F_OK) != 0 && now() < end;) usleep(10000);
    must_fail("its port", connect(stream(0), (void *)&own, len));
    struct sockaddr_in any = own;
    any.sin_addr.s_addr = htonl(INADDR_ANY);
    must_fail("its port by no address", connect(stream(0), (void *)&any, len));
    /* Beyond the first second the kernel has tried again. */
    sleep(2);
    return 0;
}

/* Listens without a bind: the kernel chooses a port, at every address. */
#include "attack.h"
#include <netinet/in.h>

int main(void) {
    must_fail("listen", listen(socket(AF_INET, SOCK_STREAM, 0), 5));
    must_fail("listen, IPv6", listen(socket(AF_INET6, SOCK_STREAM, 0), 5));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    must_fail("disconnect", connect(s, &none, sizeof none));
    return 0;
}

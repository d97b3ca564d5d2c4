/* Binds an abstract name, lets somebody outside have it, and connects to it as to its own. */
#include "attack.h"
#include <stddef.h>
#include <sys/un.h>

int main(int argc, char **argv) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path + 1, argv[1]);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[1]);
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(own, (void *)&name, length)) return 3;
    close(own);
    close(open("free", O_CREAT | O_WRONLY, 0600));
    while (access("taken", F_OK)) usleep(1000);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    must_fail("connect", connect(s, (void *)&name, length));
    must_fail("send", send(s, "x", 1, MSG_NOSIGNAL));
    return argc != 2;
}

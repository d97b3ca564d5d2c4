/* Sends to a name, which a rule lets it reach outside: that of a file, or an abstract one behind
 * `@`. Arguments: the name, `stream` or `datagram`, and how often. */
#include "attack.h"
#include <stddef.h>
#include <sys/un.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int kind = strcmp(argv[2], "stream") ? SOCK_DGRAM : SOCK_STREAM;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + strlen(argv[1]) + (argv[1][0] != '@');
    strcpy(to.sun_path, argv[1]);
    if (argv[1][0] == '@') to.sun_path[0] = 0;
    for (int turn = atoi(argv[3]); turn > 0; turn--) {
        int s = socket(AF_UNIX, kind, 0);
        if (s < 0) return 3;
        if (connect(s, (void *)&to, length) == 0 && write(s, "token", 5) == 5) fprintf(stderr, "it was sent\n");
        close(s);
    }
    return 0;
}

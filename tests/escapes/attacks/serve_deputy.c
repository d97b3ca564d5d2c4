/* Listens at ports and names of its own, and has another domain connect there, which knows what
   the caller may not. */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int listening(struct sockaddr *address, socklen_t length) {
    int s = socket(address->sa_family, SOCK_STREAM, 0);
    return s >= 0 && bind(s, address, length) == 0 && listen(s, 8) == 0 ? s : -1;
}

int main(int argc, char **argv) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un file = {.sun_family = AF_UNIX, .sun_path = "served"};
    socklen_t length = sizeof port;
    char text[16];
    unlink("served");
    int server = listening((void *)&port, length);
    if (argc < 2 || server < 0 || listening((void *)&file, sizeof file) < 0) {
        perror("no server, so nothing was tried");
        return 3;
    }
    getsockname(server, (void *)&port, &length);
    if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&port, length) != 0) {
        perror("not even its own");
        return 3;
    }
    snprintf(text, sizeof text, "%d", ntohs(port.sin_port));
    pid_t child = fork();
    if (child == 0) {
        execv("./deputy", (char *[]){"deputy", argv[1], "connect", text, NULL});
        _exit(3);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 3;
    return WEXITSTATUS(status);
}

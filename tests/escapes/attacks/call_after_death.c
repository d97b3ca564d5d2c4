/* In a run inside of a run, whose policy makes names in the directory of the first word take long to label: links
   `payload` there. First to say how long that takes; then with a process that ends while it is decided. */
#include "attack.h"
#include <pthread.h>

static char payload[4096];

static void *link_it(void *name) {
    link(payload, name);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2 || chdir(argv[1]) || !realpath("../../../../payload", payload)) return 3;
    double begun = now();
    if (link(payload, "first")) return 3;
    int ready = open("../../../../ready", O_WRONLY | O_CREAT, 0644);
    dprintf(ready, "%d\n", (int)((now() - begun) * 1000));
    pthread_t thread;
    pthread_create(&thread, NULL, link_it, "late");
    usleep(500000);
    _exit(0);
}

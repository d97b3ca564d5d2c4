/* The program of a domain that may not read `secret`. With an argument it tries, from many
 * threads. */
#include "attack.h"
#include <pthread.h>

static void *try(void *none) {
    for (int n = 0; n < 20; n++)
        if (open("secret", O_RDONLY) >= 0) escaped("read with the label of another domain");
    return none;
}

int main(int argc, char **argv) {
    pthread_t threads[16];
    if (argc < 2) return 0;
    if (open("granted", O_RDONLY) < 0) return 3;
    for (int n = 0; n < 16; n++) pthread_create(&threads[n], NULL, try, NULL);
    try(NULL);
    for (int n = 0; n < 16; n++) pthread_join(threads[n], NULL);
    return 0;
}

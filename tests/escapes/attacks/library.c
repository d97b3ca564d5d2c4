/* Leaves a file where it has been loaded. */
#include "attack.h"

__attribute__((constructor)) static void leave(void) {
    close(open("loaded", O_WRONLY | O_CREAT, 0600));
}

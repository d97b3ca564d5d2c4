/* The program of another domain: holds a secret in its environment, says that it is there, and waits. */
#include "attack.h"

int main(void) {
    if (write(1, "!", 1) != 1) return 7;
    usleep(600000);
    return 0;
}

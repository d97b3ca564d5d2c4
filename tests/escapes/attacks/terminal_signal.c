/* Has the terminal that is its standard input send signals to whoever is in its foreground, when somebody types. */
#include "attack.h"
#include <sys/ioctl.h>

int main(void) {
    int on = 1, ends[2];
    if (!isatty(0)) return 3;
    must_fail("O_ASYNC of a terminal", fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_ASYNC));
    must_fail("FIOASYNC of a terminal", ioctl(0, FIOASYNC, &on));
    if (fcntl(0, F_GETOWN) != 0) escaped("the terminal has an owner");
    /* Of all else, nobody is the owner until that is decided. */
    if (pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC) != 0) return 4;
    return fcntl(ends[0], F_GETFL) & O_ASYNC ? 0 : 5;
}

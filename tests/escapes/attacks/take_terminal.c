/* In the background: makes its own group the foreground of the terminal, so that what is typed for others comes to it. */
#include "attack.h"

int main(void) {
    signal(SIGTTOU, SIG_IGN);
    if (setpgid(0, 0) != 0) return 3;
    must_fail("the foreground", tcsetpgrp(0, getpgrp()));
    return tcgetpgrp(0) == getpgrp() ? ESCAPED : 0;
}

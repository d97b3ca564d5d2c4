/* Signals and slows down its process group, in which Dewar is, and whatever was started beside
   it. */
#include "attack.h"
#include <sys/resource.h>

int main(void) {
    signal(SIGTERM, SIG_IGN);
    int answer = kill(0, SIGTERM);
    fprintf(stderr, "kill: %d %s\n", answer, answer ? strerror(errno) : "");
    must_fail("setpriority", setpriority(PRIO_PGRP, 0, 15));
    must_fail("ioprio_set", syscall(SYS_ioprio_set, 2, 0, 3 << 13));
    return 0;
}

/* Makes a file longer than its limit. */
#include "attack.h"
#include <sys/resource.h>

int main(void) {
    if (close(creat("grown", 0600)) || setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096})) return 3;
    signal(SIGXFSZ, SIG_IGN);
    if (truncate("grown", 4096)) return 3;
    must_fail("truncate", truncate("grown", 8192));
    return errno != EFBIG;
}

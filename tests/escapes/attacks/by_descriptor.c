/* Uses what was left open for it: a file of outside as standard input, and a directory as
 * descriptor 9. */
#include "attack.h"

int main(void) {
    must_fail("reopen to write", open("/proc/self/fd/0", O_WRONLY));
    must_fail("reopen to truncate", open("/dev/stdin", O_WRONLY | O_TRUNC));
    must_not_read("below a directory", openat(9, "secret", O_RDONLY));
    must_not_read("below a directory, by its link", open("/proc/self/fd/9/secret", O_RDONLY));
    must_fail("make", mkdirat(9, "made", 0700));
    must_fail("go there", fchdir(9));
    return 0;
}

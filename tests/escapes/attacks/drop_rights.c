/* Drops its capabilities: nothing may be done with them on its behalf. Argument: a file that only
 * they open. */
#include "attack.h"
#include <linux/capability.h>

int main(int argc, char **argv) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    if (open(argv[1], O_WRONLY) < 0) {
        perror("it could not be opened with them either, so nothing was tried");
        return 3;
    }
    if (syscall(SYS_capset, &head, none)) return 3;
    must_not_read("read", open(argv[1], O_RDONLY));
    must_fail("write", open(argv[1], O_WRONLY));
    must_fail("make", open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600));
    must_fail("truncate", truncate(argv[1], 0));
    must_fail("chmod", chmod(argv[1], 0666));
    return argc != 2;
}

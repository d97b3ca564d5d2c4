/* Changes a file that it may only read, by ioctl(2). Argument: the file. The call must not get as
 * far as the file system. */
#include "attack.h"
#include <sys/ioctl.h>

int main(int argc, char **argv) {
    static const unsigned requests[] = {
        0x40086602, /* FS_IOC_SETFLAGS */
        0x40046602, 0x401c5820, /* FS_IOC_FSSETXATTR */
        0x40806685, /* FS_IOC_ENABLE_VERITY */
        0x40087602, /* FS_IOC_SETVERSION */
        0x40086604, 0x40046604, /* EXT4_IOC_SETVERSION */
        0x6609, /* EXT4_IOC_MIGRATE */
        0x40047211, /* FAT_IOCTL_SET_ATTRIBUTES */
        0x800c6613, /* FS_IOC_SET_ENCRYPTION_POLICY */
        0x50009401, 0x50009417, 0x5000940e, 0x50009418, 0x5000940f, 0x5000943f, /* subvolumes of btrfs */
    };
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0) return 3;
    for (unsigned n = 0; n < sizeof requests / sizeof *requests; n++) {
        char name[16];
        long argument[512] = {0x40};
        snprintf(name, sizeof name, "%x", requests[n]);
        must_fail(name, ioctl(fd, requests[n], argument));
        /* By the filter, or by policy, which is asked of the file's attributes. */
        if (errno != EPERM && errno != EACCES) escaped(name);
    }
    return argc != 2;
}

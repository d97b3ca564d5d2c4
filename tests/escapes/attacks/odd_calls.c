/* Calls by other entry points and numbers, and those that would go around the gate. Argument: the
 * secret. */
#include "attack.h"
#include <sched.h>
#include <sys/mman.h>

#define X32 0x40000000

static long int80(long number, long a, long b, long c) {
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    if (answer < 0) errno = -answer;
    return answer < 0 ? -1 : answer;
}

int main(int argc, char **argv) {
    char *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    strcpy(low, argv[1]);
    must_fail("i386", int80(5, (long)low, O_RDONLY, 0));
    must_fail("x32", syscall(X32 | SYS_open, argv[1], O_RDONLY));
    must_fail("x32 execve", syscall(X32 | 520, argv[1], 0, 0));
    must_fail("io_uring_setup", syscall(SYS_io_uring_setup, 8, low));
    for (int flag = 0; flag < 32; flag++) {
        long bit = 1L << flag;
        if (!(bit & 0x7e020080)) continue;
        must_fail("unshare", syscall(SYS_unshare, bit));
        if (bit != 0x80) must_fail("clone", syscall(SYS_clone, bit | SIGCHLD | 1L << 40, 0, 0, 0, 0));
    }
    must_fail("clone3", syscall(SYS_clone3, low, 64));
    must_fail("setns", syscall(SYS_setns, 0, 0));
    must_fail("mount", syscall(SYS_mount, "/", "/", "", 4096L, ""));
    must_fail("umount", syscall(SYS_umount2, "/proc", 2));
    must_fail("pivot_root", syscall(SYS_pivot_root, ".", "."));
    must_fail("chroot", chroot("."));
    must_fail("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    must_fail("move_mount", syscall(SYS_move_mount, 0, "", 0, "", 0));
    must_fail("bpf", syscall(SYS_bpf, 0, low, 64));
    must_fail("perf", syscall(SYS_perf_event_open, low, 0, -1, -1, 0));
    must_fail("userfaultfd", syscall(SYS_userfaultfd, 0));
    must_fail("keyctl", syscall(SYS_keyctl, 0, -3, 0));
    must_fail("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
    must_fail("a call without a name", syscall(1000));
    return argc != 2;
}

/* Puts seccomp filters of its own over Dewar's: answers its calls itself, allows them, hands them
 * to a tracer.
   Argument: the secret. */
#include "attack.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

static long install(unsigned action, unsigned flags) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, action)};
    struct sock_fprog program = {1, code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int main(int argc, char **argv) {
    must_fail("a second listener",
        install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER));
    install(SECCOMP_RET_ALLOW, 0);
    install(SECCOMP_RET_LOG, SECCOMP_FILTER_FLAG_TSYNC);
    must_not_read("under an allowing filter", open(argv[1], O_RDONLY));
    must_fail("dispatch", prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0));
    must_not_read("still", open(argv[1], O_RDONLY));
    return argc != 2;
}

/* Looks into a child, and traces it, by its number or a descriptor: what that means can be another process when the kernel looks.
 * Argument: own, if the run has PIDs of its own. */
#include "attack.h"
#include <linux/kcmp.h>

static char place[8] = "before";

static int is_traced(pid_t child) {
    long answer = ptrace(PTRACE_SEIZE, child, 0, 0);
    if (answer == 0) {
        kill(child, SIGSTOP);
        waitpid(child, NULL, __WALL);
        ptrace(PTRACE_DETACH, child, 0, 0);
        kill(child, SIGCONT);
    }
    return answer == 0;
}

int main(int argc, char **argv) {
    struct iovec here = {(char[8]){0}, 8}, there = {place, 8};
    int own = argc > 1 && !strcmp(argv[1], "own"), status;
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    int fd = syscall(SYS_pidfd_open, child, 0);
    if (fd < 0) return 3;
    must_fail("fetch a descriptor", syscall(SYS_pidfd_getfd, fd, 1, 0));
    long answers[] = {
        process_vm_readv(child, &here, 1, &there, 1, 0),
        process_vm_writev(child, &there, 1, &there, 1, 0),
        syscall(SYS_kcmp, getpid(), child, KCMP_VM, 0, 0),
        is_traced(child) ? 0 : -1,
    };
    for (unsigned n = 0; n < sizeof answers / sizeof *answers; n++) {
        if (own && answers[n] < 0) return 10 + n;
        if (!own) must_fail("by number", answers[n]);
    }
    /* Its own memory is nobody else's, and a debugger starts what it traces. */
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 8) return 5;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    child = fork();
    if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) ? 1 : raise(SIGSTOP));
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 6;
    kill(child, SIGKILL);
    return 0;
}

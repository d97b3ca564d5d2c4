/* Kills, stops, traces and reads its ancestors and the first process of its sandbox. Argument: a
 * PID outside. */
#include "attack.h"
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/prctl.h>

static void reach(pid_t pid) {
    static const char *files[] = {"environ", "mem", "maps", "auxv", "fd/0", "fd/3", "cwd/.", "root/etc/passwd", "exe"};
    char name[64], data[64];
    struct iovec here = {data, 8}, there = {data, 8};
    must_fail("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
    must_fail("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
    must_fail("process_vm_writev", process_vm_writev(pid, &here, 1, &there, 1, 0));
    for (unsigned n = 0; n < sizeof files / sizeof *files; n++) {
        snprintf(name, sizeof name, "/proc/%d/%s", pid, files[n]);
        must_not_read(name, open(name, O_RDONLY));
        must_fail(name, open(name, O_RDWR));
        snprintf(name, sizeof name, "/proc/%d", pid);
        if (chdir(name) == 0) {
            snprintf(name, sizeof name, "/proc/self/cwd/%s", files[n]);
            must_not_read(name, open(name, O_RDONLY));
        }
        int handle = open(files[n], O_PATH);
        if (handle >= 0) {
            snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
            must_not_read("through a handle", open(name, O_RDONLY));
            close(handle);
        }
    }
    int pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0) {
        for (int fd = 0; fd < 16; fd++) must_fail("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
        must_fail("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, 0, 0));
    }
    must_fail("prlimit", prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL));
}

int main(int argc, char **argv) {
    pid_t outside = atoi(argv[1]);
    pid_t parent = getppid();
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    reach(1);
    reach(outside);
    if (parent > 1) reach(parent);
    kill(1, SIGKILL);
    kill(1, SIGSTOP);
    must_fail("kill", kill(outside, SIGKILL));
    struct { int type; pid_t pid; } owner = {1, outside};
    must_fail("F_SETOWN", fcntl(0, F_SETOWN, outside));
    if (getpgid(outside) > 0) must_fail("F_SETOWN of a group", fcntl(0, F_SETOWN, -getpgid(outside)));
    must_fail("F_SETOWN_EX", fcntl(0, 15, &owner));
    must_fail("FIOSETOWN", ioctl(0, 0x8901, &outside));
    if (parent > 1) kill(parent, SIGKILL);
    if (parent > 1) kill(parent, SIGSTOP);
    kill(0, SIGUSR1);
    if (fork() == 0) {
        /* Whoever can be killed but this process's parent, which cannot know. */
        signal(SIGTERM, SIG_IGN);
        kill(-1, SIGTERM);
        _exit(0);
    }
    wait(NULL);
    setpriority(PRIO_USER, 0, 5);
    return argc != 2;
}

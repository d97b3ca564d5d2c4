/* Looks into a process of another domain that it has started. */
#include "attack.h"
#include <sys/resource.h>

static void look(pid_t pid) {
    static const char *files[] = {"environ", "mem", "maps", "auxv", "fd/1", "cwd/.", "syscall"};
    char name[64], data[8];
    struct iovec here = {data, 8}, there = {data, 8};
    for (unsigned n = 0; n < sizeof files / sizeof *files; n++) {
        snprintf(name, sizeof name, "/proc/%d/%s", pid, files[n]);
        must_not_read(name, open(name, O_RDONLY));
        int handle = open(name, O_PATH);
        if (handle >= 0) {
            snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
            must_not_read("through a handle", open(name, O_RDONLY));
        }
        snprintf(name, sizeof name, "/proc/%d", pid);
        int directory = open(name, O_PATH), own = open(".", O_PATH);
        must_not_read("from its directory", openat(directory, files[n], O_RDONLY));
        if (chdir(name) == 0) {
            snprintf(name, sizeof name, "/proc/self/cwd/%s", files[n]);
            must_not_read(name, open(name, O_RDONLY));
            must_not_read("from there", open(files[n], O_RDONLY));
            fchdir(own);
        }
    }
    must_fail("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
    must_fail("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
    int pidfd = syscall(SYS_pidfd_open, pid, 0);
    must_fail("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 1, 0));
    must_fail("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, NULL, 0));
    must_fail("F_SETOWN", fcntl(1, F_SETOWN, pid));
    size_t length;
    void *list;
    must_fail("get_robust_list", syscall(SYS_get_robust_list, pid, &list, &length));
    must_fail("prlimit", prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL));
}

int main(void) {
    int ends[2];
    char byte;
    if (pipe(ends)) return 3;
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"vault", NULL}, *environment[] = {"VAULT=secret", NULL};
        dup2(ends[1], 1);
        execve("./vault", words, environment);
        _exit(3);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) return 3;
    look(child);
    kill(child, SIGKILL);
    return 0;
}

/* In a run inside of a run: tries to get back to what the run around may do, or to harm that. The words are the
   program `dewar`, and a wider profile. The parent is a shell of the run around; descriptor 7 was a directory, and its 8
   is a pipe with something in it. */
#include "attack.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>

#define REQUEST "/proc/self/attr/dewar/exec"

static void read_by_names(pid_t parent) {
    char name[256];
    must_not_read("a denied file", open("secret", O_RDONLY));
    must_not_read("its name by a handle", openat(open(".", O_PATH), "secret", O_RDONLY));
    const char *ways[] = {"cwd/secret", "task/%d/cwd/secret", "fd/9", "environ", "mem", "maps", "root/etc/hostname"};
    for (unsigned n = 0; n < sizeof ways / sizeof *ways; n++) {
        char way[128];
        snprintf(way, sizeof way, ways[n], parent);
        snprintf(name, sizeof name, "/proc/%d/%s", parent, way);
        must_not_read(name, open(name, O_RDONLY));
    }
    const char *held[] = {"fd/8", "fd/9", "cwd/secret"};
    for (unsigned n = 0; n < sizeof held / sizeof *held; n++) {
        snprintf(name, sizeof name, "/proc/%d/%s", parent, held[n]);
        int handle = open(name, O_PATH);
        snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
        if (handle >= 0) must_not_read(held[n], open(name, O_RDONLY | O_NONBLOCK));
        if (handle >= 0) close(handle);
    }
    symlink("secret", "link");
    must_not_read("a link", open("link", O_RDONLY));
    must_fail("a hard link", link("secret", "linked"));
    must_not_read("the hard link", open("linked", O_RDONLY));
    must_fail("renaming it", rename("secret", "renamed"));
    must_fail("renaming what it lies in", rename("box", "bag"));
    must_not_read("in the renamed directory", open("bag/secret", O_RDONLY));
    must_not_read("in its directory", open("box/secret", O_RDONLY));
}

static void change(void) {
    must_fail("writing", open("kept", O_WRONLY));
    must_fail("cutting", truncate("kept", 0));
    must_fail("removing", unlink("kept"));
    must_fail("renaming", rename("kept", "away"));
    must_fail("replacing", rename("granted", "kept"));
    must_fail("a mode", chmod("kept", 0777));
    must_fail("memory of others", shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    must_fail("a descriptor of a directory", fcntl(7, F_GETFD));
}

static void harm(pid_t parent) {
    char data[8];
    struct iovec here = {data, 8}, there = {data, 8};
    must_fail("SIGKILL", kill(parent, SIGKILL));
    must_fail("SIGURG to the group", kill(0, SIGURG));
    must_fail("SIGURG to a group", kill(-getpgrp(), SIGURG));
    must_fail("SIGURG to all", kill(-1, SIGURG));
    must_fail("tgkill", syscall(SYS_tgkill, parent, parent, SIGURG));
    must_fail("ptrace", ptrace(PTRACE_SEIZE, parent, 0, 0));
    must_fail("process_vm_readv", process_vm_readv(parent, &here, 1, &there, 1, 0));
    must_fail("prlimit", prlimit(parent, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL));
    must_fail("setpriority", setpriority(PRIO_PROCESS, parent, 19));
    int pidfd = syscall(SYS_pidfd_open, parent, 0);
    must_fail("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 1, 0));
    int own = syscall(SYS_pidfd_open, getpid(), 0);
    must_fail("pidfd_send_signal", syscall(SYS_pidfd_send_signal, own, SIGURG, NULL, 0));
    must_fail("F_SETOWN", fcntl(1, F_SETOWN, parent));
    struct rlimit mark;
    getrlimit(RLIMIT_LOCKS, &mark);
    for (int n = 0; n < 8; n++) {
        struct rlimit other = {n, mark.rlim_max};
        must_fail("another mark", setrlimit(RLIMIT_LOCKS, &other));
        must_fail("another mark by prlimit", prlimit(0, RLIMIT_LOCKS, &other, NULL));
        must_fail("a mark of its parent", prlimit(parent, RLIMIT_LOCKS, &other, NULL));
    }
}

static void told_no(const char *policy, size_t length) {
    char answer[4096] = "";
    int fd = open(REQUEST, O_RDWR);
    if (fd < 0) return;
    for (size_t sent = 0; sent < length;) {
        ssize_t more = send(fd, policy + sent, length - sent, MSG_NOSIGNAL);
        if (more <= 0) break;
        sent += more;
    }
    shutdown(fd, SHUT_WR);
    if (read(fd, answer, sizeof answer - 1) > 0 && strncmp(answer, "in ", 3) == 0) escaped("what is no policy");
    char *end = strchr(answer, '\n');
    if (end && end[1]) escaped("an answer of several lines");
    close(fd);
}

static void ask_oddly(void) {
    static char much[6 << 20];
    memset(much, '(', sizeof much);
    const char *odd[] = {"", "{}", "null", "[[[[", "{\"name\":\"a\\nin x\",\"strict\":false,\"cil\":\"(x\"}",
                         "{\"name\":\"main\",\"strict\":1,\"cil\":\"\"}"};
    for (unsigned n = 0; n < sizeof odd / sizeof *odd; n++) told_no(odd[n], strlen(odd[n]));
    told_no(much, sizeof much);
    told_no(much, 1 << 20);
    must_not_read("what it had asked for", open(REQUEST, O_RDONLY));
    must_fail("another's", open("/proc/1/attr/dewar/exec", O_RDWR));
    /* Nobody sends anything: the others must not wait for it. */
    for (int n = 0; n < 100; n++) open(REQUEST, O_RDWR);
    if (open("granted", O_RDONLY) < 0) escaped("the monitor into waiting");
}

static void runs_without(const char *command) {
    int status = system(command);
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) escaped(command);
}

int main(int argc, char **argv) {
    char command[1024];
    pid_t parent = getppid();
    if (argc < 3) return 3;
    int granted = open("granted", O_RDONLY);
    if (granted < 0) return 3;
    read_by_names(parent);
    change();
    harm(parent);
    runs_without("cat secret >/dev/null 2>&1");
    snprintf(command, sizeof command, "%s run -p %s -- cat secret 2>/dev/null", argv[1], argv[2]);
    runs_without(command);
    snprintf(command, sizeof command, "env -u DEWAR_RUN %s run -p workspace -- cat secret 2>/dev/null", argv[1]);
    runs_without(command);
    pid_t child = fork();
    if (child == 0) {
        read_by_names(parent);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) _exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : 3);
    ask_oddly();
    read_by_names(parent);
    return 0;
}

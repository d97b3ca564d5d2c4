/* Makes system calls by a grammar, with hostile arguments, from several threads at once. What it is
 * after lies outside, and the test looks there: this program judges nothing.
 *
 * Arguments: `storm` or `list`, a seed, how long (seconds) or how many calls, then what to aim at:
 * a directory outside, the PID of a process outside, a TCP port and a UDP port on 127.0.0.1, an
 * abstract name, the path of a socket.
 *
 * `storm` starts processes of several threads, each of which makes calls until it hangs or dies.
 * `list` makes calls that neither wait nor depend on the time, one after the other, and prints how
 * each ended. */
#include "attack.h"
#include <arpa/inet.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static const char *outside, *local, *abstract_name;
static pid_t victim;
static int tcp_port, udp_port, is_list;

static __thread uint64_t state;

static uint64_t any(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull >> 11;
}

static uint64_t below(uint64_t n) { return any() % n; }
static int chance(int percent) { return below(100) < (uint64_t)percent; }

/* What a call takes: d directory, f descriptor, p path, o flags of open, m mode, b buffer, s size,
 * i any number, a address of a socket, l its length, h message, v pieces, c their count, z process,
 * k signal, x flags, 0 nothing, u socket family, t socket type, w how to open, g clone's flags, e
 * words of a program. */
struct call {
    int number;
    const char *takes;
    int lists; /* whether it may stand in a list */
};

static const struct call CALLS[] = {
    {SYS_open, "pom", 1}, {SYS_openat, "dpom", 1}, {SYS_openat2, "dpws", 1}, {SYS_creat, "pm", 1},
    {SYS_unlink, "p", 1}, {SYS_unlinkat, "dpx", 1}, {SYS_rmdir, "p", 1}, {SYS_mkdir, "pm", 1}, {SYS_mkdirat, "dpm", 1},
    {SYS_rename, "pp", 1}, {SYS_renameat2, "dpdpx", 1}, {SYS_link, "pp", 1}, {SYS_linkat, "dpdpx", 1},
    {SYS_symlink, "pp", 1}, {SYS_symlinkat, "pdp", 1}, {SYS_mknod, "pmi", 1}, {SYS_mknodat, "dpmi", 1},
    {SYS_chmod, "pm", 1}, {SYS_fchmod, "fm", 1}, {SYS_fchmodat, "dpm", 1}, {SYS_fchmodat2, "dpmx", 1},
    {SYS_chown, "pii", 1}, {SYS_fchownat, "dpiix", 1}, {SYS_truncate, "ps", 1}, {SYS_ftruncate, "fs", 1},
    {SYS_utimensat, "dpbx", 1}, {SYS_setxattr, "ppbsx", 1}, {SYS_fsetxattr, "fpbsx", 1}, {SYS_removexattr, "pp", 1},
    {SYS_stat, "pb", 1}, {SYS_statx, "dpxib", 1}, {SYS_access, "pm", 1}, {SYS_faccessat2, "dpmx", 1},
    {SYS_readlink, "pbs", 1}, {SYS_chdir, "p", 1}, {SYS_fchdir, "f", 1}, {SYS_statfs, "pb", 1},
    {SYS_getxattr, "ppbs", 1}, {SYS_name_to_handle_at, "dpbbx", 1}, {SYS_open_by_handle_at, "fbo", 1},
    {SYS_inotify_add_watch, "fpi", 1}, {SYS_memfd_create, "px", 1}, {SYS_fallocate, "fxss", 1},
    {SYS_copy_file_range, "fbfbsx", 0}, {SYS_splice, "fbfbsx", 0}, {SYS_tee, "ffsx", 0}, {SYS_sendfile, "ffbs", 0},
    {SYS_read, "fbs", 0}, {SYS_write, "fbs", 0}, {SYS_pwritev2, "fvcssx", 0}, {SYS_vmsplice, "fvcx", 0},
    {SYS_dup2, "ff", 0}, {SYS_fcntl, "fii", 0}, {SYS_ioctl, "fib", 0}, {SYS_close, "f", 0},
    {SYS_socket, "uti", 1}, {SYS_socketpair, "utib", 1}, {SYS_connect, "fal", 1}, {SYS_bind, "fal", 1},
    {SYS_listen, "fi", 1}, {SYS_sendto, "fbsxal", 1}, {SYS_sendmsg, "fhx", 1}, {SYS_sendmmsg, "fhcx", 1},
    {SYS_setsockopt, "fiibs", 1}, {SYS_getsockopt, "fiibb", 1}, {SYS_accept4, "fbbx", 0}, {SYS_recvmsg, "fhx", 0},
    {SYS_recvfrom, "fbsxbb", 0}, {SYS_shutdown, "fi", 0}, {SYS_getpeername, "fbb", 0},
    {SYS_kill, "zk", 0}, {SYS_tkill, "zk", 0}, {SYS_tgkill, "zzk", 0}, {SYS_rt_sigqueueinfo, "zkb", 0},
    {SYS_pidfd_open, "zx", 0}, {SYS_pidfd_send_signal, "fkbx", 0}, {SYS_pidfd_getfd, "ffx", 0},
    {SYS_ptrace, "izbb", 0}, {SYS_process_vm_readv, "zvcvcx", 0}, {SYS_process_vm_writev, "zvcvcx", 0},
    {SYS_process_madvise, "fvcix", 0}, {SYS_kcmp, "zziii", 0}, {SYS_prlimit64, "zibb", 0}, {SYS_setpriority, "izi", 0},
    {SYS_ioprio_set, "izi", 0}, {SYS_sched_setaffinity, "zsb", 0}, {SYS_sched_setscheduler, "zib", 0},
    {SYS_setuid, "i", 1}, {SYS_setresgid, "iii", 1}, {SYS_capset, "bb", 1}, {SYS_prctl, "iibbb", 0},
    {SYS_mount, "pppxb", 1}, {SYS_umount2, "px", 1}, {SYS_pivot_root, "pp", 1}, {SYS_chroot, "p", 1},
    {SYS_unshare, "g", 1}, {SYS_setns, "fg", 1}, {SYS_clone, "g0000", 0}, {SYS_clone3, "bs", 1},
    {SYS_execve, "pee", 0}, {SYS_execveat, "dpeex", 0}, {SYS_bpf, "ibs", 1}, {SYS_perf_event_open, "bziix", 1},
    {SYS_userfaultfd, "x", 1}, {SYS_keyctl, "iiiii", 1}, {SYS_add_key, "ppbsi", 1}, {SYS_request_key, "pppi", 1},
    {SYS_io_uring_setup, "ib", 1}, {SYS_io_setup, "ib", 0}, {SYS_fanotify_init, "xo", 1}, {SYS_quotactl, "ipib", 1},
    {SYS_sethostname, "bs", 1}, {SYS_settimeofday, "bb", 1}, {SYS_syslog, "ibs", 0}, {SYS_acct, "p", 1},
    {SYS_swapon, "px", 1}, {SYS_shmget, "isx", 0}, {SYS_shmat, "iix", 0}, {SYS_msgget, "ix", 0}, {SYS_semget, "iix", 0},
    {SYS_mq_open, "pomb", 0}, {SYS_landlock_create_ruleset, "bsx", 1}, {SYS_landlock_restrict_self, "fx", 1},
    {SYS_mmap, "0sixfs", 0}, {SYS_mremap, "bssxb", 0}, {SYS_mprotect, "bsi", 0}, {SYS_madvise, "bsi", 0},
    {SYS_personality, "i", 0}, {SYS_umask, "m", 1}, {SYS_getdents64, "fbs", 0}, {SYS_close_range, "ffx", 0},
    {SYS_epoll_ctl, "fifb", 0}, {SYS_pipe2, "bx", 0}, {SYS_eventfd2, "ix", 0}, {SYS_setgroups, "ib", 1},
};
#define MANY(list) (sizeof(list) / sizeof(list)[0])

static char *room;
#define ROOM (64 * 4096)

static char *buffer(void) { return room + below(ROOM / 8 - 64) * 8; }

static char *path(void) {
    static const char *const BELOW[] = {"", "/file", "/secret", "/dir", "/dir/file", "/new", "/link", "/../outside/file"};
    static const char *const OWN[] = {"a", "b", "d", "d/a", "d/b", "l", "./..", "..", ".", "/", "", "d/../a", "//tmp//x", "/dev/shm/x",
        ".git/config", ".git/hooks/pre-commit", ".vscode", "HEAD", "objects", "refs", ".envrc", "user.a",
        "/etc/passwd", "/etc/shadow", "/dev/null", "/dev/tty", "/dev/mem", "/dev/sda", "/usr/bin/true", "/bin/sh",
        "/proc/self/mem", "/proc/self/exe", "/proc/self/root/etc/shadow", "/proc/self/cwd/a", "/proc/self/fd/3",
        "/proc/1/root", "/proc/1/mem", "/proc/thread-self/attr/current", "/proc/sys/kernel/core_pattern", "/sys/kernel"};
    char *at = buffer();
    switch (below(6)) {
    case 0:
        snprintf(at, 500, "%s%s", outside, BELOW[below(MANY(BELOW))]);
        break;
    case 1:
        snprintf(at, 500, "/proc/%d/%s", chance(50) ? victim : 1,
            (const char *[]){"mem", "root", "cwd", "fd/0", "environ", "maps"}[below(6)]);
        break;
    case 2:
        snprintf(at, 500, "d/%s%s", chance(50) ? "../" : "l/", OWN[below(MANY(OWN))]);
        break;
    default:
        strcpy(at, OWN[below(MANY(OWN))]);
    }
    return at;
}

static void *address(int *length) {
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        uint16_t family;
        char bytes[128];
    } to;
    memset(&to, 0, sizeof to);
    int port = htons(chance(50) ? udp_port : tcp_port);
    switch (below(4)) {
    case 0:
        to.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        *length = sizeof to.v4;
        break;
    case 1:
        to.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        if (chance(50)) inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.v6.sin6_addr);
        *length = sizeof to.v6;
        break;
    case 2:
        to.local.sun_family = AF_UNIX;
        strcpy(to.local.sun_path + 1, abstract_name);
        *length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name);
        break;
    default:
        to.local.sun_family = AF_UNIX;
        strcpy(to.local.sun_path, local);
        *length = sizeof to.local;
    }
    if (chance(20)) to.family = below(46);
    if (chance(20)) *length = below(130);
    return memcpy(buffer(), &to, sizeof to);
}

static uint64_t message(void) {
    int length;
    struct mmsghdr *header = (void *)buffer();
    struct iovec *piece = (void *)buffer();
    struct cmsghdr *control = (void *)buffer();
    *piece = (struct iovec){buffer(), below(64)};
    char *to = address(&length);
    *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(4), .cmsg_level = chance(50) ? SOL_SOCKET : below(50),
        .cmsg_type = below(8)};
    memset(header, 0, sizeof *header);
    header->msg_hdr = (struct msghdr){.msg_name = chance(80) ? to : NULL, .msg_namelen = length, .msg_iov = piece,
        .msg_iovlen = below(3), .msg_control = control, .msg_controllen = chance(30) ? sizeof *control + 8 : 0};
    return (uint64_t)header;
}

static uint64_t pieces(void) {
    struct iovec *all = (void *)buffer();
    for (int n = 0; n < 2; n++) all[n] = (struct iovec){buffer(), below(4096)};
    return (uint64_t)all;
}

static uint64_t flags(void) {
    static const uint64_t SOME[] = {0, 1, 2, 4, 8, 0x10, 0x80, 0x100, 0x200, 0x400, 0x1000, 0x4000, 0x40000, 0x80000, 0x20000000};
    return chance(60) ? SOME[below(MANY(SOME))] : SOME[below(MANY(SOME))] | SOME[below(MANY(SOME))];
}

static uint64_t one(char kind, int *length) {
    static const int OPEN[] = {O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW,
        O_PATH, O_TMPFILE, O_CLOEXEC};
    static const int NEW[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_VM, CLONE_FS,
        CLONE_FILES, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, CLONE_PARENT, CLONE_VFORK, CLONE_PTRACE, SIGCHLD};
    static const int SIGNALS[] = {0, SIGUSR1, SIGCONT, SIGSTOP, SIGKILL, SIGTERM, SIGHUP, SIGWINCH, 99};
    switch (kind) {
    case 'd': return chance(70) ? (uint64_t)AT_FDCWD : below(16);
    case 'f': return chance(90) ? below(16) : any();
    case 'p': return chance(97) ? (uint64_t)path() : below(3) * 0x7fffffff;
    case 'o': return OPEN[below(3)] | OPEN[below(MANY(OPEN))] | OPEN[below(MANY(OPEN))] | O_NONBLOCK;
    case 'm': return chance(80) ? 0600 | below(0200) : any() & 0177777;
    case 's': return chance(80) ? below(256) : (uint64_t[]){0, 4096, 1 << 20, 1ull << 31, -1ull}[below(5)];
    case 'i': return chance(70) ? below(48) : any();
    case 'a': return (uint64_t)address(length);
    case 'l': return *length;
    case 'h': return message();
    case 'v': return pieces();
    case 'c': return below(3);
    /* Not the process that starts all others: the storm would be over. */
    case 'z': return chance(60) ? victim : (uint64_t)(pid_t[]){1, getpid(), -victim}[below(3)];
    case 'k': return SIGNALS[below(MANY(SIGNALS))];
    case 'x': return flags();
    case '0': return 0;
    case 'u': return (int[]){AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG, 45}[below(8)];
    case 't': return (1 + below(5)) | SOCK_NONBLOCK;
    case 'g': return NEW[below(MANY(NEW))] | (chance(50) ? NEW[below(MANY(NEW))] : 0) | SIGCHLD;
    case 'e': {
        char **words = (void *)buffer();
        words[0] = path(), words[1] = NULL;
        return (uint64_t)words;
    }
    case 'w': {
        struct open_how *how = (void *)buffer();
        *how = (struct open_how){.flags = one('o', length), .mode = chance(50) ? 0 : 0600, .resolve = chance(50) ? 0 : below(64)};
        return (uint64_t)how;
    }
    default: return chance(95) ? (uint64_t)buffer() : (uint64_t[]){0, 1, -4096ull, 1ull << 47}[below(4)];
    }
}

/* Makes one call; how it ended. */
static long make(const struct call *call, int number) {
    uint64_t args[6] = {0};
    int length = 16;
    for (int n = 0; n < 6 && call->takes[n]; n++) args[n] = one(call->takes[n], &length);
    long answer = syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (answer == 0 && number == SYS_clone) _exit(0);
    return answer < 0 ? -errno : answer;
}

static int opens(const struct call *call) {
    return call->number == SYS_open || call->number == SYS_openat || call->number == SYS_openat2;
}

static void *storm(void *seed) {
    state = (uint64_t)seed | 1;
    for (int n = 0; n < 400; n++) {
        static const int NEVER[] = {SYS_exit, SYS_exit_group, SYS_reboot, SYS_kexec_load, SYS_vfork, SYS_fork, SYS_pause,
            SYS_rt_sigreturn, SYS_kill, SYS_tkill};
        const struct call *call = &CALLS[below(MANY(CALLS))];
        if (chance(95)) {
            make(call, call->number);
            continue;
        }
        int number = chance(80) ? below(480) : (int[]){9999, 0x40000000, 512, 1 << 20}[below(4)];
        for (size_t i = 0; i < MANY(NEVER); i++)
            if (number == NEVER[i]) number = 9999;
        struct call odd = {number, "bbbbbb", 0};
        make(&odd, number);
    }
    return NULL;
}

static void limit(int resource, rlim_t to) {
    struct rlimit limit = {to, to};
    setrlimit(resource, &limit);
}

/* Descriptors from 3 on, of every kind. */
static void prepare(void) {
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mkdir("d", 0700);
    close(open("d/a", O_RDWR | O_CREAT, 0600));
    symlink(outside, "d/l");
    open("a", O_RDWR | O_CREAT, 0600);
    open(".", O_RDONLY | O_DIRECTORY);
    open("/", O_PATH);
    open("d", O_PATH);
    int two[2];
    pipe2(two, O_NONBLOCK);
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, two);
    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    open("/proc/self/maps", O_RDONLY);
}

static void sacrifice(uint64_t seed) {
    limit(RLIMIT_CPU, 2);
    limit(RLIMIT_FSIZE, 1 << 20);
    limit(RLIMIT_NOFILE, 64);
    limit(RLIMIT_CORE, 0);
    prepare();
    state = seed | 1;
    pthread_t thread[3];
    for (int n = 0; n < 3; n++)
        if (pthread_create(&thread[n], NULL, storm, (void *)(seed * 8 + n + 1))) goto alone;
alone:
    storm((void *)(seed * 8 + 7));
    _exit(0);
}

static void ignore(void) {
    for (int n = 1; n < 32; n++) signal(n, n == SIGCHLD ? SIG_DFL : SIG_IGN);
}

int main(int argc, char **argv) {
    if (argc != 10) return 3;
    is_list = !strcmp(argv[1], "list");
    uint64_t seed = strtoull(argv[2], NULL, 0);
    long much = atol(argv[3]);
    outside = argv[4], victim = atoi(argv[5]), tcp_port = atoi(argv[6]), udp_port = atoi(argv[7]);
    abstract_name = argv[8], local = argv[9];
    if (is_list) {
        FILE *out = fdopen(fcntl(1, F_DUPFD, 40), "w");
        prepare();
        state = seed * 2 + 1;
        memset(room, 0, ROOM);
        signal(SIGPIPE, SIG_IGN);
        for (long n = 0; n < much; n++) {
            const struct call *call = &CALLS[below(MANY(CALLS))];
            if (!call->lists) continue;
            long answer = make(call, call->number);
            struct stat it;
            int lists = opens(call) && answer > 15 && !fstat(answer, &it) && S_ISDIR(it.st_mode);
            lists = lists && !(fcntl(answer, F_GETFL) & (O_DIRECTORY | O_PATH));
            /* Descriptors stay those that were prepared; a number may be none. */
            if (answer > 15 && answer < 4096 && answer != fileno(out)) close(answer);
            const char *done = lists ? "done, a directory" : "done";
            fprintf(out, "%ld %d %s\n", n, call->number, answer < 0 ? strerror(-answer) : done);
        }
        return fflush(out);
    }
    ignore();
    double end = now() + much;
    for (uint64_t round = 0; now() < end; round++) {
        pid_t child = fork();
        if (child == 0) sacrifice(seed * 1000003 + round);
        if (child < 0) {
            usleep(10000);
            continue;
        }
        double late = now() + 0.4;
        int status;
        /* A thread of it that has asked to be traced is waited for by itself, and before its
         * leader. */
        for (pid_t ended = 0; ended != child;) {
            ended = waitpid(-1, &status, WNOHANG | __WALL);
            if (ended < 0 && errno == ECHILD) break;
            if (now() > late) kill(child, SIGKILL);
            if (ended <= 0) usleep(1000);
        }
        /* What it has left behind. */
        while (waitpid(-1, &status, WNOHANG | __WALL) > 0) continue;
    }
    printf("over\n");
    return 0;
}

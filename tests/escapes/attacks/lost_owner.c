/* Has a name that another domain may reach outside, keeps the socket where nobody looks for it, and
 * has that domain send there. Arguments: the name, `stream` or `datagram`, and where it is kept: in
 * a queue (`flight`), in the table of a thread (`thread`), behind more names than are remembered
 * (`many`), or nowhere now and then (`turns`). */
#include "attack.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/un.h>

static int kind, is_held;
static struct sockaddr_un name = {.sun_family = AF_UNIX};
static socklen_t length;

static void nothing_tried(const char *what) {
    perror(what);
    _exit(3);
}

static void call(const char *text) {
    length = offsetof(struct sockaddr_un, sun_path) + strlen(text) + (text[0] != '@');
    strcpy(name.sun_path, text);
    if (text[0] == '@') name.sun_path[0] = 0;
}

static int bound(void) {
    int s = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (void *)&name, length)) return -1;
    if (kind == SOCK_STREAM && listen(s, 8)) return -1;
    return s;
}

/* Whether something was sent to it. */
static void receive(int s) {
    char text[16];
    struct pollfd is = {.fd = s, .events = POLLIN};
    if (poll(&is, 1, 0) != 1) return;
    int from = kind == SOCK_STREAM ? accept(s, NULL, NULL) : s;
    if (from >= 0 && read(from, text, sizeof text) > 0) escaped("what another domain sends");
}

/* The other domain sends, often if the name comes and goes. */
static void send_by_another(char **argv, const char *times) {
    pid_t child = fork();
    if (child == 0) {
        execv("./sender", (char *[]){"sender", argv[1], argv[2], (char *)times, NULL});
        _exit(3);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) nothing_tried("the other domain");
}

static void *keep(void *argv) {
    if (unshare(CLONE_FILES)) nothing_tried("a table of its own");
    int s = bound();
    if (s < 0) nothing_tried("bind");
    __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) receive(s), usleep(1000);
    receive(s);
    __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
    return argv;
}

static void *take_turns(void *unused) {
    for (;;) {
        int s = bound();
        if (s < 0) continue;
        usleep(100);
        receive(s);
        close(s);
    }
    return unused;
}

/* Sends a descriptor to where it is not received. */
static void put(int queue, int fd) {
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(queue, &message, 0) != 1) nothing_tried("sendmsg");
    close(fd);
}

static int fetch(int queue) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd;
    if (recvmsg(queue, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) nothing_tried("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    alarm(100);
    kind = strcmp(argv[2], "stream") ? SOCK_DGRAM : SOCK_STREAM;
    call(argv[1]);
    if (!strcmp(argv[3], "thread") || !strcmp(argv[3], "turns")) {
        int turns = argv[3][1] == 'u';
        pthread_t thread;
        pthread_create(&thread, NULL, turns ? take_turns : keep, NULL);
        while (!turns && !__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) usleep(1000);
        send_by_another(argv, turns ? "2000" : "1");
        if (turns) return 0;
        __atomic_store_n(&is_held, 0, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) usleep(1000);
        return 0;
    }
    int own = bound(), queue[2];
    if (own < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, queue)) nothing_tried("bind");
    if (!strcmp(argv[3], "flight")) put(queue[0], own);
    int many = strcmp(argv[3], "many") ? 0 : argv[1][0] == '@' ? 10001 : 600;
    for (int n = 0; n < many; n++) {
        char text[64];
        snprintf(text, sizeof text, "%sother%d", argv[1][0] == '@' ? argv[1] : "", n);
        call(text);
        int s = socket(AF_UNIX, kind, 0);
        if (s < 0 || bind(s, (void *)&name, length)) nothing_tried("another name");
        close(s);
    }
    send_by_another(argv, "1");
    receive(many ? own : !strcmp(argv[3], "flight") ? fetch(queue[1]) : own);
    return 0;
}

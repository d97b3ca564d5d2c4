// Has the kernel hand all its calls to itself (PR_SET_SYSCALL_USER_DISPATCH), and makes what it is
// handed, but for the first, for which it makes a call of its own: it keeps a descriptor.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile char selector, *go;
static volatile int handed, fd;

static void on_call(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    selector = 0;
    if (handed++ == 0)
        fcntl(fd, F_DUPFD, 200);
    registers[REG_RAX] = syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI],
        registers[REG_RDX], registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    selector = 1;
}

int main(void) {
    struct sigaction action = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER };
    int readable = 0;
    fd = open("secret", O_RDONLY);
    go = mmap(0, 4096, PROT_READ, MAP_SHARED, open("go", O_RDONLY), 0);
    sigaction(SIGSYS, &action, 0);
    if (prctl(59, 1, 0, 0, &selector) != 0)
        return 3;
    close(open("dispatched.waits", O_CREAT | O_WRONLY, 0600));
    selector = 1;
    while (*go == 0)
        ;
    selector = 0;
    for (int at = fd; at < 300; at++) {
        char c;
        readable += pread(at, &c, 1, 0) == 1 && c == 's';
    }
    printf("%d\n", readable);
    return 0;
}

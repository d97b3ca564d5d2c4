/* Reads its first argument again and again, and tells standard output each time; each process, or
   thread, hands the descriptor on to the next and ends, after some microseconds. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACKS = 256, STACK = 16384 };
static char *stacks;
static volatile int held;
static volatile long count;

static void pass_on(void) {
    int next = dup(held);
    close(held);
    held = next;
    char byte;
    if (++count % 64 == 0 && pread(held, &byte, 1, 0) == 1)
        (void)!write(STDOUT_FILENO, "read\n", 5);
}

static int thread(void *unused) {
    (void)unused;
    const int flags =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    pass_on();
    while (clone(thread, stacks + (count % STACKS + 1) * STACK - 64, flags, 0) < 0) {
    }
    syscall(SYS_exit, 0);
    return 0;
}

int main(int argc, char **argv) {
    held = open(argv[1], O_RDONLY);
    if (argc > 2 && strcmp(argv[2], "threads") == 0) {
        int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
        stacks = mmap(0, (STACKS + 2) * STACK, protection, flags, -1, 0);
        thread(0);
    }
    signal(SIGCHLD, SIG_IGN);
    if (fork() != 0) {
        close(held);
        pause();
    }
    for (;;) {
        pass_on();
        if (fork() > 0)
            _exit(0);
    }
}

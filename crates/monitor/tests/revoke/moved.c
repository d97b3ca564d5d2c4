// moved COUNT: opens `secret` so often, and is in a restartable sequence that covers nearly all of
// its memory, so that the kernel leads it to `handler`, whatever its monitor sets it to. There it
// keeps a descriptor by a call of its own, makes the others as they were asked for, and names the
// sequence again. Prints how many descriptors can be read once there is something in the file `go`.
//
// Its `struct rseq` lies in the file `area`. Fixed addresses:
// 0x11000 handler, 0x12040 the section, 0x18000 data, 0x1c000 `go`, 0x1d000 `area`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__asm__(
    "handler:\n"
    "  movq $0x12040, 0x1d008\n"
    "  test %rbx, %rbx\n"
    "  jnz lent\n"
    "  cmp $0x5eed5eed, %rdi\n"
    "  je spin\n"
    "  cmp $72, %rax\n" // fcntl
    "  jne faithful\n"
    "  cmp $1, %rsi\n" // F_GETFD
    "  jne faithful\n"
    "  cmpq $0, 0x18008\n"
    "  jne faithful\n"
    "  movq $1, 0x18008\n"
    "  mov $0, %rsi\n" // F_DUPFD
    "  mov $200, %rdx\n"
    "faithful:\n"
    "  syscall\n"
    "  ud2\n"
    // Led from lent code, whose table is in `rbx`; it lies in the page before.
    "lent:\n"
    "  cmpq $0, 0x18008\n"
    "  jne back\n"
    "  movq $1, 0x18008\n"
    "  mov $72, %rax\n"
    "  mov 0x18010, %rdi\n"
    "  mov $0, %rsi\n"
    "  mov $200, %rdx\n"
    "  syscall\n"
    "back:\n"
    "  mov %rbx, %rax\n"
    "  and $-4096, %rax\n"
    "  sub $4096, %rax\n"
    "  jmp *%rax\n"
    "spin:\n"
    "  jmp *0x18000\n"
    "handler_end:\n"
    "wait_in_section:\n"
    "  push %rbx\n"
    "  xor %ebx, %ebx\n"
    "  mov $0x5eed5eed, %edi\n"
    "waiting:\n"
    "  pause\n"
    "  cmpb $0, 0x1c000\n"
    "  je waiting\n"
    "  pop %rbx\n"
    "  ret\n");
extern char handler[], handler_end[], waiting[];
extern void wait_in_section(void);

int main(int argc, char **argv) {
    int prot = PROT_READ | PROT_WRITE, shared = MAP_SHARED | MAP_FIXED;
    int count = atoi(argv[1]), first = -1, readable = 0;
    for (int i = 0; i < count; i++) {
        int fd = open("secret", O_RDONLY);
        if (first < 0)
            first = fd;
    }
    mmap((void *)0x10000, 0x10000, prot | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap((void *)0x1c000, 4096, prot, shared, open("go", O_RDWR), 0);
    mmap((void *)0x1d000, 4096, prot, shared, open("area", O_RDWR), 0);
    *(uint32_t *)(0x11000 - 4) = 0x53053053;
    memcpy((void *)0x11000, handler, handler_end - handler);
    volatile uint64_t *data = (void *)0x18000, *section = (void *)0x12040, *area = (void *)0x1d000;
    data[0] = (uint64_t)waiting, data[2] = first;
    section[1] = 0x20000, section[2] = 0x7fffffffe000 - 0x20000, section[3] = 0x11000;
    if (syscall(SYS_rseq, 0x1d000, 32, 0, 0x53053053) != 0)
        return 3;
    close(open("moved.waits", O_CREAT | O_WRONLY, 0600));
    area[1] = 0x12040;
    wait_in_section();
    area[1] = 0;
    syscall(SYS_rseq, 0x1d000, 32, 1, 0x53053053);
    for (int fd = first; fd < 300; fd++) {
        char c;
        readable += pread(fd, &c, 1, 0) == 1 && c == 's';
    }
    printf("%d\n", readable);
    return 0;
}

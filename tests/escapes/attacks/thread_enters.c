/* Enters another domain from a thread, or from the first one, of a process whose threads are all
 * known to the monitor. */
#include "attack.h"
#include <pthread.h>

static pthread_barrier_t known;

static void use(void) {
    for (int n = 0; n < 20; n++) {
        int fd = open("secret", O_RDONLY);
        if (fd < 0) _exit(3);
        close(fd);
    }
    pthread_barrier_wait(&known);
}

static void enter(char *argument) {
    char *words[] = {"narrow", argument, NULL};
    execve("./narrow", words, words + 2);
    _exit(4);
}

static void *thread(void *enters) {
    use();
    if (enters) enter("try");
    return pause(), enters;
}

static void round_of(int by_first) {
    pthread_t threads[4];
    pthread_barrier_init(&known, NULL, 5);
    for (int n = 0; n < 4; n++) pthread_create(&threads[n], NULL, thread, !by_first && n == 2 ? "" : NULL);
    use();
    if (by_first) enter("try");
    pause();
}

int main(void) {
    for (int n = 0; n < 21; n++) {
        int status = 0;
        pid_t child = fork();
        /* The first one tells processes apart: before, all have one label. */
        if (child == 0) n ? round_of(n % 2) : enter(NULL);
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 5;
        if (WEXITSTATUS(status)) return WEXITSTATUS(status);
    }
    return 0;
}

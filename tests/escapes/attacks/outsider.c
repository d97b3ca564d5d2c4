/* Outside: starts processes, as a shell does, until one has the number that a file names, and sees whether that one is changed
 * from inside. Ends when it is killed. */
#include "attack.h"
#include <sys/prctl.h>
#include <sys/resource.h>

enum { MOST = 400, FILES = 77 };

static void be_signalled(int signal) { escaped("signals a process outside"); }

static void be_there(void) {
    struct rlimit limit;
    signal(SIGUSR2, be_signalled);
    prctl(PR_SET_NAME, "outsider");
    for (double end = now() + 4; now() < end; usleep(1000))
        if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == FILES) escaped("changes a process outside");
    _exit(0);
}

int main(int argc, char **argv) {
    int status;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;; usleep(1000)) {
        FILE *file = fopen(argv[1], "r");
        int number = 0;
        if (!file || fscanf(file, "%d", &number) != 1) continue;
        fclose(file);
        for (int n = 0; n < MOST; n++) {
            pid_t child = fork();
            if (child == 0 && getpid() != number) _exit(0);
            if (child == 0) be_there();
            waitpid(child, &status, 0);
            if (child != number) continue;
            printf("%d\n", number);
            fflush(stdout);
            if (status) return ESCAPED;
            break;
        }
        while (!access(argv[1], F_OK)) usleep(1000);
    }
}

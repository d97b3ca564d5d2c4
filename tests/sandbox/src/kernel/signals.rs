//! Signals that come while a call is decided, or made in the program's place.

use crate::{Case, cases, same::Same, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    calls_are_made_once_under_a_storm_of_signals,
    calls_are_made_once_under_a_storm_of_signals_in_two_domains,
];

/// Arguments: whether the handler restarts calls. Every 100 µs comes a signal while files are made, renamed, removed and
/// executed. A call that a signal has ended has not been made, and is made anew; a fork is never ended.
const STORM: &str = r#"cat > storm.c <<'END'
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long signals;
static void on(int signal) { signals++; }
static int restarts;
static int interrupted(void) { return errno == EINTR && !restarts; }
static void check(const char *what, int result) { if (result < 0) { perror(what); exit(1); } }
#define MAKE(call) do { int result; while ((result = (call)) < 0 && interrupted()); check(#call, result); } while (0)
static void execute(char *name) {
    pid_t child = fork();
    check("fork", child);
    if (child == 0) { char *words[] = {name, "0", "child", 0}; do execv(name, words); while (interrupted()); _exit(8); }
    int status;
    while (waitpid(child, &status, 0) < 0) if (!interrupted()) exit(2);
    if (WEXITSTATUS(status) != 7) { printf("%x\n", status); exit(3); }
}
int main(int argc, char **argv) {
    if (argc > 2) return 7;
    restarts = atoi(argv[1]);
    struct sigaction action = {.sa_handler = on, .sa_flags = restarts ? SA_RESTART : 0};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, 0);
    for (long turn = 0; signals < 10000; turn++) {
        int fd;
        MAKE(fd = open("a", O_CREAT | O_EXCL | O_RDWR, 0600)); close(fd);
        MAKE(fd = open("/etc/passwd", O_RDONLY)); close(fd);
        MAKE(rename("a", "b")); MAKE(unlink("b"));
        MAKE(mkdir("d", 0700)); MAKE(chdir("d")); MAKE(chdir("..")); MAKE(rmdir("d"));
        if (turn % 20 == 0) execute(argv[0]);
    }
    puts("done");
}
END
gcc -O -o storm storm.c"#;

fn storm(stage: &Stage) -> Same<'_> {
    stage.same("for restarts in 1 0; do ./storm $restarts || exit; done").before(STORM)
}

fn calls_are_made_once_under_a_storm_of_signals(stage: &Stage) {
    storm(stage).check();
}

fn calls_are_made_once_under_a_storm_of_signals_in_two_domains(stage: &Stage) {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    storm(stage).profile(profile.to_str().expect("UTF-8")).check();
}

//! Signals that come while a call is decided, or made in the program's place.

use crate::{Case, cases, same::Same, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    calls_are_made_once_under_a_storm_of_signals,
    calls_are_made_once_under_a_storm_of_signals_in_two_domains,
    threads_end_with_their_process_under_a_storm_of_signals,
    a_thread_whose_file_is_too_long_does_not_go_on,
    signals_of_files_are_had_by_ioctl,
];

/// Arguments: whether the handler restarts calls. Every 100 µs comes a signal while files are made,
/// renamed, removed and executed. A call that a signal has ended has not been made, and is made
/// anew; a fork is never ended.
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
    storm(stage).profile(&two_domains(stage)).check();
}

fn two_domains(stage: &Stage) -> String {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    profile.to_str().expect("UTF-8").to_owned()
}

/// 300 times, a process with a second thread ends while a signal comes every 20 µs.
const ENDS: &str = r#"cat > ends.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void on(int signal) {}
static void *sleeps(void *none) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    for (;;) pause();
    return none;
}
static void end(void) {
    pthread_t thread;
    struct sigaction action = {.sa_handler = on};
    struct itimerval often = {{0, 20}, {0, 20}};
    pthread_create(&thread, 0, sleeps, 0);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    _exit(7);
}
int main(void) {
    for (int round = 0; round < 300; round++) {
        int status, ended = 0;
        pid_t child = fork();
        if (child == 0) end();
        for (int turn = 0; turn < 10000 && !ended; turn++) {
            ended = waitpid(child, &status, WNOHANG);
            usleep(1000);
        }
        if (!ended) { kill(child, SIGKILL); puts("a thread is left"); return 1; }
        if (status != 7 << 8) { printf("status %x\n", status); return 1; }
    }
    puts("done");
}
END
gcc -O -o ends ends.c -lpthread"#;

fn threads_end_with_their_process_under_a_storm_of_signals(stage: &Stage) {
    for command in ["./ends", "ls > listed; ./ends"] {
        stage.same(command).before(ENDS).profile(&two_domains(stage)).check();
    }
}

/// The signal is the calling thread's: another one would end the process a moment later.
fn a_thread_whose_file_is_too_long_does_not_go_on(stage: &Stage) {
    let script = r#"python3 - <<'END'
import os, resource, signal, threading
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
open("f", "w").close()
def cut():
    try: os.truncate("f", 200)
    except OSError: pass
    os.write(1, b"went on\n")
for turn in range(100):
    child = os.fork()
    if child == 0:
        threads = [threading.Thread(target=cut) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGXFSZ, status
END"#;
    stage.same(script).check();
}

/// As nginx has them, and by `FIOSETOWN` and `SIOCSPGRP`.
fn signals_of_files_are_had_by_ioctl(stage: &Stage) {
    let script = r#"python3 - <<'END'
import fcntl, os, signal, socket, struct, time
signal.signal(signal.SIGIO, lambda *_: print("signalled"))
FIOASYNC, FIOGETOWN = 0x5452, 0x8903
def ioctl(it, request, value):
    try: return fcntl.ioctl(it, request, struct.pack("i", value))
    except OSError as error: return error.errno
for own in (lambda it: fcntl.fcntl(it, fcntl.F_SETOWN, os.getpid()), lambda it: ioctl(it, 0x8901, os.getpid()), lambda it: ioctl(it, 0x8902, os.getpid())):
    one, other = socket.socketpair()
    print(ioctl(one, FIOASYNC, 1)); own(one)
    print(struct.unpack("i", ioctl(one, FIOGETOWN, 0))[0] == os.getpid(), fcntl.fcntl(one, fcntl.F_GETFL) & os.O_ASYNC != 0)
    other.send(b"x"); time.sleep(0.1)
    print(ioctl(one, FIOASYNC, 0), fcntl.fcntl(one, fcntl.F_GETFL) & os.O_ASYNC)
    other.send(b"x"); time.sleep(0.1)
    print(ioctl(one, 0x8901, 0), ioctl(one, FIOGETOWN, 0))
with open("f", "w") as file: print([ioctl(file, request, 1) for request in (FIOASYNC, 0x8901)])
print(ioctl(os.pipe()[0], FIOASYNC, 1), ioctl(os.open("f", os.O_PATH), FIOASYNC, 1), ioctl(99, FIOASYNC, 1))
END"#;
    stage.same(script).check();
}

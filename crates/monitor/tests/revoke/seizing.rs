//! Processes that cannot be seized.

use crate::{
    Case, cases,
    stage::{Booleans, Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    an_exec_that_is_held_up_by_a_tracer_holds_up_no_change,
    an_exec_in_several_domains_is_held_up_by_nobody,
    a_traced_process_is_killed_for_what_no_rule_for_files_labels,
];

/// It waits for its other thread, which its tracer does not let end: nobody can be seized then.
fn an_exec_that_is_held_up_by_a_tracer_holds_up_no_change(stage: &Stage) {
    stage.file(
        "hold_up.c",
        r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int told[2], go[2];
static void *other(void *unused) {
    int tid = syscall(SYS_gettid);
    write(told[1], &tid, sizeof tid);
    for (;;)
        pause();
}
int main(void) {
    struct stat st;
    int tid, fd = open("secret", O_RDONLY);
    char c;
    pipe(told), pipe(go);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, 0, other, 0);
        read(go[0], &c, 1);
        execl("/bin/sleep", "sleep", "60", (char *)0);
        _exit(1);
    }
    read(told[0], &tid, sizeof tid);
    ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT);
    write(go[1], "", 1);
    usleep(300000);
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    while (stat("changed", &st) != 0)
        usleep(1000);
    int status = 0;
    while (wait4(-1, &status, __WALL, 0) != child)
        ;
    printf("{\"status\": %d, \"readable\": %d}\n", status, (int)pread(fd, &c, 1, 0));
}
"#,
    );
    let ran = stage.without_secret(
        r#"
said["built"] = subprocess.run(["cc", "-w", "-pthread", "-o", "hold_up", "hold_up.c"]).returncode
holder = subprocess.Popen(["./hold_up"], stdout=subprocess.PIPE)
said |= json.loads(holder.communicate()[0])
while not os.path.exists("changed"):
    time.sleep(0.002)
"#,
    );
    check(&ran, &json!({ "built": 0, "status": 9, "readable": -1 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
}

/// Where processes are in several domains, the monitor waits for each exec to see what is executed:
/// not for one whose other thread is traced, however late that has begun.
fn an_exec_in_several_domains_is_held_up_by_nobody(stage: &Stage) {
    stage.file(
        "hold_up.c",
        r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int told[2], go[2];
static char *arguments[40];
static void *other(void *unused) {
    int tid = syscall(SYS_gettid);
    write(told[1], &tid, sizeof tid);
    for (;;)
        pause();
}
// Whether a process runs, or waits for something.
static int lives(pid_t pid) {
    char name[64], text[512] = "";
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    int fd = open(name, O_RDONLY);
    read(fd, text, sizeof text - 1);
    close(fd);
    char *state = strrchr(text, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}
int main(int argc, char **argv) {
    // The more it has to copy, the longer an exec is under way before its threads end.
    for (int i = 1; i < 18; i++)
        memset(arguments[i] = calloc(1, 100000), 'a', 99999);
    arguments[0] = "true";
    int stuck = 0, refused = 0;
    for (int turn = 0; turn < 12; turn++) {
        int tid, status = 0;
        char c;
        pipe(told), pipe(go);
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            pthread_create(&thread, 0, other, 0);
            read(go[0], &c, 1);
            execv("./program", arguments);
            _exit(errno == EPERM ? 7 : 8);
        }
        read(told[0], &tid, sizeof tid);
        // The first is traced before it begins; each of the others a little later.
        if (turn > 0)
            write(go[1], "", 1);
        usleep(turn * 300);
        ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT);
        if (turn == 0)
            write(go[1], "", 1);
        for (int i = 0; i < 100 && lives(child); i++)
            usleep(10000);
        stuck += lives(child);
        kill(child, SIGKILL);
        for (pid_t pid; (pid = wait4(-1, &status, __WALL, 0)) != child;)
            ptrace(PTRACE_CONT, pid, 0, 0);
        if (turn == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 7))
            refused = -1000;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 7;
        for (int i = 0; i < 2; i++)
            close(told[i]), close(go[i]);
    }
    printf("{\"stuck\": %d, \"refused\": %d}\n", stuck, refused > 0);
}
"#,
    );
    let domains = "[domains.other]\nexec = ['/usr/bin/false']\n";
    let after = format!("{domains}[files]\ndeny = ['${{workspace}}/secret*']\n");
    let ran = stage.change(
        (domains, &after),
        "\"repair\"",
        r#"
subprocess.run(["/usr/bin/false"])
said["built"] = subprocess.run(["cc", "-w", "-pthread", "-o", "hold_up", "hold_up.c"]).returncode
subprocess.run(["cp", "/usr/bin/true", "program"])
said |= json.loads(subprocess.run(["./hold_up"], stdout=subprocess.PIPE).stdout)
change()
"#,
    );
    check(&ran, &json!({ "built": 0, "stuck": 0, "refused": 1 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
}

/// Nothing but a transition gives it its label.
fn a_traced_process_is_killed_for_what_no_rule_for_files_labels(stage: &Stage) {
    let added = "(boolean gate true) (type made_t) (roletype object_r made_t)
        (typetransition main_t workspace_t file \"made\" made_t)
        (allow main_t made_t (file (create getattr open write)))
        (booleanif gate (true (allow main_t made_t (file (read)))))";
    let ran = stage.set(
        Booleans { added, set: &[("gate", false)], ..Booleans::default() },
        r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    fd = os.open("made", os.O_CREAT | os.O_RDWR)
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
change()
time.sleep(0.1)
said["end"] = os.waitpid(child, os.WNOHANG)[1]
if not said["end"]:
    os.kill(child, signal.SIGKILL)
say("again", lambda: os.open("made", os.O_RDONLY))
"#,
    );
    check(&ran, &json!({ "end": libc::SIGKILL, "again": "EACCES" }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor"), ["killed"]);
}

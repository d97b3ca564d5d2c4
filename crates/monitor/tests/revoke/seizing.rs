//! Processes that cannot be seized.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![an_exec_that_is_held_up_by_a_tracer_holds_up_no_change];

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

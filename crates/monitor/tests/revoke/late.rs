//! What is fetched from processes that cannot give it back yet.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    what_a_child_fetches_from_its_late_parent_is_taken,
    whoever_is_late_with_what_was_fetched_ends,
];

/// Fetching a descriptor, finding out that a file was taken, and reading what `changed` finds open.
const FETCHES: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int fetch(int pid, int fd) {
    int process = syscall(SYS_pidfd_open, pid, 0), fetched = -1, other;
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    while ((other = open("secret", O_RDONLY)) >= 0)
        close(other);
    fetched = syscall(SYS_pidfd_getfd, process, fd, 0);
    fcntl(fetched, F_SETFD, 0);
    return fetched;
}
static void waits(void) {
    struct stat st;
    while (stat("changed", &st) != 0)
        usleep(1000);
}
static int reads(int fd) {
    char c;
    waits();
    return pread(fd, &c, 1, 0) == 1 ? 0 : errno;
}
"#;

/// Builds the program, and takes `secret` from it; what it prints is JSON.
const RUNS: &str = r#"
said["built"] = subprocess.run(["cc", "-w", "-o", "fetches", "fetches.c"]).returncode
fetches = subprocess.Popen(["./fetches"], stdout=subprocess.PIPE)
said["fetches"] = json.loads(fetches.communicate()[0] or "null")
while not os.path.exists("changed"):
    time.sleep(0.002)
"#;

/// It closes what it has inherited, and is let go while its parent waits for it to execute.
fn what_a_child_fetches_from_its_late_parent_is_taken(stage: &Stage) {
    let main = r#"
int main(int count, char **arguments) {
    if (count > 1) {
        printf("%d\n", reads(atoi(arguments[1])));
        return 0;
    }
    int fd = open("secret", O_RDONLY), pid = getpid();
    pid_t child = vfork();
    if (child == 0) {
        char number[12];
        close(fd);
        sprintf(number, "%d", fetch(pid, fd));
        execl("./fetches", "fetches", number, (char *)0);
        _exit(1);
    }
    waitpid(child, 0, 0);
}
"#;
    stage.file("fetches.c", &format!("{FETCHES}{main}"));
    let ran = stage.without_secret(RUNS);
    check(&ran, &json!({ "built": 0, "fetches": libc::EACCES }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor"), ["replaced"; 2]);
}

/// It is late itself when the one that it has fetched from no longer is.
fn whoever_is_late_with_what_was_fetched_ends(stage: &Stage) {
    let main = r#"
int main(void) {
    int told[2], status, fd = open("secret", O_RDONLY), pid = getpid();
    char c;
    pipe2(told, O_CLOEXEC);
    pid_t other = fork();
    if (other == 0) {
        close(fd);
        fd = fetch(pid, fd);
        if (vfork() == 0) {
            write(told[1], "", 1);
            printf("%d\n", reads(fd));
            fflush(stdout);
            _exit(0);
        }
        waits();
        _exit(0);
    }
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        read(told[0], &c, 1);
        execl("/bin/true", "true", (char *)0);
        _exit(1);
    }
    waitpid(child, 0, 0);
    waitpid(other, &status, 0);
    waits();
    usleep(100000);
    return status;
}
"#;
    stage.file("fetches.c", &format!("{FETCHES}{main}"));
    let ran = stage.without_secret(&format!("{RUNS}said['status'] = fetches.returncode\n"));
    check(&ran, &json!({ "built": 0, "fetches": libc::EACCES, "status": 9 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert!(ran.actions("descriptor").contains(&"killed"), "{}", ran.receipt);
}

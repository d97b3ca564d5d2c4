//! Processes and threads that are short of life, and many.

use crate::{Case, cases, stage::Stage};

pub(crate) const CASES: &[Case] = cases![whoever_is_never_where_it_was_listed_is_stopped];

/// Each makes the next one, and ends.
fn whoever_is_never_where_it_was_listed_is_stopped(stage: &Stage) {
    stage.file(
        "chain.c",
        r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { STACKS = 256, SIZE = 16384 };
static char *stacks;
static volatile int fd;
static volatile long *reads;
static long turn;
static time_t end;
static int flags;
static void reads_on(void) {
    char c;
    int next = dup(fd);
    close(fd), fd = next;
    *reads += pread(fd, &c, 1, 0) == 1;
    if (++turn % 256 == 0 && time(0) > end)
        _exit(0);
}
static int thread(void *unused) {
    int all = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    reads_on();
    while (clone(thread, stacks + (turn % STACKS + 2) * SIZE - 64, all | flags, 0) < 0)
        ;
    syscall(SYS_exit, 0);
    return 0;
}
int main(int count, char **arguments) {
    int counter = open("counter", O_RDWR);
    end = time(0) + 4;
    reads = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0);
    stacks = mmap(0, (STACKS + 3) * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fd = open("secret", O_RDONLY);
    signal(SIGCHLD, SIG_IGN);
    flags = strchr(arguments[1], 'u') ? CLONE_UNTRACED : 0;
    if (arguments[1][0] == 't')
        thread(0);
    for (;;) {
        reads_on();
        if (syscall(SYS_clone, SIGCHLD | flags, 0, 0, 0, 0) > 0)
            _exit(0);
    }
}
"#,
    );
    stage.file("counter", &"\0".repeat(4096));
    for kind in ["threads", "processes", "threads, untraced", "processes, untraced"].repeat(3) {
        for name in ["ready", "changed", "receipt.json"] {
            let _ = std::fs::remove_file(stage.path().join(name));
        }
        let ran = stage.without_secret(&format!(
            r#"
said["built"] = subprocess.run(["cc", "-w", "-o", "chain", "chain.c"]).returncode
chain = subprocess.Popen(["./chain", "{kind}"])
counter = mmap.mmap(os.open("counter", os.O_RDONLY), 8, prot=mmap.PROT_READ)
def reads():
    return int.from_bytes(counter[:8], "little")
before = reads()
time.sleep(0.1)
said["before"] = reads() > before
change()
before = reads()
time.sleep(0.2)
said["after"] = reads() - before
"#
        ));
        assert_eq!(ran.said["after"], 0, "{kind}: {} {:?}", ran.receipt, ran.output);
        assert!(ran.is_complete(), "{kind}: {}", ran.receipt);
    }
}

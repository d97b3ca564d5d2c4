//! Calls under way, and processes that are hard to stop.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    what_answers_in_the_place_of_the_kernel_is_killed,
    calls_that_wait_are_woken,
    calls_that_have_nothing_to_do_with_it_go_on,
    threads_in_a_loop_lose_it,
    a_parent_of_a_vfork_is_repaired,
    other_threads_of_a_parent_of_a_vfork_are_repaired,
    a_traced_process_is_killed,
    sharing_with_a_traced_process_helps_nobody,
    orphans_of_the_killed_lose_it,
    a_stopped_process_stays_stopped,
    who_is_to_be_killed_is,
    who_is_to_be_signalled_is,
    what_the_kernel_reads_alone_is_not_taken_halfway,
    a_build_goes_through_many_changes_unharmed,
    other_programs_go_through_many_changes_unharmed,
];

/// Its own filter says that the calls were made which replace a second descriptor and the mapping.
fn what_answers_in_the_place_of_the_kernel_is_killed(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
import ctypes, struct
child = os.fork()
if child > 0:
    said["status"] = os.waitpid(child, 0)[1]
    while not os.path.exists("changed"):
        time.sleep(0.002)
    print(json.dumps(said))
    sys.exit()
first, second = [os.open("secret", os.O_RDWR) for _ in range(2)]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 292), (0x06, 0, 0, 0x00050000), (0x06, 0, 0, 0x7fff0000)]
code = b"".join(struct.pack("HBBI", *line) for line in code)
code = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, ctypes.get_errno()
change()
say("second", lambda: os.read(second, 6))
"#,
    );
    check(&ran, &json!({ "status": 9 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert!(ran.actions("descriptor").contains(&"killed"), "{}", ran.receipt);
}

fn calls_that_wait_are_woken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
os.mkfifo("secret.pipe")
both = os.open("secret.pipe", os.O_RDWR)
reading = threading.Thread(target=lambda: say("read", lambda: os.read(both, 1)))
reading.start()
os.mkfifo("secret.other")
opening = threading.Thread(target=lambda: say("open", lambda: os.open("secret.other", os.O_RDONLY)))
opening.start()
time.sleep(0.2)
change()
reading.join()
opening.join()
"#,
    );
    check(&ran, &json!({ "read": "EACCES", "open": "EACCES" }));
    assert!(ran.is_complete());
}

fn calls_that_have_nothing_to_do_with_it_go_on(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
end, begin = os.pipe()
fd = os.open("secret", os.O_RDONLY)
signal.signal(signal.SIGUSR1, lambda *_: said.update(signal=said.get("signal", 0) + 1))
def sleep():
    start = time.monotonic()
    time.sleep(0.7)
    return 0.69 < time.monotonic() - start < 5
def poll():
    waiting = select.poll()
    waiting.register(end)
    return waiting.poll(700)
actions = {"sleep": sleep, "poll": poll, "read": lambda: os.read(end, 1),
    "select": lambda: select.select([end], [], [], 0.7)[0],
    "wait": lambda: subprocess.run(["sleep", "0.7"]).returncode,
    "lock": lambda: threading.Event().wait(0.7)}
threads = [threading.Thread(target=say, args=it) for it in actions.items()]
for thread in threads:
    thread.start()
time.sleep(0.2)
change()
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(1)
os.write(begin, b"x")
for thread in threads:
    thread.join()
say("taken", lambda: os.read(fd, 1))
"#,
    );
    check(
        &ran,
        &json!({
            "sleep": true, "poll": [], "read": "x", "select": [], "wait": 0, "lock": false, "signal": 1,
            "taken": "EACCES",
        }),
    );
}

fn threads_in_a_loop_lose_it(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
fd = os.open("secret", os.O_RDONLY)
late = []
def loop():
    while True:
        over = os.path.exists("changed") if len(late) % 2 else False
        try:
            os.pread(fd, 1, 0)
        except OSError as error:
            late.append(errno.errorcode[error.errno])
            return
threads = [threading.Thread(target=loop) for _ in range(4)]
for thread in threads:
    thread.start()
change()
before = len(late)
for thread in threads:
    thread.join()
tries = 0
for _ in range(100000):
    try:
        os.pread(fd, 1, 0)
        tries += 1
    except OSError:
        pass
said["ends"] = sorted(late)
said["tries"] = tries
"#,
    );
    check(&ran, &json!({ "ends": vec!["EACCES"; 4], "tries": 0 }));
}

fn a_parent_of_a_vfork_is_repaired(stage: &Stage) {
    stage.file(
        "parent.c",
        r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    int fd = open("secret", O_RDONLY);
    pid_t child = vfork();
    if (child == 0) {
        struct timespec pause = { 1, 0 };
        close(open("ready", O_CREAT | O_WRONLY, 0600));
        nanosleep(&pause, 0);
        execl("/bin/true", "true", (char *)0);
        _exit(1);
    }
    char c;
    int read_now = read(fd, &c, 1) == 1 ? 0 : errno;
    waitpid(child, 0, 0);
    printf("%d\n", read_now);
}
"#,
    );
    let ran = stage.without_secret(
        r#"
said["built"] = subprocess.run(["cc", "-o", "parent", "parent.c"]).returncode
parent = subprocess.Popen(["./parent"], stdout=subprocess.PIPE)
said["parent"] = int(parent.communicate()[0])
while not os.path.exists("changed"):
    time.sleep(0.002)
"#,
    );
    check(&ran, &json!({ "built": 0, "parent": libc::EACCES }));
    assert!(ran.is_complete());
}

fn other_threads_of_a_parent_of_a_vfork_are_repaired(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
os.mkfifo("fifo")
secret = os.open("secret", os.O_RDONLY)
def spawn():
    # Python's own posix_spawn holds up its other threads.
    from ctypes import CDLL, byref, c_char_p, c_int, create_string_buffer
    libc, pid, actions = CDLL(None), c_int(), create_string_buffer(256)
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_addopen(actions, 0, b"fifo", os.O_RDONLY, 0)
    argv, envp = (c_char_p * 2)(b"true", None), (c_char_p * 1)(None)
    libc.posix_spawn(byref(pid), b"/bin/true", actions, None, argv, envp)
    said["status"] = os.waitpid(pid.value, 0)[1]
spawning = threading.Thread(target=spawn)
spawning.start()
time.sleep(0.3)
change()
say("read", lambda: os.pread(secret, 1, 0))
os.close(os.open("fifo", os.O_WRONLY))
spawning.join()
"#,
    );
    check(&ran, &json!({ "read": "EACCES", "status": 0 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    // The child has a descriptor of its own.
    assert_eq!(ran.actions("descriptor"), ["replaced", "replaced"]);
}

fn a_traced_process_is_killed(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    fd = os.open("secret", os.O_RDONLY)
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
change()
said["end"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#,
    );
    check(&ran, &json!({ "end": -libc::SIGKILL }));
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["killed"]);
}

/// The traced one runs on while the others stand still, and shares their descriptors and memory.
fn sharing_with_a_traced_process_helps_nobody(stage: &Stage) {
    stage.file(
        "share.c",
        r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int traced;
static int copier(void *unused) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    traced = 1;
    for (;;)
        for (int fd = 10; fd < 200; fd++)
            dup2(fd == 10 ? 9 : fd - 1, fd);
}
int main(void) {
    struct stat st;
    dup2(open("secret", O_RDONLY), 9);
    char *stack = malloc(1 << 16);
    clone(copier, stack + (1 << 16), CLONE_VM | CLONE_FILES | SIGCHLD, 0);
    while (!traced)
        ;
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    while (stat("changed", &st) != 0)
        usleep(1000);
    int readable = 0;
    char c;
    for (int fd = 3; fd < 300; fd++)
        readable += pread(fd, &c, 1, 0) == 1;
    printf("%d\n", readable);
}
"#,
    );
    let ran = stage.without_secret(
        r#"
said["built"] = subprocess.run(["cc", "-w", "-o", "share", "share.c"]).returncode
sharer = subprocess.Popen(["./share"], stdout=subprocess.PIPE)
out = sharer.communicate()[0]
said["readable"] = int(out or 0)
while not os.path.exists("changed"):
    time.sleep(0.002)
"#,
    );
    check(&ran, &json!({ "built": 0, "readable": 0 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
}

/// With several domains, a process whose parent was killed before it asked for anything.
fn orphans_of_the_killed_lose_it(stage: &Stage) {
    let domains = "[domains.other]\nexec = ['/usr/bin/other']\n";
    let deny = format!("[files]\ndeny = ['${{workspace}}/secret*']\n{domains}");
    let ran = stage.change(
        (domains, &deny),
        "\"repair\"",
        r#"
go, start = os.pipe()
back, answer = os.pipe()
parent = os.fork()
if parent == 0:
    fd = os.open("secret", os.O_RDONLY)
    if os.fork() == 0:
        os.write(answer, b"here")
        os.read(go, 1)
        try:
            os.write(answer, os.pread(fd, 6, 0))
        except OSError as error:
            os.write(answer, errno.errorcode[error.errno].encode())
        os.read(go, 1)
    os.read(go, 1)
os.read(back, 4)
os.kill(parent, signal.SIGKILL)
os.waitpid(parent, 0)
change()
os.write(start, b"g")
said["orphan"] = os.read(back, 10).decode() if select.select([back], [], [], 3)[0] else "dead"
"#,
    );
    check(&ran, &json!({ "orphan": "EACCES" }));
    assert!(ran.is_complete());
}

fn a_stopped_process_stays_stopped(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
child = os.fork()
if child == 0:
    fd = os.open("secret", os.O_RDONLY)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        os.read(fd, 1)
    except OSError as error:
        os._exit(error.errno)
    os._exit(0)
os.waitpid(child, os.WUNTRACED)
change()
said["state"] = open(f"/proc/{child}/stat").read().rsplit(") ")[1][0]
os.kill(child, signal.SIGCONT)
said["end"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#,
    );
    check(&ran, &json!({ "state": "T", "end": libc::EACCES }));
}

const HOLDER: &str = r#"
child = os.fork()
if child == 0:
    fd = os.open("secret", os.O_RDONLY)
    signal.signal(signal.SIGRTMIN + 6, lambda *_: os._exit(7))
    open("holds", "w").close()
    while True:
        time.sleep(1)
while not os.path.exists("holds"):
    time.sleep(0.002)
change()
said["end"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#;

fn who_is_to_be_killed_is(stage: &Stage) {
    let deny = "[files]\ndeny = ['${workspace}/secret*']\n";
    let ran = stage.change(("", deny), "\"kill\"", HOLDER);
    check(&ran, &json!({ "end": -libc::SIGKILL }));
    assert!(ran.is_complete());
}

fn who_is_to_be_signalled_is(stage: &Stage) {
    let deny = "[files]\ndeny = ['${workspace}/secret*']\n";
    let mode = format!("{{\"signal\":{}}}", libc::SIGRTMIN() + 6);
    check(&stage.change(("", deny), &mode, HOLDER), &json!({ "end": 7 }));
}

fn what_the_kernel_reads_alone_is_not_taken_halfway(stage: &Stage) {
    let deny = "mode = 'fast'\n[files]\ndeny = ['${workspace}/secret*']\n";
    let ran = stage.change(("mode = 'fast'\n", deny), "\"repair\"", "change()\n");
    let error = ran.receipt["error"].as_str().expect("an error");
    assert!(error.contains("mode `fast`"), "{error}");
}

/// Both profiles allow what the build does; all that changes is about other files.
fn a_build_goes_through_many_changes_unharmed(stage: &Stage) {
    let deny = "[files]\ndeny = ['${workspace}/secret*']\n";
    let ran = stage.change(
        ("", deny),
        "toggle",
        r##"
for number in range(12):
    with open(f"part{number}.c", "w") as part:
        part.write(f"#include <stdio.h>\n#include <stdlib.h>\nint part{number}(int x) {{ return x * {number} + 1; }}\n")
with open("main.c", "w") as main:
    names = [f"part{number}" for number in range(12)]
    main.write("#include <stdio.h>\n" + "".join(f"int {name}(int);\n" for name in names))
    main.write("int main(void) { int x = 1;\n" + "".join(f"x = {name}(x) % 10007;\n" for name in names))
    main.write('printf("%d\\n", x); return 0; }\n')
with open("Makefile", "w") as makefile:
    makefile.write("OBJECTS := main.o $(patsubst %.c,%.o,$(wildcard part*.c))\nprogram: $(OBJECTS)\n\tcc -o $@ $^\n")
said["make"] = subprocess.run(["make", "-s", "-j2"]).returncode
said["result"] = int(subprocess.run(["./program"], capture_output=True).stdout)
x = 1
for number in range(12):
    x = (x * number + 1) % 10007
said["right"] = x == said.pop("result")
"##,
    );
    check(&ran, &json!({ "make": 0, "right": true }));
    let lines = |name: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(stage.path().join(name)).expect("a log");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let changes = lines("changes");
    assert!(changes.len() > 5, "only {} changes", changes.len());
    assert!(changes.iter().all(|change| change["complete"] == true), "{changes:?}");
    let decisions = lines("audit");
    assert!(decisions.len() > 500, "only {} decisions", decisions.len());
    for decision in &decisions {
        let time = decision["time"].as_f64().expect("a time");
        let mut earlier = changes
            .iter()
            .rev()
            .filter(|change| change["time"].as_f64().is_some_and(|it| it < time));
        let newest = earlier.next().map_or(1, |change| change["seqno"].as_u64().expect("a number"));
        assert!(decision["seqno"].as_u64() >= Some(newest), "{decision} after change {newest}");
    }
    eprintln!("{} changes, {} decisions", changes.len(), decisions.len());
}

fn other_programs_go_through_many_changes_unharmed(stage: &Stage) {
    let ran = stage.change(
        ("", "[files]\ndeny = ['${workspace}/secret*']\n"),
        "toggle",
        r#"
os.environ.update(HOME=os.getcwd(), GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a",
    GIT_COMMITTER_EMAIL="a@b", PYTHONDONTWRITEBYTECODE="1")
def run(name, script):
    ran = subprocess.run(["bash", "-c", "set -e; " + script], capture_output=True, text=True)
    said[name] = ran.stdout.strip() if ran.returncode == 0 else ran.stderr
run("git", "git init -q one; cd one; for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm $i; done;"
    " git gc -q; cd ..; git clone -q one two; cd two; git log --format=%s | tr '\\n' ' '")
run("pipes", "seq 1 20000 | sort -rn | uniq | tail -n +2 | awk '{ s += $1 } END { print s }'")
run("jobs", "(for i in 1 2 3 4; do (sleep 0.$i; echo $i) & done; wait) | sort")
run("tar", "tar cf - one | tar tf - | wc -l | grep -q . && echo ok")
run("threads", "python3 -c 'import concurrent.futures as f; print(sum(f.ThreadPoolExecutor(8).map(lambda x: len(open(\"public\").read()), range(400))))'")
run("processes", "python3 -c 'import multiprocessing as m; print(sum(m.Pool(3).map(abs, range(-300, 0))))'")
"#,
    );
    let want = json!({
        "git": "3 2 1", "pipes": "199990000", "jobs": "1\n2\n3\n4", "tar": "ok", "threads": "5600",
        "processes": "45150",
    });
    check(&ran, &want);
}

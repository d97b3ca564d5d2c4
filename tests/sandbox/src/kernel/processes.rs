//! Processes, threads and signals.

use super::files::python;
use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    processes_start_in_every_way,
    many_threads_open_files_at_once,
    a_process_names_its_threads,
    signals_reach_processes_and_groups,
    signals_reach_other_threads,
    arguments_may_be_large,
    scheduling_and_limits_change,
    a_process_reads_its_childs_memory,
    local_sockets_connect_inside,
    a_debugger_writes_to_memory,
    signals_reach_processes_by_their_directory,
    orphans_are_still_of_the_sandbox,
    descendants_have_their_ancestors_domain,
    orphans_of_the_killed_have_their_domain,
    the_first_to_enter_a_domain_disturbs_nobody,
    what_the_kernel_asks_of_a_process_is_set_for_another,
];

fn processes_start_in_every_way(stage: &Stage) {
    stage
        .same("gcc -o p p.c -lpthread && ./p")
        .before(
            r#"cat > p.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char stack[65536];
static int child(void *arg) { return *(int *)arg; }
static void end(const char *what, pid_t pid) { int s = 0; waitpid(pid, &s, __WALL); printf("%s %x\n", what, s); fflush(stdout); }
int main(void) {
    char *argv[] = {"sh", "-c", "exit 5", 0}; pid_t pid; int n = 9, status;
    if (!(pid = vfork())) { execv("/bin/sh", argv); _exit(1); } end("vfork", pid);
    if (!(pid = fork())) { execvp("sh", argv); _exit(1); } end("fork", pid);
    if (!posix_spawnp(&pid, "sh", 0, 0, argv, environ)) end("spawn", pid);
    printf("missing %d\n", posix_spawn(&pid, "/no/such", 0, 0, argv, environ));
    end("clone", clone(child, stack + sizeof stack, SIGCHLD, &n));
    end("clone vm", clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &n));
    if (!(pid = fork())) { int fd = open("/bin/sh", O_PATH | O_CLOEXEC); fexecve(fd, argv, environ); _exit(1); } end("fexecve", pid);
    if (!(pid = fork())) { syscall(SYS_execveat, AT_FDCWD, "/bin/sh", argv, environ, 0); _exit(1); } end("execveat", pid);
    if (!(pid = fork())) { char *none[] = {"x", 0}; execve("/etc/passwd", none, environ); _exit(44); } end("not executable", pid);
    end("system", (status = system("exit 3"), printf("%x\n", status), fork() ?: (_exit(1), 0)));
    FILE *f = popen("cat", "w"); fputs("popen\n", f); printf("%d\n", pclose(f));
    if (!(pid = fork())) { raise(SIGSEGV); } end("signal", pid);
    if (!(pid = fork())) { signal(SIGTERM, SIG_IGN); kill(getpid(), SIGTERM); kill(getpid(), SIGKILL); } end("kill", pid);
    return 0;
}
END"#,
        )
        .noisy()
        .check();
}

fn many_threads_open_files_at_once(stage: &Stage) {
    python(
        stage,
        "import threading
def work(i):
    os.mkdir(f'd{i}')
    for j in range(10):
        with open(f'd{i}/{j}', 'w') as f: f.write(str(i * j))
        os.rename(f'd{i}/{j}', f'd{i}/r{j}')
        total[i] = total[i] + int(open(f'd{i}/r{j}').read())
total = [0] * 100; threads = [threading.Thread(target=work, args=(i,)) for i in range(100)]
[t.start() for t in threads]; [t.join() for t in threads]; print(sum(total))",
    );
}

fn a_process_names_its_threads(stage: &Stage) {
    python(
        stage,
        "import threading
def name(path, text): open(path, 'w').write(text); print(path.split('/')[-1], open(path).read())
def work(): name('/proc/thread-self/comm', 'mine'); ready.set(); done.wait()
ready, done = threading.Event(), threading.Event(); t = threading.Thread(target=work, daemon=True); t.start(); ready.wait(9)
name(f'/proc/self/task/{t.native_id}/comm', 'yours'); name('/proc/self/comm', 'main'); name(f'/proc/{os.getpid()}/task/{os.getpid()}/comm', 'again'); done.set(); t.join()
os.chdir('/proc/self'); fd = os.open('comm', os.O_RDWR | os.O_TRUNC); print(os.write(fd, b'relative'), open('comm').read())
say(lambda: open('/proc/self/nothing/comm', 'w')); say(lambda: open('comm/', 'w'))",
    );
}

fn signals_reach_processes_and_groups(stage: &Stage) {
    python(
        stage,
        "import signal, threading, time
got = []; signal.signal(signal.SIGUSR1, lambda n, f: got.append(n)); os.kill(os.getpid(), signal.SIGUSR1); os.kill(0, 0); signal.pthread_kill(threading.get_ident(), signal.SIGUSR1); print(len(got))
pids = []
for i in range(3):
    pid = os.fork()
    if pid == 0: os.setpgid(0, pids[0] if pids else 0); time.sleep(60); os._exit(0)
    os.setpgid(pid, pids[0] if pids else pid); pids.append(pid)
os.killpg(pids[0], signal.SIGSTOP); print([os.WSTOPSIG(os.waitpid(p, os.WUNTRACED)[1]) for p in pids]); os.killpg(pids[0], signal.SIGCONT); os.kill(-pids[0], signal.SIGTERM); print([os.waitpid(p, 0)[1] for p in pids])
pid = os.fork()
if pid == 0: time.sleep(60)
fd = os.pidfd_open(pid); signal.pidfd_send_signal(fd, signal.SIGKILL); os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOWAIT)
say(lambda: os.kill(pid, 0)); print(os.waitpid(pid, 0)[1]); say(lambda: os.kill(os.getpid(), 99))
for n in [0, signal.SIGTERM]: say(lambda: os.kill(pid, n), 'gone')
pid = os.fork()
if pid == 0: os.setsid(); os._exit(os.getsid(0) == os.getpid())
print(os.waitpid(pid, 0)[1])",
    );
}

/// By the call that musl makes.
fn signals_reach_other_threads(stage: &Stage) {
    python(
        stage,
        "import ctypes, signal, threading, time
c = ctypes.CDLL(None, use_errno=True); TKILL = 200; got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append('signalled')); ready = threading.Event(); done = threading.Event()
t = threading.Thread(target=lambda: (ready.set(), done.wait())); t.start(); ready.wait()
print(c.syscall(TKILL, t.native_id, signal.SIGUSR1)); done.set(); t.join()
while not got or c.syscall(TKILL, t.native_id, 0) == 0: time.sleep(0.01)
print(got, ctypes.get_errno())",
    );
}

fn arguments_may_be_large(stage: &Stage) {
    python(
        stage,
        "import subprocess
print(len(subprocess.check_output(['echo', *('x' * 100 for _ in range(15000))])), len(subprocess.check_output(['echo', 'y' * 131000])))
say(lambda: subprocess.run(['echo', 'z' * 140000])); print(subprocess.check_output(['env'], env={'BIG': 'v' * 100000}).count(b'v')); say(lambda: os.execv('/bin/true', ['a' * 1000] * 10000))",
    );
}

fn scheduling_and_limits_change(stage: &Stage) {
    python(
        stage,
        "import resource
print(os.nice(3), os.getpriority(os.PRIO_PROCESS, 0)); os.setpriority(os.PRIO_PROCESS, os.getpid(), 19); resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); print(resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE))
cpu = min(os.sched_getaffinity(0)); os.sched_setaffinity(0, {cpu}); print(os.sched_getaffinity(0) == {cpu}); os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); print(os.sched_getscheduler(0))
fds = []
try:
    while True: fds.append(os.open('/etc/hostname', 0)); fds.append(os.open('f', os.O_CREAT | os.O_RDWR))
except OSError as error: print(errno.errorcode[error.errno], max(fds))",
    );
}

fn a_process_reads_its_childs_memory(stage: &Stage) {
    stage
        .same("gcc -o p p.c && ./p; python3 -c 'import os, time; pid = os.fork() or (time.sleep(60), os._exit(0)); print(open(f\"/proc/{pid}/comm\").read(), open(f\"/proc/{pid}/status\").read().count(\"Name\"), len(os.listdir(f\"/proc/{pid}/fd\")), os.readlink(f\"/proc/{pid}/cwd\")[-4:], len(open(f\"/proc/{pid}/environ\").read()) > 9); os.kill(pid, 9)'; ps -o comm= -p $$")
        .before(
            r#"cat > p.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
static int value = 1;
int main(void) {
    pid_t pid = fork();
    if (!pid) { value = 42; ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); return value == 43 ? 6 : 7; }
    int got = 0, status; waitpid(pid, &status, 0);
    struct iovec here = {&got, sizeof got}, there = {&value, sizeof value};
    printf("%zd %d\n", process_vm_readv(pid, &here, 1, &there, 1, 0), got); got = 43;
    printf("%zd %ld\n", process_vm_writev(pid, &here, 1, &there, 1, 0), ptrace(PTRACE_PEEKDATA, pid, &value, 0) & 0xff);
    ptrace(PTRACE_CONT, pid, 0, 0); waitpid(pid, &status, 0); printf("%x\n", status); return 0;
}
END"#,
        )
        // Without a PID namespace, ps asks about everybody.
        .does_without(&["process "])
        .check();
}

/// By the file of `/proc`, as gdb does, which can change what ptrace(2) would have to be asked for
/// word by word.
fn a_debugger_writes_to_memory(stage: &Stage) {
    python(
        stage,
        "import ctypes
buffer = ctypes.create_string_buffer(b'before'); at = ctypes.addressof(buffer)
fd = os.open('/proc/self/mem', os.O_RDWR); os.pwrite(fd, b'after!', at); print(buffer.value)
pid = os.fork()
if pid == 0:
    import time
    while buffer.value != b'traced': time.sleep(0.01)
    os._exit(7)
fd = os.open(f'/proc/{pid}/mem', os.O_RDWR); os.pwrite(fd, b'traced', at); print(os.waitpid(pid, 0)[1] >> 8)
say(lambda: os.open('/proc/self/mem', os.O_RDONLY) and 0)",
    );
}

fn signals_reach_processes_by_their_directory(stage: &Stage) {
    python(
        stage,
        "import ctypes, time
c = ctypes.CDLL(None, use_errno=True)
def send(fd, signal):
    if c.syscall(424, fd, signal, None, 0) < 0: raise OSError(ctypes.get_errno(), '')
pid = os.fork()
if pid == 0: time.sleep(60)
for path in [f'/proc/{pid}', f'/proc/{pid}/task', '/proc', '.']:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY); say(lambda: send(fd, 0), path == f'/proc/{pid}')
send(os.open(f'/proc/{pid}', os.O_RDONLY), 15); print(os.waitpid(pid, 0)[1])",
    );
}

fn local_sockets_connect_inside(stage: &Stage) {
    python(
        stage,
        r"import socket
for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET]:
    s = socket.socket(socket.AF_UNIX, kind); s.bind('sock'); s.listen(); c = socket.socket(socket.AF_UNIX, kind); c.connect('sock'); a, _ = s.accept(); c.send(b'hi'); print(a.recv(9), c.getpeername(), oct(os.stat('sock').st_mode)); os.unlink('sock')
d = socket.socket(socket.AF_UNIX); d.bind('bound')
print(d.getsockname()); os.mkdir('dir'); n = socket.socket(socket.AF_UNIX); n.bind(os.getcwd() + '/dir/../named'); print(n.getsockname()[-12:], os.stat('named').st_mode)
say(lambda: d.bind('again')); say(lambda: socket.socket(socket.AF_UNIX).bind('bound')); say(lambda: socket.socket(socket.AF_UNIX).connect('none')); say(lambda: socket.socket(socket.AF_UNIX).connect('bound')); open('f', 'w').close(); say(lambda: socket.socket(socket.AF_UNIX).connect('f'))
s = socket.socket(socket.AF_UNIX); s.bind('\0dewar-abstract-%d' % os.getpid()); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(s.getsockname()); print('abstract')",
    );
}

fn orphans_are_still_of_the_sandbox(stage: &Stage) {
    stage
        .same("(setsid sh -c 'sleep 0.3; echo late > late; ls' > out 2>&1 &) ; for ((i = 0; i < 200; i++)); do [ -s out ] && break; sleep 0.05; done; cat late; (sleep 60 & echo $! > pid); kill $(cat pid); rm pid; echo $?")
        .check();
}

/// Between the forks they make no call that is decided.
fn descendants_have_their_ancestors_domain(stage: &Stage) {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    stage
        .same("gcc -o p p.c && ./p; cat file")
        .before(
            r#"cat > p.c <<'END'
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    for (int depth = 0; depth < 50; depth++) {
        int status = 0;
        pid_t child = fork();
        if (child) { waitpid(child, &status, 0); _exit(WEXITSTATUS(status)); }
    }
    return write(open("file", O_CREAT | O_WRONLY, 0600), "deep\n", 5) != 5;
}
END"#,
        )
        .profile(profile.to_str().expect("UTF-8"))
        .check();
}

/// An orphan, and its child, that have made no call which is decided before their parent was
/// killed.
fn orphans_of_the_killed_have_their_domain(stage: &Stage) {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    stage
        .same("gcc -o p p.c && ls > listed && ./p; cat file")
        .before(
            r#"cat > p.c <<'END'
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int ends[2], gone[2];
    char byte;
    if (pipe(ends) || pipe(gone)) return 1;
    pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            fork();
            close(gone[1]);
            write(ends[1], "b", 1);
            read(gone[0], &byte, 1);
            return write(open("file", O_CREAT | O_WRONLY | O_APPEND, 0600), "orphan\n", 7) != 7;
        }
        pause();
    }
    close(gone[0]);
    close(ends[1]);
    read(ends[0], &byte, 1); read(ends[0], &byte, 1);
    kill(parent, SIGKILL);
    waitpid(parent, 0, 0);
    close(gone[1]);
    while (read(ends[0], &byte, 1) > 0);
    return 0;
}
END"#,
        )
        .profile(profile.to_str().expect("UTF-8"))
        .check();
}

/// Every thread is stopped for a moment then, whatever it waits for.
fn the_first_to_enter_a_domain_disturbs_nobody(stage: &Stage) {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    stage
        .same("python3 p.py")
        .before(
            r#"cat > p.py <<'END'
import fcntl, os, select, signal, subprocess, threading, time
os.mkfifo('fifo')
end, begin = os.pipe()
held = open('lock', 'w')
fcntl.flock(held, fcntl.LOCK_EX)
def lock():
    with open('lock') as file: return fcntl.flock(file, fcntl.LOCK_EX)
def many():
    for _ in range(3000): open('/etc/passwd').close()
def spawn():
    return [subprocess.run(['true']).returncode for _ in range(30)]
def sleep():
    start = time.monotonic()
    time.sleep(0.7)
    return 0.69 < time.monotonic() - start < 9
actions = {
    'read': lambda: os.read(end, 1), 'fifo': lambda: open('fifo').read(), 'lock': lock, 'many': many,
    'spawn': spawn, 'sleep': sleep, 'poll': lambda: select.poll().poll(600),
    'wait': lambda: subprocess.run(['sleep', '0.6']).returncode,
    'signal': lambda: signal.sigtimedwait([signal.SIGUSR1], 0) or signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, []),
}
said = {}
threads = [threading.Thread(target=lambda name=name: said.update({name: actions[name]()})) for name in actions]
for thread in threads: thread.start()
time.sleep(0.2)
said['ls'] = subprocess.run(['ls', 'lock'], capture_output=True).stdout
os.write(begin, b'x')
open('fifo', 'w').write('y')
held.close()
for thread in threads: thread.join()
print(sorted(said.items()))
END"#,
        )
        .profile(profile.to_str().expect("UTF-8"))
        .check();
}

/// Of the same domain. Browsers set these of what they start.
fn what_the_kernel_asks_of_a_process_is_set_for_another(stage: &Stage) {
    let script = "sleep 9 & for file in oom_score_adj coredump_filter; do echo 51 > /proc/$!/$file && cat /proc/$!/$file; done; kill $!";
    stage.same(script).check();
}

//! Locks and FIFOs between processes.

use super::files::{python, with_say};
use crate::{
    Case, cases,
    process::run,
    stage::{How, Stage, bash},
};
use std::time::{Duration, Instant};

pub(super) const CASES: &[Case] = cases![
    locks_hold_between_processes,
    a_blocked_fifo_blocks_nobody_else,
    many_blocked_fifos_block_nobody_else,
    signals_interrupt_a_blocked_open,
    signals_interrupt_a_blocked_connect,
    signals_interrupt_a_blocked_send,
    a_blocked_open_stops_and_continues,
    a_thousand_blocked_fifos_block_nobody_else,
    a_time_limit_ends_a_blocked_open,
];

fn locks_hold_between_processes(stage: &Stage) {
    python(
        stage,
        "import fcntl, time
f = open('f', 'w'); r, w = os.pipe()
for lock in [lambda f, how: fcntl.flock(f, how), lambda f, how: fcntl.lockf(f, how)]:
    if os.fork() == 0:
        g = open('f', 'w'); lock(g, fcntl.LOCK_EX); os.write(w, b'x'); time.sleep(0.3); os._exit(0)
    os.read(r, 1); say(lambda: lock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)); lock(f, fcntl.LOCK_EX); print('mine'); lock(f, fcntl.LOCK_UN); os.wait()
fd = os.open('lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY); say(lambda: os.open('lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
    );
}

fn a_blocked_fifo_blocks_nobody_else(stage: &Stage) {
    stage
        .same("mkfifo p q; cat p & cat q & for i in $(seq 50); do echo $i > f; cat f f > g; done; wc -c g; echo to p > p; wait %1; echo to q > q; wait; (exec 3<>p; echo both >&3; read -r x <&3; echo $x); dd if=p iflag=nonblock status=none; timeout 0.2 cat p; echo $?")
        .noisy()
        .check();
}

fn many_blocked_fifos_block_nobody_else(stage: &Stage) {
    stage
        .same("for i in $(seq 60); do mkfifo p$i; cat p$i > o$i & done; sleep 0.3; date -r /etc +%Y > /dev/null; for i in $(seq 60); do echo $i > p$i; done; wait; cat o* | sort -n | tail -1")
        .check();
}

fn signals_interrupt_a_blocked_open(stage: &Stage) {
    python(
        stage,
        "import signal, threading
os.mkfifo('p'); signal.signal(signal.SIGALRM, lambda *_: print('alarm', flush=True) or 1 / 0); signal.setitimer(signal.ITIMER_REAL, 0.3)
for flags in [os.O_RDONLY, os.O_WRONLY]:
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try: os.open('p', flags)
    except ZeroDivisionError: print('interrupted')
signal.signal(signal.SIGUSR1, lambda *_: print('user', flush=True) or 1 / 0)
threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)).start()
try: open('p')
except ZeroDivisionError: print('interrupted')
signal.signal(signal.SIGALRM, lambda *_: print('again', flush=True)); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.3)
threading.Timer(1, lambda: open('p', 'w').write('x')).start(); print(open('p').read())
import ctypes; c = ctypes.CDLL(None, use_errno=True); signal.setitimer(signal.ITIMER_REAL, 0.3)
if os.fork() == 0: import time; time.sleep(1); open('p', 'w').write('y'); os._exit(0)
print(c.open(b'p', 0) >= 0, ctypes.get_errno()); os.wait()",
    );
}

fn signals_interrupt_a_blocked_connect(stage: &Stage) {
    python(
        stage,
        "import signal, socket, time
server = socket.socket(socket.AF_UNIX); server.bind('s'); server.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect('s'); second = socket.socket(socket.AF_UNIX)
signal.signal(signal.SIGALRM, lambda *_: print('alarm', flush=True) or 1 / 0); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: second.connect('s')
except ZeroDivisionError: print('interrupted')
signal.signal(signal.SIGALRM, lambda *_: print('again', flush=True)); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.3)
if os.fork() == 0: time.sleep(1); server.accept(); server.accept(); os._exit(0)
print(second.connect('s'), second.getpeername()); os.wait()",
    );
}

/// Where datagrams are granted, every send to an address is decided, and made by the monitor.
fn signals_interrupt_a_blocked_send(stage: &Stage) {
    let profile = stage.home().join("profile.toml");
    let grant = "[network]\nconnect = ['unixgram:${workspace}/other']\n";
    stage.file(&profile, &format!("extends = 'workspace'\n{grant}"));
    let program = "import signal, socket, time
full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); full.bind('d'); sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def fill():
    for n in range(10_000): sender.sendto(b'%d' % n, socket.MSG_DONTWAIT, 'd')
say(fill)
signal.signal(signal.SIGALRM, lambda *_: print('alarm', flush=True) or 1 / 0); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: sender.sendto(b'x', 'd')
except ZeroDivisionError: print('interrupted')
signal.signal(signal.SIGALRM, lambda *_: print('again', flush=True)); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.3)
if os.fork() == 0: time.sleep(1); got = full.recv(9); time.sleep(1); print(got, flush=True); os._exit(0)
print(sender.sendto(b'last', 'd'), flush=True); os.wait()";
    let words = vec!["python3".into(), "-c".into(), with_say(program).into()];
    stage.same_command(words).profile(profile.to_str().expect("UTF-8")).check();
}

/// What waits is stopped and continued by the keyboard's signals, too.
fn a_blocked_open_stops_and_continues(stage: &Stage) {
    python(
        stage,
        "import signal, time
os.mkfifo('p'); pid = os.fork()
if pid == 0: print(open('p').read(), flush=True); os._exit(3)
time.sleep(0.3); os.kill(pid, signal.SIGTSTP); print(os.WSTOPSIG(os.waitpid(pid, os.WUNTRACED)[1])); os.kill(pid, signal.SIGCONT); time.sleep(0.1)
open('p', 'w').write('continued'); print(os.waitpid(pid, 0)[1])",
    );
}

/// Where the monitor waits for them it has a bound, which others do not feel.
fn a_thousand_blocked_fifos_block_nobody_else(stage: &Stage) {
    let program = "import threading, time
refused = []
def wait(n):
    try: os.close(os.open(f'p{n}', os.O_RDONLY if n % 2 else os.O_WRONLY))
    except OSError as error: refused.append(errno.errorcode[error.errno])
for n in range(1000): os.mkfifo(f'p{n}')
threading.stack_size(65536)
for n in range(1000): threading.Thread(target=wait, args=(n,), daemon=True).start()
for n in range(100):
    with open('f', 'w') as f: f.write(str(n))
    os.rename('f', 'g'); os.chmod('g', 0o600)
time.sleep(1); print(open('g').read(), len(refused) < 900, set(refused) <= {'ENFILE'}); sys.stdout.flush(); os._exit(5)";
    let words = ["python3".into(), "-c".into(), with_say(program).into()];
    let ran = run(stage.dewar(stage.call(), &words), b"");
    assert_eq!((ran.out().as_str(), ran.code()), ("99 True True\n", 5), "{}", ran.err());
}

/// Also when it waits for a peer that never comes.
fn a_time_limit_ends_a_blocked_open(stage: &Stage) {
    stage.prepare("mkfifo p");
    let profile = stage.home().join("limited.toml");
    stage.file(&profile, "extends = 'workspace'\nlimits.time = '1s'\n");
    for script in
        ["cat p", "trap '' TERM; cat p; cat p", "for i in $(seq 40); do cat p & done; wait"]
    {
        let start = Instant::now();
        let ran = run(stage.prepared(How::Dewar, profile.to_str(), &bash(script)), b"");
        assert_eq!(ran.code(), 124, "{script}: {}", ran.err());
        assert!(start.elapsed() < Duration::from_secs(20), "{script}: {:?}", start.elapsed());
    }
}

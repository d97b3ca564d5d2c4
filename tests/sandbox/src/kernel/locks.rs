//! Locks and FIFOs between processes.

use super::files::python;
use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    locks_hold_between_processes,
    a_blocked_fifo_blocks_nobody_else,
    many_blocked_fifos_block_nobody_else,
    signals_interrupt_a_blocked_open,
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
        "import signal
os.mkfifo('p'); signal.signal(signal.SIGALRM, lambda *_: print('alarm', flush=True) or 1 / 0); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: open('p')
except ZeroDivisionError: print('interrupted')",
    );
}

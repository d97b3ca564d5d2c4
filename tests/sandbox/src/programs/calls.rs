//! Single system calls, by Python.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    a_file_is_closed_when_the_program_closes_it,
    calls_say_what_is_wrong_with_them,
    several_messages_are_sent_by_one_call,
];

/// Its locks are gone by then, watches are told, and what was written can be executed.
fn a_file_is_closed_when_the_program_closes_it(stage: &Stage) {
    stage
        .same(
            "python3 - <<'END'
import ctypes, fcntl, os, subprocess
libc = ctypes.CDLL(None)
open('f', 'w').close()
watch = libc.inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(watch, b'f', 0x8 | 0x10)
late = locked = busy = 0
for way in [os.O_RDWR, os.O_RDONLY] * 100:
    other = os.open('f', os.O_RDONLY)
    fd = os.open('f', way)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)
    try: os.read(watch, 4096)
    except BlockingIOError: late += 1
    try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: locked += 1
    os.close(other)
    try: os.read(watch, 4096)
    except BlockingIOError: late += 1
for n in range(50):
    fd = os.open('p', os.O_WRONLY | os.O_CREAT, 0o700)
    os.write(fd, b'#!/bin/true\\n')
    os.close(fd)
    try: subprocess.run(['./p'])
    except OSError: busy += 1
print(late, locked, busy)
END",
        )
        .check();
}

fn calls_say_what_is_wrong_with_them(stage: &Stage) {
    stage
        .same(
            "python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    result = libc.syscall(*[ctypes.c_long(word) if isinstance(word, int) else word for word in words])
    print(words[0], result, os.strerror(ctypes.get_errno()) if result < 0 else '')
info = (ctypes.c_int * 32)(10, 0, -1)
parameter = ctypes.c_int(0)
call(157, 4, 2)                                   # prctl(PR_SET_DUMPABLE, 2)
call(157, 4, 1)
call(129, -1, 10, info)                           # rt_sigqueueinfo
call(129, 0, 10, info)
call(129, -1, 100, info)
call(142, -1, ctypes.byref(parameter))            # sched_setparam
call(144, -1, 0, ctypes.byref(parameter))         # sched_setscheduler
call(314, -1, info, 0)                            # sched_setattr
call(203, -1, 8, info)                            # sched_setaffinity
call(302, -1, 7, 0, 0)                            # prlimit64
call(141, 0, -1, 5)                               # setpriority
call(251, 1, -1, 2 << 13)                         # ioprio_set
call(200, -1, 10)                                 # tkill
call(234, -1, -1, 10)                             # tgkill
END",
        )
        .check();
}

fn several_messages_are_sent_by_one_call(stage: &Stage) {
    stage
        .same(
            r#"python3 - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = [('base', ctypes.c_char_p), ('len', ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [('name', ctypes.c_void_p), ('name_len', ctypes.c_uint), ('pieces', ctypes.POINTER(Piece)),
                ('count', ctypes.c_size_t), ('control', ctypes.c_void_p), ('control_len', ctypes.c_size_t),
                ('flags', ctypes.c_int), ('sent', ctypes.c_uint)]
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); to.bind(('127.0.0.1', 0))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); out.connect(to.getsockname())
texts = [b'one', b'', b'three', b'x' * 70000, b'five']
all = (Message * len(texts))()
for message, text in zip(all, texts):
    message.pieces, message.count = (Piece * 1)(Piece(text, len(text))), 1
for count in [0, 1, 3, 5]:
    print(libc.sendmmsg(out.fileno(), all, count, 0), [message.sent for message in all])
print(libc.sendmmsg(out.fileno(), ctypes.byref(all[3]), 2, 0), os.strerror(ctypes.get_errno()))
to.setblocking(False)
try:
    while True: print(to.recv(100))
except BlockingIOError: pass
END"#,
        )
        .profile("open")
        .check();
}

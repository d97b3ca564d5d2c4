//! Kinds of open, and files without a name.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    files_without_a_name_get_one,
    files_without_a_name_heed_the_mask,
    memory_files_can_be_opened_again,
    memory_files_are_made_as_asked,
    openat2_heeds_its_limits,
    attributes_of_file_systems_are_set,
    every_kind_of_open_gives_the_same_result,
    descriptors_lead_to_their_files,
    unlinked_and_replaced_files_stay_open,
    inotify_reports_what_happens,
    shared_memory_is_shared,
    a_full_table_of_descriptors_changes_no_file,
    what_has_no_name_keeps_attributes,
    what_is_held_is_looked_at_without_a_path,
];

/// No path is none to be decided, as since Linux 6.11.
fn what_is_held_is_looked_at_without_a_path(stage: &Stage) {
    let profile = stage.home().join("strict.toml");
    stage.file(&profile, "extends = \"workspace\"\nhiding = \"strict\"\n");
    let script = r#"python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(b"\x80", 512)
fd = os.open(".", os.O_RDONLY)
EMPTY, STATX, FSTATAT, FACCESSAT2, HANDLE = 0x1000, 332, 262, 439, 303
for flags in (EMPTY, 0):
    for path in (None, b"", b"."):
        for number, rest in (
            (STATX, [flags, 0x7ff, buffer]),
            (FSTATAT, [buffer, flags]),
            (FACCESSAT2, [4, flags]),
            (HANDLE, [ctypes.create_string_buffer(b"\x80", 512), buffer, flags]),
        ):
            ctypes.set_errno(0)
            print(flags, path, number, libc.syscall(number, fd, path, *rest), ctypes.get_errno())
END"#;
    stage.same(script).profile(profile.to_str().expect("UTF-8")).check();
}

fn files_without_a_name_get_one(stage: &Stage) {
    python(
        stage,
        "fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(fd, b'x'); print(oct(os.fstat(fd).st_mode), os.fstat(fd).st_nlink)
os.link(f'/proc/self/fd/{fd}', 'named', src_dir_fd=0, follow_symlinks=True); print(os.fstat(fd).st_nlink, os.listdir('.'))
ex = os.open('.', os.O_TMPFILE | os.O_WRONLY | os.O_EXCL)
say(lambda: os.link(f'/proc/self/fd/{ex}', 'no', src_dir_fd=0, follow_symlinks=True)); say(lambda: os.open('named', os.O_TMPFILE | os.O_RDWR))",
    );
}

/// Also where the monitor makes them.
fn files_without_a_name_heed_the_mask(stage: &Stage) {
    let profile = stage.home().join("two.toml");
    stage.file(&profile, "extends = \"workspace\"\n[domains.other]\nexec = [\"/usr/bin/ls\"]\n");
    let made = "import os; os.umask(0o077); fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o666); print(oct(os.fstat(fd).st_mode))";
    let command = format!("ls > listed; python3 -c \"{made}\"");
    stage.same(&command).profile(profile.to_str().expect("UTF-8")).check();
}

fn memory_files_can_be_opened_again(stage: &Stage) {
    python(
        stage,
        "fd = os.memfd_create('m', 0); os.write(fd, b'#!/bin/sh\\necho from memory\\n')
print(open(f'/proc/self/fd/{fd}').read(), end=''); again = os.open(f'/dev/fd/{fd}', os.O_RDWR); os.ftruncate(again, 3)
print(os.stat(fd).st_size)",
    );
}

/// But for the right to be executed, which policy does not grant.
fn memory_files_are_made_as_asked(stage: &Stage) {
    python(
        stage,
        "import fcntl
c = __import__('ctypes').CDLL(None, use_errno=True)
def make(name, flags):
    fd = c.memfd_create(name, flags)
    if fd < 0: raise OSError(__import__('ctypes').get_errno(), '')
    return fd
for flags in [0, 1, 2, 3]:
    fd = make(b'm', flags); print(flags, os.get_inheritable(fd), os.readlink(f'/proc/self/fd/{fd}'))
    say(lambda: fcntl.fcntl(fd, 1033, 2)); say(lambda: os.ftruncate(fd, 10)); print(fcntl.fcntl(fd, 1034) & 15)
for name in [b'x' * 249, b'x' * 250, b'x' * 5000]: say(lambda: make(name, 1) and 0, len(name))
say(lambda: make(b'm', 1 << 20)); say(lambda: make(None, 0))",
    );
}

/// The kernel has a number for the file before it looks for it.
fn a_full_table_of_descriptors_changes_no_file(stage: &Stage) {
    python(
        stage,
        "import resource, ctypes
c = ctypes.CDLL(None, use_errno=True)
open('kept', 'w').write('kept'); resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)); spare = []
try:
    while True: spare.append(os.open('kept', os.O_RDONLY))
except OSError as error: print(error.errno)
how = __import__('struct').pack('QQQ', os.O_WRONLY | os.O_CREAT, 0o600, 0)
for call in [lambda: os.open('kept', os.O_WRONLY | os.O_TRUNC), lambda: os.open('kept', os.O_RDWR | os.O_CREAT | os.O_TRUNC), lambda: os.open('new', os.O_WRONLY | os.O_CREAT, 0o600), lambda: os.open('set', os.O_WRONLY | os.O_CREAT, 0o4755), lambda: os.open('.', os.O_TMPFILE | os.O_RDWR), lambda: os.open('missing', os.O_RDONLY), lambda: os.open('missing/x', os.O_WRONLY | os.O_CREAT), lambda: os.open('', os.O_RDONLY), lambda: os.open('.', os.O_CREAT | os.O_DIRECTORY)]: say(call)
print(c.syscall(437, -100, b'two', how, 24), ctypes.get_errno())
os.close(spare.pop()); print(os.path.getsize('kept'), [name for name in ['new', 'set', 'two'] if os.path.lexists(name)]); say(lambda: os.open('kept', os.O_WRONLY | os.O_TRUNC) and 0); print(os.stat('kept').st_size)",
    );
}

/// Pipes, sockets and memory: whoever holds one may do to it what the kernel lets.
fn what_has_no_name_keeps_attributes(stage: &Stage) {
    python(
        stage,
        "import socket
pipe = os.pipe()[1]; sock = socket.socketpair()[0].detach(); memory = os.memfd_create('m', 0)
for name, fd in [('pipe', pipe), ('socket', sock), ('memory', memory)]:
    say(lambda: os.fchmod(fd, 0o640), name); print(oct(os.fstat(fd).st_mode)); say(lambda: os.fchown(fd, -1, -1), name); say(lambda: os.fchown(fd, os.getuid(), os.getgid()), name); say(lambda: os.utime(fd, (5, 6)), name); print(os.fstat(fd).st_mtime)
    for attribute in ['user.a', 'user.', 'x']: say(lambda: os.setxattr(fd, attribute, b'v'), name, attribute); say(lambda: os.removexattr(fd, attribute), name, attribute)
    say(lambda: os.chmod(f'/proc/self/fd/{fd}', 0o600), name); print(oct(os.fstat(fd).st_mode))",
    );
}

/// As runc, systemd, and the standard libraries of Go and Rust open files: with limits on the way.
fn openat2_heeds_its_limits(stage: &Stage) {
    python(
        stage,
        "import ctypes, struct
c = ctypes.CDLL(None, use_errno=True)
def openat2(path, flags=0, mode=0, resolve=0, at=-100, size=24, more=b''):
    how = struct.pack('QQQ', flags, mode, resolve) + more
    fd = c.syscall(437, at, path.encode(), how, size)
    if fd < 0: raise OSError(ctypes.get_errno(), '')
    return fd
what = kind
os.mkdir('work'); os.chdir('work')
os.mkdir('d'); open('d/f', 'w').write('f'); open('top', 'w').write('top'); os.symlink('f', 'd/l'); os.symlink('../top', 'd/out'); os.symlink('/f', 'd/root'); os.symlink('new', 'd/dangling'); os.symlink('/etc/hostname', 'd/abs'); os.symlink('loop', 'd/loop'); os.symlink('/abs-new', 'd/absdangling')
d = os.open('d', os.O_RDONLY); C = os.O_CREAT | os.O_WRONLY
for resolve in [0, 1, 2, 4, 8, 16, 24, 64, 12, 20]:
    for path in ['f', './f', 'l', 'out', '../top', 'root', '/f', '/etc/hostname', 'abs', 'missing', 'missing/x', '', '.', '..', 'f/', 'f/x', 'loop', '/proc/self/fd', '/proc/self/status', '/proc/self/cwd']:
        for flags in [0, os.O_NOFOLLOW, os.O_DIRECTORY, os.O_PATH, os.O_PATH | os.O_DIRECTORY]:
            say(lambda: what(openat2(path, flags, 0, resolve, d)), path, flags, resolve)
    for path in ['made', 'l', 'dangling', 'f/', 'out', '../made', '/made', 'missing/made', 'absdangling']:
        if path == '/made' and resolve & 16 == 0 and resolve & 8 == 0: continue
        if path == 'absdangling' and resolve & 24 == 0 and resolve & 4 == 0: continue
        for flags in [C, C | os.O_EXCL, C | os.O_NOFOLLOW]:
            say(lambda: what(openat2(path, flags, 0o640, resolve, d)), path, flags, resolve)
            for made in ['d/made', 'd/new', 'made', 'd/abs-new']:
                if os.path.lexists(made): print('  made', made, oct(os.stat(made).st_mode)); os.unlink(made)
p = os.open('/proc/self', os.O_RDONLY)
for resolve in [0, 2, 4, 8, 12, 16]: say(lambda: what(openat2('status', 0, 0, resolve, p)), resolve); say(lambda: what(openat2('task/../status', 0, 0, resolve, p)) and 0, resolve) if resolve in (0, 2, 4) else 0
say(lambda: what(openat2('.', os.O_TMPFILE | os.O_RDWR, 0o600, 8, d)))
for size, more in [(0, b''), (23, b''), (32, b'\\0' * 8), (32, b'\\1' * 8), (5000, b'\\0' * 5000)]: say(lambda: what(openat2('f', 0, 0, 8, d, size, more)), size)
say(lambda: what(openat2('f', 0, 0o600, 0, d))); say(lambda: what(openat2('f', 1 << 31, 0, 0, d))); say(lambda: what(openat2('f', 1 << 40, 0, 0, d))); say(lambda: what(openat2('f', os.O_CREAT, 1 << 20, 0, d)))
say(lambda: c.syscall(437, d, None, struct.pack('QQQ', 0, 0, 0), 24) or 0); say(lambda: os.get_inheritable(openat2('f', os.O_CLOEXEC, 0, 8, d))); say(lambda: os.get_inheritable(openat2('f', 0, 0, 8, d)))",
    );
}

fn attributes_of_file_systems_are_set(stage: &Stage) {
    stage
        .same(
            "touch f; chattr +d f && lsattr f | cut -c 1-22; chattr -d f && lsattr f | cut -c 1-22",
        )
        .check();
}

fn every_kind_of_open_gives_the_same_result(stage: &Stage) {
    python(
        stage,
        "os.mkdir('work'); os.chdir('work'); open('f', 'w').write('hello'); os.symlink('f', 'l'); os.mkdir('d'); os.symlink('nowhere/x', 'dangling'); os.symlink('d', 'ld'); os.mkfifo('p')
names = 'O_CREAT O_EXCL O_TRUNC O_APPEND O_DIRECTORY O_NOFOLLOW O_PATH O_NOATIME O_CLOEXEC O_NONBLOCK'.split()
for path in ['f', 'l', 'd', 'd/', 'f/', 'l/', 'ld/', 'ld', '.', '..', 'd/.', 'd/..', 'missing', 'missing/', 'missing/x', 'f/x', 'dangling', '', 'd//', 'new/../f', 'p']:
    for access in [os.O_RDONLY, os.O_WRONLY, os.O_RDWR]:
        for chosen in [[], ['O_CREAT'], ['O_CREAT', 'O_EXCL'], ['O_TRUNC'], ['O_APPEND'], ['O_DIRECTORY'], ['O_NOFOLLOW'], ['O_PATH'], ['O_PATH', 'O_NOFOLLOW'], ['O_CREAT', 'O_DIRECTORY'], ['O_CREAT', 'O_NOFOLLOW'], ['O_NOATIME']]:
            flags = access | os.O_NONBLOCK
            for name in chosen: flags |= getattr(os, name)
            if path in ('..', 'd/..') and access: continue
            say(lambda: kind(os.open(path, flags, 0o642)), path, access, *chosen)
            for made in ['missing', 'nowhere/x']:
                if os.path.lexists(made): print('  made', made); os.unlink(made)
            if os.path.getsize('f') == 0: print('  cut'); open('f', 'w').write('hello')
say(lambda: os.open('f\\0', 0)); say(lambda: os.open('f', 0, dir_fd=os.open('d', 0))); say(lambda: os.open('../f', 0, dir_fd=os.open('d', os.O_PATH))); say(lambda: os.open('f', 0, dir_fd=99))
say(lambda: os.open('f', 0, dir_fd=os.open('f', 0))); say(lambda: os.open('/etc/hostname', 0, dir_fd=99) and 'absolute')",
    );
}

fn descriptors_lead_to_their_files(stage: &Stage) {
    python(
        stage,
        "import socket
open('f', 'w').write('content'); fd = os.open('f', os.O_RDONLY); os.read(fd, 3); again = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY); print(os.read(again, 20))
p = os.open('f', os.O_PATH); print(os.read(os.open(f'/proc/self/fd/{p}', os.O_RDONLY), 20)); say(lambda: os.read(p, 1))
print(os.readlink(f'/proc/self/fd/{fd}').endswith('/work/f'), os.path.samefile(f'/dev/fd/{fd}', 'f'), sorted(os.listdir('/proc/self/fd')) == sorted(os.listdir('/dev/fd')))
r, w = os.pipe(); w2 = os.open(f'/proc/self/fd/{w}', os.O_WRONLY); os.write(w2, b'through'); print(os.read(r, 20))
a, b = socket.socketpair(); say(lambda: os.open(f'/proc/self/fd/{a.fileno()}', os.O_RDONLY))
print(open('/proc/self/comm').read(), os.readlink('/proc/self/exe'), os.readlink('/proc/self/cwd').endswith('/work'), os.path.basename(os.readlink('/proc/self')) == str(os.getpid()), os.readlink('/proc/thread-self').count('/'))
d = os.open('/proc/self', os.O_PATH); print(os.read(os.open('comm', os.O_RDONLY, dir_fd=d), 20), open('/proc/self/task/%d/comm' % os.getpid()).read(), open('/proc/self/cwd/f').read(), open('/proc/%d/root/proc/self/comm' % os.getpid()).read())
print(len(open('/proc/self/maps').read()) > 100, open('/proc/self/environ').read().count('\\0HOME='), open('/proc/meminfo').read()[:3]); open('/proc/self/oom_score_adj').read()
say(lambda: open('/proc/self/mem', 'rb').close()); say(lambda: open('/proc/nothing')); say(lambda: open('/dev/tty'))",
    );
}

fn unlinked_and_replaced_files_stay_open(stage: &Stage) {
    python(
        stage,
        "f = open('f', 'w+'); f.write('old'); f.flush(); os.unlink('f'); f.seek(0); print(f.read(), os.path.exists('f')); print(open(f'/proc/self/fd/{f.fileno()}').read()); os.fchmod(f.fileno(), 0o600); os.utime(f.fileno(), (1, 2)); print(os.fstat(f.fileno()).st_mtime)
open('a', 'w').write('a'); open('b', 'w').write('b'); a = open('a'); os.rename('b', 'a'); print(a.read(), open('a').read())
os.mkdir('d'); os.chdir('d'); os.rmdir('../d'); say(lambda: open('x', 'w')); say(os.getcwd); say(lambda: os.listdir('.')); os.chdir('..')",
    );
}

fn inotify_reports_what_happens(stage: &Stage) {
    python(
        stage,
        "import ctypes, struct
c = ctypes.CDLL(None, use_errno=True); fd = c.inotify_init1(os.O_NONBLOCK); os.mkdir('d'); wd = c.inotify_add_watch(fd, b'd', 0xfff); print(wd)
open('d/x', 'w').write('1'); os.rename('d/x', 'd/y'); os.chmod('d/y', 0o600); open('d/y').read(); os.link('d/y', 'd/z'); os.unlink('d/y'); os.mkdir('d/e'); os.rmdir('d/e')
data = os.read(fd, 65536)
while data:
    w, mask, cookie, n = struct.unpack('iIII', data[:16]); print(hex(mask), bool(cookie), data[16:16 + n].rstrip(b'\\0')); data = data[16 + n:]
print(c.inotify_add_watch(fd, b'missing', 2), ctypes.get_errno())
import socket; os.mkfifo('p'); s = socket.socket(socket.AF_UNIX); s.bind('s')
for name in [b'p', b's']: print(c.inotify_add_watch(fd, name, 0xfff))
os.close(os.open('p', os.O_RDWR)); os.chmod('s', 0o600); print(os.read(fd, 65536).hex())",
    );
}

fn shared_memory_is_shared(stage: &Stage) {
    python(
        stage,
        "import mmap
with open('/dev/shm/dewar-test-%d' % os.getpid(), 'w+b') as f:
    os.unlink(f.name); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096)
    if os.fork() == 0: m[0] = 7; os._exit(0)
    os.wait(); print(m[0])
open('f', 'wb').write(bytes(8192)); f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0)
if os.fork() == 0: m[5000] = 9; os._exit(0)
os.wait(); print(open('f', 'rb').read()[5000])",
    );
}

/// Compares what a Python program says; `say` prints what a call returns, or the name of its errno.
pub(super) fn python(stage: &Stage, program: &str) {
    stage.same_command(vec!["python3".into(), "-c".into(), with_say(program).into()]).check();
}

/// `program` with the functions that make it brief.
pub(crate) fn with_say(program: &str) -> String {
    format!(
        "import os, sys, errno, stat
def kind(fd): s = os.fstat(fd); os.close(fd); return oct(s.st_mode), s.st_size if stat.S_ISREG(s.st_mode) else 0
def say(call, *what):
    try: result = call()
    except OSError as error: result = errno.errorcode[error.errno]
    except ValueError as error: result = error
    print(*what, result, flush=True)
{program}"
    )
}

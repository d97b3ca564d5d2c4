//! Names that are long, deep, strange, or lead in circles.

use super::files::python;
use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    names_need_not_be_text,
    long_names_fail_where_they_fail_natively,
    deep_directories_can_be_made_and_removed,
    names_beyond_the_longest_path_are_reached_step_by_step,
    links_in_circles_end,
    every_way_to_change_names_gives_the_same_result,
    attributes_change_by_path_and_by_descriptor,
    of_several_faults_the_same_one_is_named,
    a_link_to_a_descriptor_leads_to_no_server,
    a_directory_that_may_not_be_searched_does_not_even_have_itself,
    what_a_slash_stands_behind_is_not_made_whatever_is_there,
];

fn names_need_not_be_text(stage: &Stage) {
    python(
        stage,
        r"for name in [b'\xff\xfe', b'new\nline', b' ', b'-r', b'*', b'\x01\x7f', 'ü€'.encode(), b'a\\b', b'%s', b'(deleted)', b'x (deleted)']:
    open(name, 'wb').write(name); os.mkdir(name + b'.d'); os.rename(name, name + b'.d/' + name); os.symlink(name + b'.d/' + name, name); print(open(name, 'rb').read()); os.chmod(name, 0o600)
print(sorted(os.listdir(b'.')))",
    );
}

fn long_names_fail_where_they_fail_natively(stage: &Stage) {
    python(
        stage,
        "for n in [254, 255, 256, 4000]: say(lambda: open('n' * n, 'w').close(), n); say(lambda: os.mkdir('m' * n), n); say(lambda: os.stat('s' * n), n)
for n in [4094, 4095, 4096, 5000]: say(lambda: kind(os.open('./' * (n // 2) + '.' * (n % 2), 0)), n); say(lambda: os.rename('/' * n, 'x'), n); say(lambda: os.symlink('t' * n, f's{n}'), n); say(lambda: os.execv('/' * n, ['x']), n)
say(lambda: os.readlink('s4095').count('t')); say(lambda: open('s4095')); say(lambda: os.unlink('s4094'))",
    );
}

/// The kernel looks at flags, descriptors, mounts, kinds and rights in an order of its own.
fn of_several_faults_the_same_one_is_named(stage: &Stage) {
    python(
        stage,
        "import ctypes, itertools
c = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    result = c.syscall(number, *[a.encode() if isinstance(a, str) else a for a in args])
    if result < 0: raise OSError(ctypes.get_errno(), '')
    return 0
os.mkdir('d'); open('d/f', 'w').write('f'); open('a', 'w').write('a'); os.mkdir('closed'); open('closed/f', 'w').close(); os.chmod('closed', 0o500); here = os.open('a', os.O_RDONLY); P = os.pipe()[0]; mine = f'/proc/self/fd/{P}'
places = [(-100, 'a'), (-100, 'd/f'), (-100, 'd'), (-100, 'missing'), (-100, 'missing/'), (-100, 'a/'), (-100, '.'), (-100, '..'), (-100, ''), (600, 'a'), (here, 'x'), (here, '.'), (-100, 'closed/f'), (-100, 'closed/new'), (-100, mine), (-100, '/proc/self/fd/599')]
root = os.geteuid() == 0 # Natively, nothing is closed to root.
if root: places = [place for place in places if 'closed' not in place[1]]
for (one, old), (other, new) in itertools.product(places, places):
    # Between file systems, of which a view has more, it is said first that something is not there.
    if old in ('missing', 'missing/', 'closed/new', '/proc/self/fd/599') and ('/proc' in old) != ('/proc' in new): continue
    for flags in [1, 2, 3, 8]: # Nothing is replaced, so that every pair finds the same.
        if flags == 2 and {old, new} <= {'a', 'd/f', 'd', 'closed/f'}: continue
        if flags == 1 and new in ('missing', 'missing/', 'closed/new'): continue
        say(lambda: call(316, one, old, other, new, flags), one, old, other, new, flags)
    if new not in ('missing', 'closed/new'): say(lambda: call(265, one, old, other, new, 0), one, old, other, new); say(lambda: call(265, one, old, other, new, 1), one, old)
for at, path in places:
    for number, *args in [(263, 0x200), (263, 1), (268, 0o755, 0x4000), (260, -1, -1, 1)]:
        if path == '..' or (path == '.' and number == 268): continue
        say(lambda: call(number, at, path, *args), number, at, path)
    if path not in ('missing', 'missing/', 'closed/new'): say(lambda: call(258, at, path, 0o700), at, path); say(lambda: call(259, at, path, 0o100644, 0), at, path); say(lambda: call(259, at, path, 0o120644, 0), at, path); say(lambda: call(266, 'x', at, path), at, path); say(lambda: call(266, '', at, path), at, path)
    if path not in ('d',): say(lambda: call(263, at, path, 0x200), at, path)
    for flags in [0o200100, 0o20000000, 0o20200000, 0o200001]: say(lambda: call(257, at, path, flags, 0o600) and 0, at, path, flags)
    say(lambda: call(280, at, path, None, 0x4000), at, path)
for path in ['a', mine, '', 'missing', 'd']:
    for mask in [0, 0x100, 0x1000000, 0x30000000 | 0x100]: say(lambda: call(254, c.inotify_init(), path, mask), path, mask)
    say(lambda: call(254, here, path, 0x100), path); say(lambda: call(254, 600, path, 0), path)
for number, *args in [(280, -100, None, None, 0), (280, here, None, None, 0x100), (268, -100, '', 0o700, 0), (452, -100, '', 0o700, 0x1000), (72, 600, 8, 1), (188, 'a', 'user.a', 'v', 1, 9), (188, 'a', '', 'v', 1, 0), (188, 'missing', 'x' * 300, 'v', 1, 0), (322, -100, '', None, None, 0x1000), (322, -100, 'a', None, None, 1)]: say(lambda: call(number, *args), number)
for uid in [-1] if root else [4242, -1]: say(lambda: call(105, uid)); say(lambda: call(106, uid)); say(lambda: call(117, -1, uid, -1)); say(lambda: call(113, uid, -1)); say(lambda: call(119, -1, uid, -1))
print(sorted(os.listdir('.')), os.path.getsize('a'))",
    );
}

fn deep_directories_can_be_made_and_removed(stage: &Stage) {
    python(
        stage,
        "import shutil
top = os.getcwd()
for i in range(40): os.mkdir('deep' * 20); os.chdir('deep' * 20)
open('bottom', 'w').write('x'); print(os.stat('bottom').st_size); print(open(os.getcwd() + '/bottom').read())
os.chdir('../..'); os.rename('deep' * 20, 'renamed'); print(os.listdir('.')); open('renamed/y', 'w').close(); os.chmod('renamed/y', 0o600)
os.chdir(top); shutil.rmtree('deep' * 20); print(os.listdir('.'))",
    );
}

/// No path is longer than 4,096 bytes, but directories lie deeper; what lies there is decided, too.
fn names_beyond_the_longest_path_are_reached_step_by_step(stage: &Stage) {
    python(
        stage,
        r"import shutil, socket
name = 'deep' * 50; fd = top = os.open('.', os.O_RDONLY)
for i in range(30): os.mkdir(name, dir_fd=fd); fd = os.open(name, os.O_RDONLY, dir_fd=fd)
made = os.open('f', os.O_CREAT | os.O_WRONLY, dir_fd=fd); os.write(made, b'12'); os.close(made)
for use in [lambda: os.stat('f', dir_fd=fd).st_size, lambda: os.rename('f', 'g', src_dir_fd=fd, dst_dir_fd=fd), lambda: os.symlink('g', 'h', dir_fd=fd), lambda: os.readlink('h', dir_fd=fd), lambda: os.link('g', 'k', src_dir_fd=fd, dst_dir_fd=fd),
            lambda: os.chmod('g', 0o600, dir_fd=fd), lambda: os.utime('g', (1, 2), dir_fd=fd), lambda: os.unlink('k', dir_fd=fd), lambda: sorted(os.listdir(fd)), lambda: os.read(os.open('g', os.O_RDONLY, dir_fd=fd), 9), lambda: os.close(os.open('none', os.O_RDONLY, dir_fd=fd)), lambda: os.mkfifo('p', dir_fd=fd)]: say(use)
os.fchdir(fd); say(lambda: open('z', 'w').write('x')); say(lambda: os.rename('z', 'y')); say(lambda: os.mkdir('d')); say(lambda: os.rmdir('d')); say(lambda: os.truncate('y', 0)); say(lambda: os.access('y', 4)); say(lambda: os.listdir('..')); say(lambda: open('/etc/hostname').close())
s = socket.socket(socket.AF_UNIX); say(lambda: s.bind('s')); s.listen(); say(lambda: socket.socket(socket.AF_UNIX).connect('s'))
shutil.copy('/bin/true', 'run'); print(os.spawnv(os.P_WAIT, './run', ['run'])); say(lambda: os.rename('../' + name, '../other')); print(os.listdir('..')); os.fchdir(top); shutil.rmtree(name); print(os.listdir('.'))",
    );
}

/// The kernel follows 40 links in one walk. It starts a walk over when a mount or a rename anywhere
/// on the machine comes in between, and goes on counting where it was: so a chain of more than 20
/// links can be refused now and then, natively too. What should work is therefore tried again.
fn links_in_circles_end(stage: &Stage) {
    python(
        stage,
        "os.symlink('a', 'a'); os.symlink('c', 'b'); os.symlink('b', 'c'); os.mkdir('d'); os.symlink('../d', 'd/up'); os.symlink('.', 'self')
for p in ['a', 'b', 'b/x', 'a/', 'd/' + 'up/' * 20, 'd/' + 'up/' * 39, 'd/' + 'up/' * 41, 'self/' * 40 + 'd', 'self/' * 41 + 'd']:
    say(lambda: kind(os.open(p, 0)), p); say(lambda: open(p, 'w'), p); say(lambda: os.stat(p).st_nlink, p); say(lambda: os.chmod(p, 0o700), p); say(lambda: os.mkdir(p), p); say(lambda: os.truncate(p, 1), p); say(lambda: os.execv(p, ['x']), p)
for i in range(45): os.symlink(f'l{i + 1}', f'l{i}')
open('l45', 'w').write('end')
def patiently(call):
    for _ in range(50):
        try: return call()
        except OSError as error: last = error
    raise last
for links in [15, 20, 21, 35, 39, 40, 41, 45]: say(lambda: patiently(lambda: open(f'l{45 - links}').read()), links); say(lambda: patiently(lambda: open(f'l{45 - links}', 'a').close()), links); say(lambda: patiently(lambda: os.truncate(f'l{45 - links}', 3)), links)",
    );
}

fn every_way_to_change_names_gives_the_same_result(stage: &Stage) {
    python(
        stage,
        "import shutil
def fresh():
    for e in os.listdir('.'): shutil.rmtree(e) if os.path.isdir(e) and not os.path.islink(e) else os.unlink(e)
    open('f', 'w').write('f'); open('g', 'w').write('g'); os.mkdir('d'); os.mkdir('e'); open('e/x', 'w').close(); os.symlink('f', 'l'); os.symlink('d', 'ld'); os.symlink('none', 'dang'); os.mkfifo('p')
def state(): return sorted((r, sorted(d), sorted(f)) for r, d, f in os.walk('.'))
names = ['f', 'g', 'd', 'e', 'l', 'ld', 'dang', 'none', 'd/', 'f/', 'none/', 'ld/', 'ld/new', 'e/x', 'd/new', 'f/x', 'none/x', '.', '..', 'd/.', 'd/..', '', '/', 'p', 'e/../g']
fresh(); before = state()
def attempt(call, *what):
    say(call, *what); now = state()
    if now != before: print(now); fresh()
for a in names:
    for call in [os.unlink, os.rmdir, os.mkdir, os.mkfifo, lambda p: os.symlink('t', p), lambda p: os.mknod(p, 0o600), lambda p: os.mknod(p, 0o140600), lambda p: os.mknod(p, 0o040700)]: attempt(lambda: call(a), a)
    for b in names:
        attempt(lambda: os.rename(a, b), 'rename', a, b)
        attempt(lambda: os.link(a, b, follow_symlinks=False), 'link', a, b)
fresh()",
    );
}

fn attributes_change_by_path_and_by_descriptor(stage: &Stage) {
    python(
        stage,
        "import socket
open('f', 'w').write('12345'); os.mkdir('d'); os.symlink('f', 'l'); os.symlink('none', 'dang'); os.mkfifo('p'); s = socket.socket(socket.AF_UNIX); s.bind('s'); f = os.open('f', 0); path = os.open('f', os.O_PATH); d = os.open('d', 0)
def status(p): s = os.lstat(p) if isinstance(p, str) else os.fstat(p); return oct(s.st_mode), s.st_size if stat.S_ISREG(s.st_mode) else 0, s.st_mtime if s.st_mtime < 1e9 else 'now'
for p in ['f', 'd', 'l', 'dang', 'p', 's', 'f/', 'd/', '', 'none', f, d, path]:
    for call in [lambda: os.chmod(p, 0o751), lambda: os.utime(p, (1, 2)), lambda: os.utime(p, ns=(5, 6000000007)), lambda: os.utime(p, (3, 4), follow_symlinks=False), lambda: os.chown(p, -1, -1), lambda: os.chown(p, os.getuid(), os.getgid(), follow_symlinks=False), lambda: os.truncate(p, 3), lambda: os.setxattr(p, 'user.a', b'b'), lambda: os.getxattr(p, 'user.a'), lambda: os.removexattr(p, 'user.a'), lambda: os.removexattr(p, 'user.a'), lambda: os.setxattr(p, 'bad', b''), lambda: os.setxattr(p, 'user.a', b'', os.XATTR_REPLACE)]: say(call, p)
    say(lambda: status(p), p)
os.chmod('f', 0o600, dir_fd=os.open('.', 0)); os.utime('f', (7, 8), dir_fd=os.open('.', os.O_PATH)); print(status('f'), status('l')[0]); os.utime('f'); print(status('f')); say(lambda: os.fchmod(path, 0o777)); say(lambda: os.truncate('f', -1))",
    );
}

fn a_link_to_a_descriptor_leads_to_no_server(stage: &Stage) {
    python(
        stage,
        "import socket; a, b = socket.socketpair(); os.symlink(f'/dev/fd/{a.fileno()}', 'l'); os.symlink(f'/proc/self/fd/{b.fileno()}', 'm')
for n in ['l', 'm', f'/dev/fd/{a.fileno()}']: say(lambda: socket.socket(socket.AF_UNIX).connect(n))",
    );
}

/// The kernel looks for `.` in the directory, as for any name. Root searches everything natively,
/// where it has its capabilities.
fn a_directory_that_may_not_be_searched_does_not_even_have_itself(stage: &Stage) {
    if stage.variant.is_root() {
        return;
    }
    python(
        stage,
        "import ctypes, struct
c = ctypes.CDLL(None, use_errno=True); top = os.getcwd()
def openat2(path, flags, mode, resolve, at=-100):
    fd = c.syscall(437, at, path.encode(), struct.pack('QQQ', flags, mode, resolve), 24)
    if fd < 0: raise OSError(ctypes.get_errno(), '')
    return kind(fd)
def creat(path): return c.creat(path.encode(), 0o600) < 0 and -ctypes.get_errno()
os.mkdir('d'); open('d/f', 'w').close(); os.mkdir('d/e'); d = os.open('d', os.O_RDONLY); os.chdir('d')
for mode in [0o600, 0o200, 0o000, 0o100, 0o700]:
    os.chmod(top + '/d', mode)
    for path in ['.', './', './.', '..', '../', './..', '', 'f', './f', 'f/', 'e', 'e/', 'e/.', '//', top + '/d', top + '/d/', top + '/d/.']:
        for flags in [os.O_RDONLY, os.O_RDWR, os.O_PATH, os.O_DIRECTORY, os.O_WRONLY | os.O_CREAT, os.O_TMPFILE | os.O_RDWR]:
            say(lambda: kind(os.open(path, flags, 0o600)), path, flags); say(lambda: kind(os.open(path, flags, 0o600, dir_fd=d)), path, flags)
            for resolve in [0, 2, 4, 8, 16]: say(lambda: openat2(path, flags, 0o600 if flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE else 0, resolve), path, flags, resolve); say(lambda: openat2(path, flags, 0, resolve, d), path, flags, resolve)
        if path in ['', '.', './', './.']:
            for call in [lambda: creat(path), lambda: os.mkdir(path), lambda: os.rmdir(path), lambda: os.unlink(path), lambda: os.symlink('x', path), lambda: os.mkfifo(path), lambda: os.rename(path, 'r'), lambda: os.rename('f', path), lambda: os.link(path, 'r'), lambda: os.truncate(path, 1)]: say(call, path)
        for call in [lambda: os.chown(path, -1, -1), lambda: os.utime(path, (1, 2)), lambda: os.setxattr(path, 'x', b''), lambda: os.removexattr(path, 'user.a'), lambda: os.getxattr(path, 'user.a'), lambda: os.stat(path).st_mode, lambda: os.access(path, 4), lambda: os.chdir(path), lambda: os.listdir(path)]: say(call, path); os.fchdir(d)
os.chmod(top + '/d', 0o700); os.chdir(top)",
    );
}

/// Whether by its own slash, or by that of a link that leads to it.
fn what_a_slash_stands_behind_is_not_made_whatever_is_there(stage: &Stage) {
    python(
        stage,
        "import ctypes, struct
c = ctypes.CDLL(None, use_errno=True)
def openat2(path, flags, mode, resolve):
    fd = c.syscall(437, -100, path.encode(), struct.pack('QQQ', flags, mode, resolve), 24)
    if fd < 0: raise OSError(ctypes.get_errno(), '')
    return kind(fd)
os.mkdir('d'); open('f', 'w').close(); os.symlink('loop/', 'loop'); os.symlink('loop', 'plainloop')
for name, target in [('file', 'f/'), ('none', 'n/'), ('dir', 'd/'), ('deep', 'n/m/'), ('below', 'f/m/'), ('second', 'file'), ('in', 'd/n/'), ('top', os.getcwd() + '/n/'), ('twice', 'f//'), ('dot', 'n/.'), ('self', 'self')]: os.symlink(target, name)
for path in ['file', 'none', 'dir', 'deep', 'below', 'second', 'in', 'top', 'twice', 'dot', 'self', 'loop', 'plainloop', 'f/', 'n/', 'd/', 'loop/', 'file/', 'f//', 'n/m/']:
    for flags in [os.O_WRONLY | os.O_CREAT, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, os.O_PATH | os.O_CREAT, os.O_WRONLY]:
        say(lambda: kind(os.open(path, flags, 0o600)), path, flags)
        for resolve in [0, 2, 4, 8, 16]: say(lambda: openat2(path, flags, 0o600 if flags & os.O_CREAT else 0, resolve), path, flags, resolve)
print(sorted(os.listdir('.')), os.listdir('d'))",
    );
}

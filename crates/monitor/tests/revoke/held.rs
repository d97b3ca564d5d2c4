//! Every way to hold a file.

use crate::{Case, cases, stage::Stage, stage::check};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    own_descriptors_are_taken,
    what_others_hold_is_taken,
    what_hides_in_a_queue_is_taken,
    memory_is_taken,
    memory_that_is_only_read_stays_when_writing_is_taken,
    many_descriptors_and_mappings_are_taken_at_once,
    what_is_open_for_both_can_be_read_when_writing_is_taken,
    who_waits_for_a_lock_of_what_is_taken_does_not_get_it,
    memory_of_a_deleted_file_is_taken,
    watches_are_removed,
    every_watch_of_many_is_removed,
    new_opens_are_denied_by_every_name,
];

fn own_descriptors_are_taken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
reader = os.open("secret", os.O_RDONLY)
writer = os.open("secret", os.O_WRONLY)
both = os.open("secret", os.O_RDWR | os.O_APPEND)
copy = os.dup(reader)
other = os.open("public", os.O_RDWR)
change()
say("read", lambda: os.read(reader, 6))
say("pread", lambda: os.pread(both, 6, 0))
say("copy", lambda: os.read(copy, 6))
say("write", lambda: os.write(writer, b"x"))
say("append", lambda: os.write(both, b"x"))
say("truncate", lambda: os.ftruncate(writer, 0))
say("sendfile", lambda: os.sendfile(1, reader, 0, 6))
say("seek", lambda: os.lseek(reader, 0, os.SEEK_END))
say("cloexec", lambda: os.get_inheritable(copy))
say("other", lambda: os.read(other, 6))
say("otherwrite", lambda: os.write(other, b" CONTENT"))
"#,
    );
    assert_eq!(
        ran.said,
        json!({
            "read": "EACCES", "pread": "EACCES", "copy": "EACCES", "write": "EBADF", "append": "EBADF",
            "truncate": "EINVAL", "sendfile": "EINVAL", "seek": "EINVAL", "cloexec": false,
            "other": "public", "otherwrite": 8,
        }),
        "{:?} {}",
        ran.output,
        ran.receipt
    );
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["replaced"; 4]);
    assert_eq!(std::fs::read_to_string(stage.path().join("secret")).unwrap(), "secret content");
}

fn what_others_hold_is_taken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
inherited = os.open("secret", os.O_RDONLY)
left, right = socket.socketpair()
flying, landing = socket.socketpair()
end, begin = os.pipe()
child = os.fork()
if child == 0:
    _, fds, _, _ = socket.recv_fds(right, 10, 4)
    os.write(begin, b"r")
    while not os.path.exists("changed"):
        pass
    for fd in [inherited, *fds]:
        try:
            os.write(begin, os.read(fd, 6) or b"e")
        except OSError as error:
            os.write(begin, b"A" if error.errno == errno.EACCES else b"?")
    os._exit(0)
socket.send_fds(left, [b"x"], [os.open("secret", os.O_RDWR), os.open("public", os.O_RDONLY)])
socket.send_fds(flying, [b"x"], [os.open("secret", os.O_RDONLY)])
os.read(end, 1)
change()
os.waitpid(child, 0)
say("child", lambda: os.read(end, 100))
say("landed", lambda: len(socket.recv_fds(landing, 10, 4)[1]))
"#,
    );
    assert_eq!(
        ran.said,
        json!({ "child": "AApublic", "landed": 0 }),
        "{:?} {}",
        ran.output,
        ran.receipt
    );
    assert!(ran.is_complete());
    assert_eq!(ran.actions("inflight"), ["shutdown"]);
}

/// Behind an empty packet, which looks like the end; and beside a message that is looked at in two
/// parts, so that as many descriptors are seen as there are.
fn what_hides_in_a_queue_is_taken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
public = [os.open("public", os.O_RDONLY)]
def send(end, content, fds, flags=0):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, "little")) for fd in fds]
    end.sendmsg([content], rights, flags)
def flying(kind, *messages):
    left, right = socket.socketpair(socket.AF_UNIX, kind)
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for message in messages:
        send(left, *message)
    return left, right
secret = lambda: [os.open("secret", os.O_RDONLY)]
packets, stream, some = socket.SOCK_SEQPACKET, socket.SOCK_STREAM, bytes(30000)
pairs = [
    flying(packets, (b"", []), (b"x", secret())),
    flying(packets, (b"", []), (b"", []), (b"", secret()), (b"", []), (b"x", [])),
    flying(packets, (bytes(100000), public), (b"", []), (b"x", secret())),
    flying(stream, (b"y", secret(), socket.MSG_OOB), (some, []), (some, []), (some, public)),
]
change()
said["read"], said["kept"] = [], 0
for _, right in pairs:
    right.setblocking(False)
    right.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    for _ in range(20):
        try:
            content, fds, _, _ = socket.recv_fds(right, 1 << 20, 4)
        except OSError:
            break
        said["kept"] += len(content)
        said["read"] += [os.read(fd, 6).decode() for fd in fds]
"#,
    );
    check(&ran, &json!({ "read": [], "kept": 0 }));
    assert!(ran.is_complete());
    assert_eq!(ran.actions("inflight"), ["shutdown"; 4]);
}

fn memory_is_taken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
def mapped(flags, access):
    child = os.fork()
    if child == 0:
        fd = os.open("secret", os.O_RDWR)
        memory = mmap.mmap(fd, 0, flags, mmap.PROT_READ | access)
        os.close(fd)
        public = mmap.mmap(os.open("public", os.O_RDONLY), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
        open(f"mapped{flags}", "w").close()
        while not os.path.exists("changed"):
            pass
        if public[:6] != b"public":
            os._exit(3)
        os._exit(4 if memory[:1] == b"s" else 5)
    while not os.path.exists(f"mapped{flags}"):
        time.sleep(0.002)
    return child
children = [mapped(mmap.MAP_PRIVATE, 0), mapped(mmap.MAP_SHARED, mmap.PROT_WRITE)]
change()
said["ends"] = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"#,
    );
    let bus = -libc::SIGBUS;
    assert_eq!(ran.said, json!({ "ends": [bus, bus] }), "{:?} {}", ran.output, ran.receipt);
    assert!(ran.is_complete());
    assert_eq!(ran.actions("mapping"), ["unmapped"; 2]);
}

fn new_opens_are_denied_by_every_name(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
os.link("secret", "alias")
os.symlink("secret", "link")
change()
for name in ["secret", "alias", "link", "./../" + os.path.basename(os.getcwd()) + "/secret", "secret2"]:
    say(name[-6:], lambda: os.open(name, os.O_RDWR | os.O_CREAT) and 1)
say("public", lambda: os.read(os.open("public", os.O_RDONLY), 6))
say("stat", lambda: os.stat("secret").st_size)
"#,
    );
    assert_eq!(
        ran.said,
        json!({
            "secret": "EACCES", "alias": "EACCES", "link": "EACCES", "ecret2": "EACCES", "public": "public",
            "stat": 14,
        }),
        "{:?} {}",
        ran.output,
        ran.receipt
    );
    assert!(ran.is_complete());
}

fn many_descriptors_and_mappings_are_taken_at_once(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
fds = [os.open("secret", os.O_RDONLY) for _ in range(500)]
kept = os.open("public", os.O_RDONLY)
maps = [mmap.mmap(fds[0], 0, prot=mmap.PROT_READ) for _ in range(20)]
change()
ends = set()
for fd in fds:
    try:
        os.read(fd, 1)
    except OSError as error:
        ends.add(errno.errorcode[error.errno])
said["ends"] = list(ends)
say("kept", lambda: os.read(kept, 6))
child = os.fork()
if child == 0:
    os._exit(maps[19][0])
said["map"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#,
    );
    let want = json!({ "ends": ["EACCES"], "kept": "public", "map": -libc::SIGBUS });
    assert_eq!(ran.said, want, "{:?}", ran.output);
    assert!(ran.is_complete());
    // An object of its own holds a duplicate for each mapping.
    assert_eq!(ran.actions("descriptor").len(), 520);
    assert_eq!(ran.actions("mapping").len(), 20);
}

fn memory_that_is_only_read_stays_when_writing_is_taken(stage: &Stage) {
    let ran = stage.change(
        ("", "[files]\nreadonly = ['${workspace}/secret*']\n"),
        "\"repair\"",
        r#"
read = mmap.mmap(os.open("secret", os.O_RDONLY), 0, mmap.MAP_SHARED, mmap.PROT_READ)
fd = os.open("secret", os.O_RDWR)
child = os.fork()
if child == 0:
    written = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    open("mapped", "w").close()
    while not os.path.exists("changed"):
        pass
    os._exit(written[0])
while not os.path.exists("mapped"):
    time.sleep(0.002)
change()
said["read"] = read[:6].decode()
say("write", lambda: os.write(fd, b"x"))
say("open", lambda: os.read(os.open("secret", os.O_RDONLY), 6))
said["written"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#,
    );
    let want =
        json!({ "read": "secret", "write": "EBADF", "open": "secret", "written": -libc::SIGBUS });
    assert_eq!(ran.said, want, "{:?} {}", ran.output, ran.receipt);
}

fn what_is_open_for_both_can_be_read_when_writing_is_taken(stage: &Stage) {
    let ran = stage.change(
        ("", "[files]\nreadonly = ['${workspace}/secret*']\n"),
        "\"repair\"",
        r#"
both = os.open("secret", os.O_RDWR)
other = os.open("secret", os.O_RDWR)
copy = os.dup(both)
os.read(both, 2)
end, begin = os.pipe()
child = os.fork()
if child == 0:
    while not os.path.exists("changed"):
        pass
    os.write(begin, os.read(copy, 2))
    os._exit(0)
change()
os.waitpid(child, 0)
say("child", lambda: os.read(end, 9))
say("both", lambda: os.read(both, 2))
say("copy", lambda: os.read(copy, 1))
say("other", lambda: os.read(other, 3))
say("write", lambda: os.write(copy, b"x"))
say("truncate", lambda: os.ftruncate(other, 0))
say("map", lambda: mmap.mmap(both, 0, prot=mmap.PROT_WRITE) and 1)
say("again", lambda: os.open(f"/proc/self/fd/{both}", os.O_RDWR))
"#,
    );
    // The child and its parent read at one place, as before.
    let want = json!({
        "child": "cr", "both": "et", "copy": " ", "other": "sec", "write": "EBADF",
        "truncate": "EINVAL", "map": "EACCES", "again": "EACCES",
    });
    assert_eq!(ran.said, want, "{:?} {}", ran.output, ran.receipt);
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["narrowed"; 6]);
    assert_eq!(std::fs::read_to_string(stage.path().join("secret")).unwrap(), "secret content");
}

fn who_waits_for_a_lock_of_what_is_taken_does_not_get_it(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
import fcntl, struct
def lock(name, wait):
    fd = os.open("secret", os.O_RDWR)
    thread = threading.Thread(target=lambda: say(name, lambda: wait(fd)))
    thread.start()
    return thread
held = os.open("secret", os.O_RDWR)
fcntl.flock(held, fcntl.LOCK_EX)
region = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
fcntl.fcntl(held, fcntl.F_OFD_SETLK, region)
shared = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0)
threads = [lock("flock", lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)), lock("ofd", lambda fd: fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, shared))]
child = os.fork()
if child == 0:
    alone = os.open("secret", os.O_RDWR)
    try:
        fcntl.flock(alone, fcntl.LOCK_SH)
        os._exit(1)
    except OSError as error:
        os._exit(error.errno)
while sum("->" in line for line in open("/proc/locks")) < 3:
    time.sleep(0.002)
change()
for thread in threads:
    thread.join()
said["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#,
    );
    let want = json!({ "flock": "EACCES", "ofd": "EACCES", "child": libc::EACCES });
    assert_eq!(ran.said, want, "{:?} {}", ran.output, ran.receipt);
    assert!(ran.is_complete());
}

fn memory_of_a_deleted_file_is_taken(stage: &Stage) {
    let ran = stage.without_secret(
        r#"
file = os.open("secret", os.O_RDWR)
shared = mmap.mmap(file, 0)
os.close(file)
os.unlink("secret")
child = os.fork()
if child == 0:
    change()
    os.write(1, shared[:6])
    os._exit(0)
said["status"] = os.waitpid(child, 0)[1] & 0x7f
"#,
    );
    assert_eq!(ran.said, json!({ "status": 7 }), "{:?} {}", ran.output, ran.receipt);
    assert!(ran.is_complete());
    assert_eq!(ran.actions("mapping"), ["unmapped"; 2]);
}

/// The kernel writes their numbers in hexadecimal.
fn every_watch_of_many_is_removed(stage: &Stage) {
    let hide = "[files]\nhide = ['${workspace}/nothing']\n";
    let ran = stage.change(
        (hide, &format!("{hide}deny = ['${{workspace}}/secret*']\n")),
        "\"repair\"",
        r#"
import ctypes
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
for number in range(40):
    name = f"{'secret' if number % 2 else 'public'}{number}"
    open(name, "w").close()
    assert libc.inotify_add_watch(fd, name.encode(), 0x20) == number + 1
change()
events = os.read(fd, 16 * 100)
said["ignored"] = sorted(int.from_bytes(events[at:at + 4], "little") for at in range(0, len(events), 16))
"#,
    );
    let want: Vec<i32> = (1..=20).map(|half| half * 2).collect();
    assert_eq!(ran.said, json!({ "ignored": want }), "{:?} {}", ran.output, ran.receipt);
    assert_eq!(ran.actions("watch"), ["removed"; 20]);
}

fn watches_are_removed(stage: &Stage) {
    let ran = stage.change(
        (
            "[files]\nhide = ['${workspace}/nothing']\n",
            "[files]\nhide = ['${workspace}/nothing']\ndeny = ['${workspace}/secret*']\n",
        ),
        "\"repair\"",
        r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
def watch(name):
    number = libc.inotify_add_watch(fd, name, 0x100 | 0x20 | 2)
    if number < 0:
        raise OSError(ctypes.get_errno(), "watch")
    return number
said["watch"] = [watch(b"secret"), watch(b"public")]
change()
said["ignored"] = int.from_bytes(os.read(fd, 16)[4:8], "little")
say("again", lambda: watch(b"secret"))
os.close(os.open("public", os.O_WRONLY))
said["kept"] = int.from_bytes(os.read(fd, 16)[4:8], "little")
"#,
    );
    let want = json!({ "watch": [1, 2], "ignored": 0x8000, "again": "EACCES", "kept": 0x20 });
    assert_eq!(ran.said, want, "{:?} {}", ran.output, ran.receipt);
    assert_eq!(ran.actions("watch"), ["removed"]);
}

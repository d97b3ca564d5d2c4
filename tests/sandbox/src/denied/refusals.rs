//! What is refused whatever policy says: it fails as ever, and is on record with who refuses it and
//! what to do instead.

use super::refused::refused_under;
use crate::{
    Case, cases,
    dewar::Call,
    kernel::with_say,
    process::run,
    stage::{Stage, bash},
};
use test_support::Variant;

pub(super) const CASES: &[Case] = cases![
    what_no_profile_grants_is_on_record,
    messages_that_nobody_could_decide_are_on_record,
    memory_that_is_not_executed_is_on_record,
    a_program_that_nobody_can_look_into_is_on_record,
    a_directory_that_is_not_moved_to_a_guarded_name_is_on_record,
    a_directory_that_is_not_moved_is_on_record_and_nothing_in_it_as_written,
    a_sandbox_inside_is_refused_with_what_to_do_instead,
    what_would_reach_more_processes_than_can_be_asked_about_is_on_record,
    what_the_monitor_cannot_send_as_the_program_is_on_record,
    who_gets_signals_by_ioctl_is_decided,
    a_number_of_the_runs_own_is_not_judged_by_who_has_it_outside,
];

/// What `dewar explain` says of the last run.
fn explained(stage: &Stage) -> String {
    run(stage.control(&["explain"]), b"").out()
}

/// Python that makes a system call by its number and prints the name of its errno.
const CALL: &str = "import ctypes, fcntl
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args]) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return 'done'
";

fn what_no_profile_grants_is_on_record(stage: &Stage) {
    // mount, unshare, clone with CLONE_NEWUSER, keyctl, open_by_handle_at; TIOCSTI.
    let program = format!(
        "{CALL}say(lambda: call(165, b'a', b'b', b'tmpfs', 0, None)); say(lambda: call(272, 0x10000000)); say(lambda: call(56, 0x10000011, 0, 0, 0, 0)); say(lambda: call(250, 0, -3, 0, 0, 0)); say(lambda: call(304, 0, None, 0)); say(lambda: fcntl.ioctl(0, 0x5412, b'x'))"
    );
    let (_, record) = refused_under(stage, None, &program);
    for (object, call) in [
        ("the view of the file system", "mount"),
        ("a new user namespace", "unshare"),
        ("a new user namespace", "clone"),
        ("the kernel's keyrings", "keyctl"),
        ("files", "open_by_handle_at"),
        ("TIOCSTI (types into the terminal)", "ioctl"),
    ] {
        let found = record.denials_of(object);
        assert!(found.iter().any(|it| it.call == call), "{call}: {:?}", record.denials);
    }
    let told = explained(stage);
    assert!(told.contains("refused by   the system-call filter"), "{told}");
    assert!(told.contains("instead      ") && !told.contains("would allow"), "{told}");
}

fn messages_that_nobody_could_decide_are_on_record(stage: &Stage) {
    let profile = stage.profile(
        "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:9', '127.0.0.1:9/udp']\n",
    );
    let program = "import socket, struct, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def send(kind, flags, family):
    s = socket.socket(socket.AF_INET, kind); to = struct.pack('=HH4s8x', family, socket.htons(9), bytes([127, 0, 0, 1]))
    if libc.sendto(s.fileno(), b'x', 1, flags, to, 16) < 0: print(ctypes.get_errno())
    else: print('sent')
send(socket.SOCK_DGRAM, 0, 0); send(socket.SOCK_STREAM, 0x20000000, 2)";
    let words = ["python3".into(), "-c".into(), program.into()];
    let ran = run(stage.dewar(Call { profile: Some(&profile), ..stage.call() }, &words), b"");
    assert_eq!(ran.out(), "97\n95\n", "{}", ran.err());
    let record = stage.record();
    for object in ["no address", "by TCP Fast Open (MSG_FASTOPEN)"] {
        record.explains(object);
    }
    let told = explained(stage);
    assert!(told.contains("connect first") && told.contains("the socket object manager"), "{told}");
}

fn memory_that_is_not_executed_is_on_record(stage: &Stage) {
    let program =
        "m = os.memfd_create('program', 0); os.write(m, open('/usr/bin/true', 'rb').read())
say(lambda: os.execv('/proc/self/fd/%d' % m, ['true']))";
    let (_, record) = refused_under(stage, None, program);
    assert!(
        record.denials.iter().any(|it| it.object.starts_with("/memfd:program")),
        "{:?}",
        record.denials
    );
    assert!(explained(stage).contains("write the program to a file"), "{}", explained(stage));
}

fn a_program_that_nobody_can_look_into_is_on_record(stage: &Stage) {
    let program = "import shutil; shutil.copy('/usr/bin/true', 'closed'); os.chmod('closed', 0o111)
say(lambda: os.execv('closed', ['true']))";
    // Root may look into everything.
    if stage.variant == Variant::Root {
        return;
    }
    let (_, record) = refused_under(stage, None, program);
    assert!(!record.denials_of("closed").is_empty(), "{:?}", record.denials);
    assert!(explained(stage).contains("chmod +r"), "{}", explained(stage));
}

fn a_directory_that_is_not_moved_to_a_guarded_name_is_on_record(stage: &Stage) {
    let profile = stage.profile("extends = 'workspace'\nfiles.guard = 'host-trusted'\n");
    let program = "os.makedirs('plain/deep'); open('plain/deep/tasks.json', 'w').close(); os.makedirs('x/hooks'); open('x/hooks/pre-commit', 'w').close()
say(lambda: os.rename('plain', '.vscode')); say(lambda: os.rename('x', '.git'))";
    let (_, record) = refused_under(stage, Some(&profile), program);
    for object in ["/.vscode", "/.git/hooks"] {
        let found = record.denials_of(object);
        assert!(found.iter().any(|it| it.call == "rename"), "{object}: {:?}", record.denials);
    }
}

/// Where everything in it could have been made.
fn a_directory_that_is_not_moved_is_on_record_and_nothing_in_it_as_written(stage: &Stage) {
    stage.prepare("mkdir -p .git/hooks; echo x > .git/config; echo x > .git/hooks/pre-commit");
    let profile = stage.profile("extends = 'workspace'\nfiles.guard = 'host-trusted'\n");
    let program = "say(lambda: os.rename('.git', 'taxes'))";
    let (_, record) = refused_under(stage, Some(&profile), program);
    let found = record.denials_of("/.git");
    assert!(found.iter().any(|it| it.call == "rename" && it.probed), "{:?}", record.denials);
    assert!(explained(stage).contains("copy it, and remove the first"), "{}", explained(stage));
    let report = run(stage.control(&["report"]), b"").out();
    assert!(!report.contains("/taxes"), "{report}");
}

/// Whatever makes one: this does what bubblewrap does first.
fn a_sandbox_inside_is_refused_with_what_to_do_instead(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("unshare -Ur true 2>&1; true")), b"");
    assert!(ran.out().contains("Operation not permitted"), "{}{}", ran.out(), ran.err());
    let told = explained(stage);
    assert!(told.contains("unshare may not call unshare: a new user namespace"), "{told}");
    assert!(told.contains("--no-sandbox"), "{told}");
}

/// With several domains, and without PIDs of its own.
fn what_would_reach_more_processes_than_can_be_asked_about_is_on_record(stage: &Stage) {
    let several =
        stage.profile("extends = 'workspace'\n[domains.other]\nexec = ['/usr/bin/tac']\n");
    // pidfd_open, pidfd_getfd; F_SETOWN.
    let program = format!(
        "{CALL}import socket
child = os.fork() or call(34)
s, _ = socket.socketpair(); pidfd = os.pidfd_open(child)
say(lambda: fcntl.fcntl(s, 8, os.getpid())); say(lambda: call(438, pidfd, s.fileno(), 0)); os.kill(child, 9)"
    );
    let (_, record) = refused_under(stage, Some(&several), &program);
    record.explains("who gets the signals of a file (F_SETOWN)");
    record.explains("a descriptor of another process (pidfd_getfd)");
    if stage.variant.has_namespaces() {
        return;
    }
    let program = format!(
        "{CALL}import socket
s, _ = socket.socketpair()
say(lambda: fcntl.fcntl(s, 8, -os.getpgrp())); say(lambda: os.setpriority(os.PRIO_PGRP, 0, 5)); say(lambda: os.setpriority(os.PRIO_USER, 0, 5)); say(lambda: call(251, 2, 0, 3 << 13))"
    );
    let (_, record) = refused_under(stage, None, &program);
    record.explains("who gets the signals of a file (F_SETOWN)");
    for call in ["setpriority", "ioprio_set"] {
        let found = record.denials_of("the processes of a group or of a user");
        assert!(found.iter().any(|it| it.call == call), "{call}: {:?}", record.denials);
    }
}

/// Where sends are decided, by a process with two threads, or one that shares its descriptors with
/// another.
fn what_the_monitor_cannot_send_as_the_program_is_on_record(stage: &Stage) {
    let profile = stage.profile("extends = 'workspace'\nnetwork.connect = ['127.0.0.1:9/udp']\n");
    for begin in [
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "libc.syscall(56, 0x400 | 17, 0, 0, 0, 0) or time.sleep(60)",
    ] {
        let program = format!(
            "{CALL}import socket, struct, threading, time
packets = socket.SOCK_SEQPACKET; listener = socket.socket(socket.AF_UNIX, packets); listener.bind('s'); listener.listen()
client = socket.socket(socket.AF_UNIX, packets); client.connect('s'); one, _ = socket.socketpair(); pair, _ = socket.socketpair(socket.AF_UNIX, packets)
own = (1, 2, struct.pack('iII', os.getpid(), os.getuid(), os.getgid())); os.unlink('s')
{begin}
say(lambda: client.sendmsg([b'x'])); say(lambda: one.sendmsg([b'x'], [own])); say(lambda: pair.sendmsg([b'x'])); say(lambda: client.send(b'x')); os._exit(0)"
        );
        let words = ["python3".into(), "-c".into(), with_say(&program).into()];
        let call = Call { profile: Some(&profile), ..stage.call() };
        let ran = run(stage.dewar(call, &words), b"");
        assert_eq!(ran.out(), "ENOTSUP\nENOTSUP\n1\n1\n", "{begin}: {}", ran.err());
        let record = stage.record();
        record.explains(
            "a packet (SOCK_SEQPACKET) to a socket with a name, or by one that was given",
        );
        record.explains("credentials (SCM_CREDENTIALS)");
    }
}

/// As by fcntl(2).
fn who_gets_signals_by_ioctl_is_decided(stage: &Stage) {
    let program = format!(
        "{CALL}import pty, socket, struct
child = os.fork() or call(34)
say(lambda: fcntl.ioctl(pty.openpty()[1], 0x5452, struct.pack('i', 1)))
for request in (0x8901, 0x8902): say(lambda: fcntl.ioctl(socket.socketpair()[0], request, struct.pack('i', child)))
os.kill(child, 9)"
    );
    let (_, record) = refused_under(stage, None, &program);
    record.explains("the foreground of a terminal (O_ASYNC)");
    let owner = if stage.variant.has_namespaces() {
        "who gets the signals of a socket, beside the caller (FIOSETOWN)"
    } else {
        "who gets the signals of a file (F_SETOWN)"
    };
    record.explains(owner);
}

/// Outside, it is a process of root's.
fn a_number_of_the_runs_own_is_not_judged_by_who_has_it_outside(stage: &Stage) {
    let script = "sleep 5 & echo x > /proc/$!/comm; kill $!; exit 3";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    assert!(ran.err().contains("/comm"), "{}", ran.err());
    assert!(!ran.err().contains("without Dewar you may not either"), "{}", ran.err());
}

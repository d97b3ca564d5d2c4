//! What is refused whatever policy says: it fails as ever, and is on record with who refuses it and
//! what to do instead.

use super::refused_under;
use crate::{
    Case, cases,
    dewar::Call,
    process::run,
    stage::{Stage, bash},
};
use std::ffi::OsString;

pub(super) const CASES: &[Case] = cases![
    what_no_profile_grants_is_on_record,
    messages_that_nobody_could_decide_are_on_record,
    memory_that_is_not_executed_is_on_record,
    a_directory_that_is_not_moved_to_a_guarded_name_is_on_record,
    a_sandbox_inside_is_refused_with_what_to_do_instead,
    a_run_inside_a_run_with_the_same_profile_runs_in_it,
    a_run_inside_a_run_promises_nothing_that_it_cannot_hold,
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

/// Whatever makes one: this does what bubblewrap does first.
fn a_sandbox_inside_is_refused_with_what_to_do_instead(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("unshare -Ur true 2>&1; true")), b"");
    assert!(ran.out().contains("Operation not permitted"), "{}{}", ran.out(), ran.err());
    let told = explained(stage);
    assert!(told.contains("unshare may not unshare a new user namespace"), "{told}");
    assert!(told.contains("--no-sandbox"), "{told}");
}

/// A profile by which Dewar itself can be executed, and read what it needs; the words that run
/// `words` under it.
fn with_dewar(stage: &Stage, rules: &str) -> (String, OsString) {
    let program = stage.under_dewar(stage.call(), &[]).remove(0);
    let directory = std::path::Path::new(&program).parent().expect("a directory").to_owned();
    let file = stage.home().join("profile.toml");
    let profile = stage.profile(&format!(
        "extends = 'workspace'\nfiles.exec = [{directory:?}]\nfiles.read = [{file:?}]\n{rules}"
    ));
    (profile, program)
}

fn a_run_inside_a_run_with_the_same_profile_runs_in_it(stage: &Stage) {
    let (profile, program) = with_dewar(stage, "");
    let script = format!(
        "echo \"${{DEWAR_RUN%%:*}}\" | wc -c; {} run -p {profile} -- sh -c 'cat ~/.ssh/id_ed25519; echo $?'",
        program.display()
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&script)), b"");
    if stage.variant.has_namespaces() {
        assert_eq!(ran.out(), "9\n1\n", "{}", ran.err());
        assert!(ran.err().contains("which was started with this very profile"), "{}", ran.err());
        stage.record().explains("/.ssh/id_ed25519");
    } else {
        // The run around it was told to do without something.
        assert_eq!((ran.out().as_str(), ran.code()), ("9\n", 125), "{}", ran.err());
    }
}

fn a_run_inside_a_run_promises_nothing_that_it_cannot_hold(stage: &Stage) {
    let (profile, program) = with_dewar(stage, "");
    let program = program.display();
    let script = format!(
        "{program} run -p offline -- echo ran; echo $?; {program} run -p {profile} --workspace / -- echo ran; echo $?; DEWAR_RUN= {program} run -p {profile} -- echo ran; echo $?"
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&script)), b"");
    assert!(!ran.out().contains("ran"), "{}\n{}", ran.out(), ran.err());
    assert_eq!(ran.out().lines().filter(|line| *line == "125").count(), 3, "{}", ran.err());
    assert!(ran.err().contains("Start the command without `dewar run`"), "{}", ran.err());
    // From another domain the command would have that one's rights.
    let rules = "[domains.tool]\nexec = ['/usr/bin/env']\nfiles.read = ['${home}/notes']\n";
    let (profile, _) = with_dewar(stage, rules);
    let notes = stage.home().join("notes");
    stage.file(&notes, "notes");
    let script = format!("env {program} run -p {profile} -- cat {}; echo $?", notes.display());
    let ran = run(stage.dewar(Call { profile: Some(&profile), ..call }, &bash(&script)), b"");
    assert_eq!(ran.out(), "125\n", "{}", ran.err());
    // Outside, the variable makes nothing weaker.
    let mut outside = stage.dewar(call, &bash("cat ~/.ssh/id_ed25519; echo $?"));
    outside.env("DEWAR_RUN", "run:0123456789abcdef");
    let ran = run(outside, b"");
    assert_eq!(ran.out(), "1\n", "{}", ran.err());
}

//! The other layers: covers, rights of the envelope, capabilities, namespaces, limits.

use super::explained;
use crate::{
    Case, cases,
    dewar::Call,
    kernel::with_say,
    process::run,
    stage::{Stage, bash},
};
use landlock::{ABI, Access as _, AccessFs};

pub(super) const CASES: &[Case] = cases![
    every_right_of_the_envelope_is_explained_where_it_is_refused,
    every_cover_is_explained,
    what_only_the_machines_root_may_do_is_explained,
    what_exists_outside_alone_is_explained,
    a_list_that_names_others_is_set_or_refused_on_record,
    what_fails_for_want_of_another_user_is_said_at_the_end,
    a_server_that_nobody_outside_can_reach_is_spoken_of,
    what_programs_probe_for_is_no_alarm,
    what_reading_in_mode_fast_was_refused_is_spoken_of,
    message_queues_are_the_runs_own_or_refused_on_record,
];

/// How a right of Landlock is refused: an expression of Python. Nobody refuses what has none; why.
fn attempt(right: AccessFs) -> Result<&'static str, &'static str> {
    Ok(match right {
        AccessFs::Execute => "os.execv(o + '/program', ['x'])",
        AccessFs::WriteFile => "open(o + '/file', 'r+')",
        AccessFs::ReadFile => "open(o + '/file')",
        AccessFs::ReadDir => "os.listdir(o)",
        AccessFs::RemoveDir => "os.rmdir(o + '/directory')",
        AccessFs::RemoveFile => "os.unlink(o + '/file')",
        AccessFs::MakeChar => "os.mknod(o + '/device', 0o20666, os.makedev(1, 3))",
        AccessFs::MakeDir => "os.mkdir(o + '/made')",
        AccessFs::MakeReg => "open(o + '/new', 'w')",
        AccessFs::MakeSock => "socket.socket(socket.AF_UNIX).bind(o + '/socket')",
        AccessFs::MakeFifo => "os.mkfifo(o + '/fifo')",
        AccessFs::MakeBlock => "os.mknod(o + '/block', 0o60666, os.makedev(8, 0))",
        AccessFs::MakeSym => "os.symlink('x', o + '/link')",
        AccessFs::Refer => "os.rename('mine', o + '/moved')",
        AccessFs::Truncate => "os.truncate(o + '/file', 0)",
        AccessFs::IoctlDev => return Err("who may open a device may make requests of it"),
        _ => panic!("{right:?} has no case"),
    })
}

/// Each where nothing is granted: policy refuses before the envelope would.
fn every_right_of_the_envelope_is_explained_where_it_is_refused(stage: &Stage) {
    stage.prepare("cp /bin/true $OUTSIDE/program; mkdir $OUTSIDE/directory; touch mine");
    let rights = AccessFs::from_all(ABI::V5).iter();
    for (right, attempt) in rights.map(|right| (right, attempt(right))) {
        let Ok(expression) = attempt else { continue };
        let program =
            format!("import socket; o = os.environ['OUTSIDE']; say(lambda: {expression})");
        let words = ["python3".into(), "-c".into(), with_say(&program).into()];
        let ran = run(stage.dewar(stage.call(), &words), b"");
        let refused = ["EACCES", "EPERM", "ENOENT", "EXDEV"].contains(&ran.out().trim());
        assert!(refused, "{right:?}: {}{}", ran.out(), ran.err());
        let told = explained(stage);
        // The file, or the directory that it would be in.
        let object = stage.outside().display().to_string();
        // Without privileges, the kernel makes no device, whoever grants it.
        let is_devices = matches!(right, AccessFs::MakeChar | AccessFs::MakeBlock);
        assert!(is_devices || told.contains(&object), "{right:?}: {told}");
        assert!(is_devices || told.contains("why          "), "{right:?}: {told}");
    }
}

fn every_cover_is_explained(stage: &Stage) {
    stage.prepare("mkdir -p hidden denied; touch hidden/file denied/file hidden-file denied-file");
    let profile = stage.profile(
        "extends = 'workspace'\nhiding = 'strict'\n[files]\nhide = ['${workspace}/hidden', '${workspace}/hidden-file']
deny = ['${workspace}/denied', '${workspace}/denied-file']\n",
    );
    for (object, errno) in [
        ("hidden/file", "ENOENT"),
        ("hidden-file", "ENOENT"),
        ("denied/file", "EACCES"),
        ("denied-file", "EACCES"),
    ] {
        let program = with_say(&format!("say(lambda: open({object:?}))"));
        let words = ["python3".into(), "-c".into(), program.into()];
        let call = Call { profile: Some(&profile), ..stage.call() };
        let ran = run(stage.dewar(call, &words), b"");
        assert_eq!(ran.out().trim(), errno, "{object}: {}", ran.err());
        let told = explained(stage);
        let names = told.contains(&format!("/{object}")) && told.contains("profile.toml:");
        assert!(names, "{object}: {told}");
    }
}

/// What the kernel refuses by itself, whoever asks without the capability.
fn what_only_the_machines_root_may_do_is_explained(stage: &Stage) {
    let program = with_say(
        "import ctypes, fcntl, resource
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*[ctypes.c_long(it) if isinstance(it, int) else it for it in args]) < 0: raise OSError(ctypes.get_errno(), '')
time = (ctypes.c_long * 2)(1, 0)
say(lambda: os.setgroups([1, 2, 3]), 'groups')
say(lambda: call(305, 0, (ctypes.c_uint * 60)(1)), 'clock')
say(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)), 'scheduler')",
    );
    let words = ["python3".into(), "-c".into(), program.into()];
    let ran = run(stage.dewar(stage.call(), &words), b"");
    for line in ran.out().lines() {
        assert!(line.ends_with("EPERM"), "{}{}", ran.out(), ran.err());
    }
    assert_eq!(ran.out().lines().count(), 3, "{}", ran.err());
    let told = explained(stage);
    assert!(told.contains("missing capabilities: what the kernel lets"), "{told}");
}

fn what_exists_outside_alone_is_explained(stage: &Stage) {
    let pid = std::process::id();
    let program = with_say(&format!("say(lambda: os.kill({pid}, 0))"));
    let words = ["python3".into(), "-c".into(), program.into()];
    let ran = run(stage.dewar(stage.call(), &words), b"");
    assert!(["ESRCH", "EPERM"].contains(&ran.out().trim()), "{}{}", ran.out(), ran.err());
    let told = explained(stage);
    let names = told.contains(&format!("process {pid}"));
    let tells = told.contains("namespaces: processes, ports and objects of the machine");
    assert!(names || tells, "{told}");
    assert_eq!(tells, stage.variant.has_namespaces(), "{told}");
    assert!(told.contains("limits: "), "{told}");
}

fn what_fails_for_want_of_another_user_is_said_at_the_end(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("su -c true < /dev/null")), b"");
    assert!(stage.variant.is_root() || ran.code() != 0);
    // Root is that user already.
    let is_said = !stage.variant.is_root();
    let line = "su` is set-user-ID, which counts for nothing";
    assert_eq!(ran.err().contains(line), is_said, "{}", ran.err());
    assert_eq!(explained(stage).contains(line), is_said, "{}", explained(stage));
    a_program_with_capabilities_is_said_to_run_without(stage, is_said);
    // A group's program that worked is not why something else failed.
    let ran = run(stage.dewar(stage.call(), &bash("chage --help > /dev/null; exit 1")), b"");
    assert!(!ran.err().contains("set-"), "{}", ran.err());
    // What succeeds needs no word.
    let ran = run(stage.dewar(stage.call(), &bash("su --version > /dev/null")), b"");
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
}

/// Only root gives a file capabilities.
fn a_program_with_capabilities_is_said_to_run_without(stage: &Stage, is_said: bool) {
    let program = stage.work().join("with-capabilities");
    std::fs::copy("/usr/bin/false", &program).expect("copy a program");
    // CAP_NET_RAW, as `setcap cap_net_raw+ep` writes it: version 2, effective.
    let raw = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let given =
        rustix::fs::setxattr(&program, "security.capability", raw, rustix::fs::XattrFlags::empty());
    if let Err(error) = given {
        println!("not looked at: capabilities cannot be given to a file: {error}");
        return;
    }
    let ran = run(stage.dewar(stage.call(), &bash("./with-capabilities")), b"");
    let line =
        "with-capabilities` is a program with capabilities of its own, which counts for nothing";
    assert_eq!(ran.err().contains(line), is_said, "{}", ran.err());
}

/// Nobody else has an ID in a user namespace of an ordinary user.
fn a_list_that_names_others_is_set_or_refused_on_record(stage: &Stage) {
    let own = "touch f && setfacl -m u:$(id -u):r,g:$(id -g):r f && getfacl -cn f";
    stage.same(own).check();
    let script = bash("touch f; setfacl -m u:12345:r f && getfacl -cn f | grep 12345");
    let ran = run(stage.dewar(stage.call(), &script), b"");
    if ran.code() == 0 {
        assert_eq!((ran.out().trim(), ran.err().as_str()), ("user:12345:r--", ""));
        return;
    }
    assert!(ran.err().contains("Operation not supported"), "{}", ran.err());
    let explained = explained(stage);
    for part in ["user 12345", "the user namespace", "--without user"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let call = Call { namespaces: false, ..stage.call() };
    let ran = run(stage.dewar(call, &script), b"");
    assert_eq!((ran.code(), ran.out().trim()), (0, "user:12345:r--"), "{}", ran.err());
}

fn a_server_that_nobody_outside_can_reach_is_spoken_of(stage: &Stage) {
    // The loopback is the run's own, and so are its ports.
    let server = "import socket
bound = socket.socket(); bound.bind(('127.0.0.1', 8001))
v6 = socket.create_server(('::1', 8002), family=socket.AF_INET6); drawn = socket.create_server(('127.0.0.1', 0))
s = socket.create_server(('127.0.0.1', 8003)); t = socket.create_server(('127.0.0.1', 8004)); socket.create_connection(t.getsockname())
print(drawn.getsockname()[1]); raise SystemExit(1)";
    let words = ["python3".into(), "-c".into(), server.into()];
    let ran = run(stage.dewar(stage.call(), &words), b"");
    if !stage.variant.has_namespaces() {
        // It has no loopback of its own, and so no sockets: the denial says so.
        return assert!(explained(stage).contains("tcp_socket"), "{}", explained(stage));
    }
    let (out, err) = (ran.out(), ran.err());
    assert!(err.contains("a server had port 8003 "), "{out}{err}");
    assert!(!err.contains("8004"), "{err}");
    assert!(!err.contains("port 8001 "), "nobody listened there: {err}");
    assert!(err.contains("[::1]:8002"), "{err}");
    assert!(!err.contains(out.trim()), "another is drawn next time: {err}");
    assert!(explained(stage).contains("127.0.0.1:8003"), "{}", explained(stage));
}

fn what_programs_probe_for_is_no_alarm(stage: &Stage) {
    let probe = |end: i32| {
        format!(
            "import ctypes; print(ctypes.CDLL(None).syscall(425, 8, 0)); raise SystemExit({end})"
        )
    };
    for (end, is_told) in [(0, false), (1, true)] {
        let words = ["python3".into(), "-c".into(), probe(end).into()];
        let ran = run(stage.dewar(stage.call(), &words), b"");
        assert_eq!((ran.code(), ran.out().as_str()), (end, "-1\n"), "{}", ran.err());
        assert_eq!(ran.err().contains("io_uring"), is_told, "{}", ran.err());
        assert!(explained(stage).contains("a ring of io_uring"), "{}", explained(stage));
    }
}

fn what_reading_in_mode_fast_was_refused_is_spoken_of(stage: &Stage) {
    let call = Call { fast: true, ..stage.call() };
    let ran = run(stage.dewar(call, &bash("cat $OUTSIDE/file")), b"");
    assert_ne!(ran.code(), 0);
    let (told, err) = (explained(stage), ran.err());
    let is_named = told.contains("/file") || told.contains("the envelope: reading");
    assert!(is_named && !err.contains("nothing was denied"), "{told}{err}");
    assert!(err.contains("--mode all") || err.contains("dewar explain"), "{err}");
}

fn message_queues_are_the_runs_own_or_refused_on_record(stage: &Stage) {
    let program = with_say(
        "import ctypes
libc = ctypes.CDLL('libc.so.6', use_errno=True)
def done(result):
    if result < 0: raise OSError(ctypes.get_errno(), '')
    return result
def pass_on():
    queue = done(libc.mq_open(b'/dewar-test', 0o102, 0o600, None))
    done(libc.mq_send(queue, b'hello', 5, 1))
    place = ctypes.create_string_buffer(8192)
    done(libc.mq_receive(queue, place, 8192, None)); done(libc.mq_unlink(b'/dewar-test'))
    return place.value
say(pass_on)",
    );
    let words = ["python3".into(), "-c".into(), program.into()];
    for fast in [false, true] {
        let ran = run(stage.dewar(Call { fast, ..stage.call() }, &words), b"");
        if stage.variant.has_namespaces() {
            assert_eq!(ran.out(), "b'hello'\n", "{}", ran.err());
        } else {
            assert_eq!(ran.out(), "EPERM\n", "{}", ran.err());
            assert!(explained(stage).contains("may not call mq_open"), "{}", explained(stage));
        }
    }
}

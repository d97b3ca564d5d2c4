//! Essential programs where people will first try Dewar: without user namespaces, in a container,
//! inside of another sandbox.

use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};
use std::{ffi::OsString, panic::AssertUnwindSafe};
use test_support::Variant;

pub(crate) const CASES: &[Case] = cases![
    work_goes_on_as_without_dewar,
    what_is_not_granted_is_refused_and_explained,
    files_are_made_under_the_mask_of_who_makes_them,
    sockets_end_when_their_programs_let_go_of_them,
    files_are_watched_or_what_a_container_lacks_is_told,
    the_doctor_says_what_is_lost,
    a_run_begins_inside_of_a_run,
];

/// Programs that fail in a container of Docker's which may not trace, with the reason.
const WITHOUT_DESCRIPTORS: [(&str, &str); 2] = [
    (
        "descriptors_pass_between_processes",
        "under a profile with UDP, sends are made by the monitor, which gets no descriptors to pass",
    ),
    (
        "node_uses_files_children_and_workers",
        "fs.watch() is inotify, which watches by a descriptor",
    ),
];

/// A run inside of a run, wherever the run around it is.
fn a_run_begins_inside_of_a_run(stage: &Stage) {
    crate::denied::inside::a_run_inside_a_run_is_bounded_by_both_profiles(stage);
    crate::denied::inside::a_run_inside_a_run_is_what_its_command_is(stage);
}

/// Why a case fails in these surroundings, if it does.
pub(crate) fn why_not(case: &str, variant: Variant) -> Option<&'static str> {
    let known = WITHOUT_DESCRIPTORS.iter().find(|(known, _)| *known == case);
    known.filter(|_| !variant.has_descriptors()).map(|(_, reason)| *reason)
}

/// Sees to it that a case fails that is said to.
///
/// # Panics
///
/// It does not: then it is no exception any more.
pub(crate) fn fails(case: fn(&Stage), stage: &Stage, reason: &str) {
    let failed = std::panic::catch_unwind(AssertUnwindSafe(|| case(stage))).is_err();
    assert!(failed, "it works, though: {reason}");
    eprintln!("fails as expected: {reason}");
}

/// Processes and threads make files at the same time, each under a mask of its own, beside and
/// below a directory with a default ACL, which knows no mask; unix sockets by relative names, too.
fn files_are_made_under_the_mask_of_who_makes_them(stage: &Stage) {
    let script = r#"mkdir acl && setfacl -d -m u::rwx,g::rwx,o::rx acl
for mask in 000 022 027 077 111 700; do
    (umask $mask; mkdir m$mask.d; for n in $(seq 60); do
        : > m$mask.$n; mkdir d$mask.$n; : > acl/m$mask.$n; mkdir acl/d$mask.$n; mkfifo p$mask.$n; mknod r$mask.$n p
    done) &
done
wait"#;
    stage.same(script).check();
    stage
        .same(
            r#"python3 - <<'END'
import os, socket, sys
for at in range(8):
    if os.fork() == 0:
        os.mkdir("w%d" % at); os.chdir("w%d" % at); os.umask([0, 0o22, 0o77, 0o777][at % 4])
        for n in range(40):
            with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
                listener.bind("s%d" % n)
                os.chmod("s%d" % n, os.stat("s%d" % n).st_mode | 0o200)
                listener.listen()
                client.connect("s%d" % n)
                assert client.getpeername() == "s%d" % n
        os._exit(0)
print([os.wait()[1] for at in range(8)], os.getcwd() == os.environ["PWD"])
END"#,
        )
        .check();
}

/// What was closed is closed: a peer sees the end, a listener is gone, a port is free again;
/// however the monitor gets at a program's sockets.
fn sockets_end_when_their_programs_let_go_of_them(stage: &Stage) {
    let profile = stage.profile(
        "extends = 'workspace'\n[network]\nloopback = 'none'\nconnect = ['127.0.0.1:*']\nbind = ['127.0.0.1:0']\n",
    );
    let script = r#"import multiprocessing, os, socket, time
def pair(family, name):
    listener = socket.socket(family); listener.bind(name); listener.listen()
    client = socket.socket(family); client.connect(listener.getsockname())
    return listener, client, listener.accept()[0]
def refused(family, name):
    for turn in range(500):
        with socket.socket(family) as late:
            try: late.connect(name)
            except OSError as error: return type(error).__name__
        time.sleep(0.01)
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        shared = manager.dict(); shared["x"] = 1; print(shared)
    for family, name in ((socket.AF_UNIX, "s"), (socket.AF_UNIX, "\0ends-" + os.urandom(8).hex()), (socket.AF_INET, ("127.0.0.1", 0))):
        listener, client, peer = pair(family, name)
        name = listener.getsockname()
        client.send(b"x"); client.close()
        print(peer.recv(9), peer.recv(9))
        listener.close()
        print(isinstance(name, bytes) or refused(family, name))
        peer.close()
        if name == "s": os.unlink(name)
        again, client, peer = pair(family, name) if family == socket.AF_UNIX else pair(family, ("127.0.0.1", 0))
        peer.close(); print(client.recv(9)); again.close()
    unbound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try: unbound.connect("nobody")
    except OSError as error: print(error)
    os.set_inheritable(unbound.fileno(), True); unbound.bind("late"); unbound.listen(); unbound.setblocking(True)
    if os.fork() == 0:
        with socket.socket(socket.AF_UNIX) as client: client.connect("late"); client.send(b"child")
        os._exit(0)
    print(unbound.accept()[0].recv(9), os.wait()[1])"#;
    let words: Vec<OsString> = ["python3", "-c", script].map(Into::into).into();
    stage.same_command(words).profile(&profile).check();
}

/// Where the kernel hands out no descriptors, a watch is refused, and what helps is told.
fn files_are_watched_or_what_a_container_lacks_is_told(stage: &Stage) {
    let script = "import ctypes\nfd = ctypes.CDLL(None).inotify_init()\nprint(ctypes.CDLL(None).inotify_add_watch(fd, b'.', 2))";
    let words: Vec<OsString> = ["python3", "-c", script].map(Into::into).into();
    if stage.variant.has_descriptors() {
        stage.same_command(words).check();
        return;
    }
    let ran = run(stage.dewar(stage.call(), &words), b"");
    assert_eq!((ran.code(), ran.out().as_str()), (0, "-1\n"), "{}", ran.err());
    let told = run(stage.control(&["explain"]), b"").out();
    let doctor = run(stage.control(&["doctor"]), b"").out();
    assert!(told.contains("pidfd_getfd") && doctor.contains("pidfd-getfd"), "{told}\n{doctor}");
    for told in [told, doctor] {
        assert!(told.contains("--cap-add SYS_PTRACE"), "{told}");
    }
}

fn work_goes_on_as_without_dewar(stage: &Stage) {
    stage.same("echo a | tr a b > f; (cat f; ls -l f | cut -c1-10) | tee g; mkdir d; mv g d; find . | sort; rm -r d").check();
    stage
        .same("git init -q .; echo a > f; git add f; git commit -qm x; echo b >> f; git diff --stat; git log --format=%s")
        .varies_below(".git")
        .check();
    stage.same("python3 -c 'import json, subprocess, threading; print(json.dumps(subprocess.getoutput(\"echo x\")))'").check();
    stage.same("printf 'int main(void) { return 3; }' > a.c; printf 'a: a.c\\n\\tcc -o a a.c\\n' > Makefile; make -s; ./a; echo $?").varies(&["a"]).check();
    stage
        .same("sqlite3 x.db 'create table t(a); insert into t values(1); select * from t'")
        .varies(&["x.db"])
        .check();
    stage.same("tar cf a.tar /etc/hostname 2> /dev/null; tar tf a.tar; gzip -c a.tar | gunzip | cmp - a.tar").varies(&["a.tar"]).check();
    stage.same("perl -e 'fork or exit 4; wait; print $? >> 8, \"\\n\"'; sleep 0.1 & kill $!; wait $!; echo $?").check();
}

fn what_is_not_granted_is_refused_and_explained(stage: &Stage) {
    let script = "cat ~/.ssh/id_ed25519 || echo refused; cat $OUTSIDE/file || echo refused; echo x > $OUTSIDE/new || echo refused; unshare -Ur true || echo refused";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    assert_eq!(ran.out(), "refused\n".repeat(4), "{}", ran.err());
    let told = run(stage.control(&["explain"]), b"").out();
    for object in ["/.ssh/id_ed25519", "/file", "/new", "a new user namespace"] {
        // Of what the filter around Dewar refuses, nobody inside hears.
        let is_around = object.ends_with("namespace") && !stage.variant.has_namespaces();
        assert!(is_around || told.contains(object), "{object}: {told}");
    }
}

fn the_doctor_says_what_is_lost(stage: &Stage) {
    let told = run(stage.control(&["doctor"]), b"");
    assert_eq!(told.code(), 0, "{}{}", told.out(), told.err());
    if !stage.variant.has_namespaces() {
        assert!(
            told.out().contains("an ordinary user gets no other namespace")
                || stage.variant.is_root(),
            "{}",
            told.out()
        );
    }
}

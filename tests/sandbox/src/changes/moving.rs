//! What moves while policy changes, or while Dewar looks: processes, descriptors, names.

use super::{Running, done, stage_says};
use crate::{Case, cases, dewar::Call, identity::compile, stage::Stage};
use std::time::Duration;

/// The cases of this part.
pub(super) const CASES: &[Case] = cases![
    who_hands_a_descriptor_on_and_ends_at_once_loses_it,
    a_denied_file_stays_denied_whoever_makes_it_anew,
    a_file_that_gets_a_denied_name_is_read_by_neither,
    a_file_that_gets_a_denied_name_is_not_read_by_a_known_path,
    a_file_that_gets_a_denied_name_is_not_linked_where_nobody_can_tell_its_place,
    what_lies_at_the_name_that_is_revoked_is_taken,
    what_is_taken_under_the_same_rules_is_taken_by_every_name,
    a_directory_that_gets_a_denied_or_guarded_name_takes_nothing_new,
];

fn who_hands_a_descriptor_on_and_ends_at_once_loses_it(stage: &Stage) {
    let chain = stage.work().join("chain");
    compile("tests/sandbox/src/changes/chain.c", &chain);
    stage.give(&chain);
    stage.file(&stage.work().join("data"), "data\n");
    let told = || std::fs::metadata(stage.work().join("log")).map_or(0, |log| log.len());
    for links in ["threads", "processes"].repeat(5) {
        let script = format!("exec ./chain data {links} > log");
        let mut running = Running::start(stage, stage.call(), &script);
        assert!(crate::process::until(|| (told() > 0).then_some(())).is_some(), "it reads");
        let receipt = done(stage, &["revoke", "--file", "data"]);
        let before = told();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(told(), before, "{links}: {receipt}");
        done(stage, &["revoke", "--all"]);
        running.wait();
    }
}

/// Opens `name` while somebody outside makes it anew, and by a link that leads to it now and then.
const TRIES: &str = "import os, sys
name, got = sys.argv[1], 0
if os.fork() == 0:
    while not os.path.exists('stop'):
        for target in ('ok', name):
            os.symlink(target, 'next')
            os.rename('next', 'link')
    os._exit(0)
while not os.path.exists('stop'):
    for path in (name, 'link'):
        try:
            got += os.read(os.open(path, os.O_RDONLY | os.O_CLOEXEC), 6) == b'secret'
        except OSError:
            pass
        os.closerange(3, 40)
    open('begun', 'w').close()
open('got', 'w').write(str(got))
";

fn a_denied_file_stays_denied_whoever_makes_it_anew(stage: &Stage) {
    let rules = "[files]\ndeny = [\"${workspace}/kept\"]\nhide = [\"${workspace}/**/*.key\"]\n";
    let profile = super::profile(stage, rules);
    for name in ["a.key", "kept"] {
        stage.prepare(&format!("rm -f stop begun got; echo ok > ok; echo secret > {name}"));
        stage.file(&stage.work().join("tries.py"), TRIES);
        let call = Call { profile: Some(&profile), ..stage.call() };
        let script = format!("python3 tries.py {name}");
        let running = Running::start(stage, call, &script);
        let begun = || stage.work().join("begun").exists().then_some(());
        assert!(crate::process::until(begun).is_some(), "it tries");
        // As editors save, and as programs write anew.
        stage.prepare(&format!(
            "for i in $(seq 40); do rm {name}; echo secret > {name}; \
             echo secret > new; mv new {name}; done"
        ));
        let ran = running.stop();
        let got = std::fs::read_to_string(stage.work().join("got"));
        assert_eq!(got.as_deref().ok(), Some("0"), "{name}: {}{}", ran.out(), ran.err());
    }
    assert_eq!(stage_says(stage, &["ps"]).out(), "nothing runs\n");
}

fn a_file_that_gets_a_denied_name_is_read_by_neither(stage: &Stage) {
    let profile = super::profile(stage, "files.deny = [\"${workspace}/kept\"]\n");
    let saved = stage.work().join("saved");
    stage.file(&saved, "secret\n");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let attempt = "cat saved || cat kept || { ln kept x && cat x; } || { mv kept y && cat y; }";
    let running = Running::trying(stage, call, attempt);
    assert_eq!(running.attempt(), "yes");
    std::fs::rename(&saved, stage.work().join("kept")).expect("rename");
    assert_eq!(running.attempt(), "no");
    running.stop();
}

/// Where nobody inside can change a directory, what a path leads to is remembered.
fn a_file_that_gets_a_denied_name_is_not_read_by_a_known_path(stage: &Stage) {
    let shared = stage.outside().join("shared");
    let rules = format!("files.read = [{shared:?}]\nfiles.deny = [{:?}]\n", shared.join("kept"));
    let profile = super::profile(stage, &rules);
    let script = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        let made = shell.args(["-ec", script]).current_dir(&shared).status();
        assert!(made.expect("a shell").success(), "{script}");
    };
    std::fs::create_dir_all(&shared).expect("a directory");
    script("for it in a b c; do mkdir $it; echo secret > $it/data; done; ln -s a/data link");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let cat = |name: &str| format!("cat {}/{name}", shared.display());
    let attempt = ["link", "b/data", "c/data"].map(cat).join(" || ");
    let running = Running::trying(stage, call, &attempt);
    assert_eq!(running.attempt(), "yes");
    script("mv a kept; ln -sfn kept/data link");
    script("mv b/data kept/other; ln -s ../kept/other b/data; mv c kept/c; ln -s kept/c c");
    assert_eq!(running.attempt(), "no");
    running.stop();
}

/// Meets a file by looking at it; once it has another name, moves its directory to where the path
/// of the file is too long to be told, and links it by a descriptor.
const LINKS_DEEP: &str = "import ctypes, os
if os.path.exists('d/saved'):
    os.close(os.open('d/saved', os.O_PATH))
    raise SystemExit(0)
work, file = os.open('.', os.O_RDONLY), os.open('d/kept', os.O_PATH)
left = 4092 - len(os.getcwd())
while left >= 260:
    os.makedirs('n' * 250, exist_ok=True)
    os.chdir('n' * 250)
    left -= 251
deep = 'D' * (left - 1)
top = os.open('.', os.O_RDONLY)
os.rename('d', deep, src_dir_fd=work, dst_dir_fd=top)
ctypes.CDLL(None).linkat(file, b'', work, b'x', 0x1000)
os.rename(deep, 'd', src_dir_fd=top, dst_dir_fd=work)
os.fchdir(work)
open('moved', 'w').close()
raise SystemExit(open('x').read() != 'secret\\n')
";

fn a_file_that_gets_a_denied_name_is_not_linked_where_nobody_can_tell_its_place(stage: &Stage) {
    let profile = super::profile(stage, "files.deny = [\"${workspace}/**/kept\"]\n");
    stage.file(&stage.work().join("links.py"), LINKS_DEEP);
    stage.prepare("mkdir d; echo secret > d/saved");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let running = Running::trying(stage, call, "python3 links.py");
    assert_eq!(running.attempt(), "yes");
    let there = stage.work().join("d");
    std::fs::rename(there.join("saved"), there.join("kept")).expect("rename");
    assert_eq!(running.attempt(), "no");
    assert!(stage.work().join("moved").exists(), "nothing was moved");
    running.stop();
    let said = stage_says(stage, &["explain"]).out();
    assert!(said.contains("too deep to be named"), "{said}");
}

/// Holds a file and a directory, and tells what is left of them.
const HOLDS: &str = "import os, socket, time
held = os.open('saved', os.O_RDWR), os.open('made', os.O_RDONLY)
one, other = socket.socketpair()
sent = os.open('saved', os.O_RDWR)
socket.send_fds(one, [b'x'], [sent])
os.close(sent)
open('begun', 'w').close()
while not os.path.exists('stop'):
    time.sleep(0.01)
left = ''
for name, use in ('read', lambda: os.pread(held[0], 9, 0)), ('write', lambda: os.pwrite(held[0], b'x', 0)), ('list', lambda: os.listdir(held[1])), \\
        ('flight', lambda: os.pread(socket.recv_fds(other, 1, 1)[1][0], 9, 0)):
    try:
        use()
        left += name + ' '
    except (OSError, IndexError):
        pass
open('got', 'w').write(left)
";

/// Somebody outside has renamed it to a name that policy denied already.
fn what_lies_at_the_name_that_is_revoked_is_taken(stage: &Stage) {
    let rules = "files.deny = [\"${workspace}/kept\", \"${workspace}/secrets\"]\n";
    let profile = super::profile(stage, rules);
    stage.prepare("echo secret > saved; mkdir made; touch made/file");
    stage.file(&stage.work().join("holds.py"), HOLDS);
    let call = Call { profile: Some(&profile), ..stage.call() };
    let running = Running::start(stage, call, "python3 holds.py");
    let begun = || stage.work().join("begun").exists().then_some(());
    assert!(crate::process::until(begun).is_some(), "it holds them");
    stage.prepare("mv saved kept; mv made secrets");
    for name in ["kept", "secrets"] {
        let receipt = done(stage, &["revoke", "--file", name]);
        assert!(!receipt.contains("held by nobody"), "{receipt}");
    }
    let ran = running.stop();
    let got = std::fs::read_to_string(stage.work().join("got"));
    assert_eq!(got.as_deref().ok(), Some(""), "{}{}", ran.out(), ran.err());
}

/// Each profile, the names that the run gives the file, and the change: the label of the place
/// stays, and loses something; or two names get labels by one change.
fn what_is_taken_under_the_same_rules_is_taken_by_every_name(stage: &Stage) {
    let own = "files.write = [\"${workspace}/data\"]\n";
    let denied = format!("{own}files.deny = [\"${{workspace}}/data\"]\n");
    let two = "files.readonly = [\"${workspace}/a\"]\nfiles.deny = [\"${workspace}/data\"]\n";
    for (before, names, change) in [
        (own, "ln f data/f; ln f a/f", None),
        (own, "ln f data/f; ln f a/f", Some(denied.as_str())),
        (own, "mv f data/f; ln -s ../data/f a/f; ln -s data/f f", Some(denied.as_str())),
        ("", "ln f data/f; ln f a/f", Some(two)),
    ] {
        stage.prepare("rm -rf f log stop a data; mkdir a data; echo secret > f");
        let script = format!(
            "{names}; exec 7<f 8<data/f; {}",
            super::LOOP.replace(
                "ATTEMPT",
                "cat f a/f data/f | grep . || { head -c1 <&7 || head -c1 <&8; } | grep ."
            )
        );
        let first = super::profile(stage, before);
        let call = Call { profile: Some(&first), ..stage.call() };
        let running = Running::start(stage, call, &script);
        assert_eq!(running.attempt(), "yes");
        let receipt = match change {
            Some(rules) => {
                let profile = super::profile(stage, rules);
                done(stage, &["policy", "load", "last", &profile])
            }
            None => done(stage, &["revoke", "--file", "data"]),
        };
        assert!(receipt.contains("complete after"), "{receipt}");
        assert_eq!(running.attempt(), "no", "{names}, {change:?}: {receipt}");
        running.stop();
    }
}

fn a_directory_that_gets_a_denied_or_guarded_name_takes_nothing_new(stage: &Stage) {
    let rules = "[files]\ndeny = [\"${workspace}/kept\"]\nreadonly = [\"${workspace}/fixed\"]\nguard = \"host-trusted\"\n";
    let profile = super::profile(stage, rules);
    stage.prepare("git init -q repo; rm -rf repo/.git/hooks; mkdir a b hooks");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let attempt = "ls a b hooks || ls kept || touch kept/new || touch fixed/new || mkdir fixed/sub \
        || touch repo/.git/hooks/new || ln -s x repo/.git/hooks/link";
    let running = Running::trying(stage, call, attempt);
    assert_eq!(running.attempt(), "yes");
    stage.prepare("mv a kept; mv b fixed; mv hooks repo/.git/hooks");
    assert_eq!(running.attempt(), "no");
    running.stop();
}

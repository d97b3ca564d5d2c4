//! A run inside of a run: what it holds, and what it refuses to promise.

use crate::{
    Case, cases,
    daemon::Daemon,
    dewar::Call,
    process::{Ran, run},
    stage::{Stage, bash},
};
use std::ffi::OsString;

pub(super) const CASES: &[Case] = cases![
    a_run_inside_a_run_with_the_same_profile_runs_in_it,
    a_run_inside_a_run_promises_nothing_that_it_cannot_hold,
    a_run_inside_a_run_is_bounded_by_both_profiles,
    a_run_inside_a_run_is_what_its_command_is,
    what_a_run_inside_denies_is_on_record_under_its_name,
    tests_of_a_project_run_in_runs_of_their_own,
    a_run_inside_a_run_begins_again_and_again,
    runs_inside_of_each_other_take_more_each,
    a_run_goes_on_as_before_when_one_inside_has_ended,
    a_run_inside_a_run_has_the_memory_that_its_profile_says,
    a_run_inside_a_run_is_bounded_where_a_daemon_decides,
    a_run_inside_a_run_of_several_domains_is_bounded_by_each,
];

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

/// Runs a script in which `dewar` is the program, and `inner` a profile with these rules, above
/// `workspace`.
fn around(stage: &Stage, rules: &str, script: &str) -> Ran {
    let (profile, program) = with_dewar(stage, "");
    let directory = std::path::Path::new(&program).parent().expect("a directory").to_owned();
    let inner = format!("extends = 'workspace'\nfiles.exec = [{directory:?}]\n{rules}");
    stage.file(&stage.work().join("inner.toml"), &inner);
    let script = format!("PATH={}:$PATH; {script}", directory.display());
    run(stage.dewar(Call { profile: Some(&profile), ..stage.call() }, &bash(&script)), b"")
}

fn a_run_inside_a_run_with_the_same_profile_runs_in_it(stage: &Stage) {
    let (profile, program) = with_dewar(stage, "");
    let script = format!(
        "echo \"${{DEWAR_RUN%%:*}}\" | wc -c; {} run -p {profile} -- sh -c 'cat ~/.ssh/id_ed25519; echo $?'",
        program.display()
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&script)), b"");
    assert_eq!(ran.out(), "9\n1\n", "{}", ran.err());
    // The run around it may have been told to do without something.
    if stage.variant.has_namespaces() {
        assert!(ran.err().contains("which was started with this very profile"), "{}", ran.err());
    }
    stage.record().explains("/.ssh/id_ed25519");
}

fn a_run_inside_a_run_promises_nothing_that_it_cannot_hold(stage: &Stage) {
    let cannot = |rules: &str, why: &str| {
        let ran = around(stage, rules, "dewar run -p ./inner.toml -- echo ran; echo $?");
        assert_eq!(ran.out(), "125\n", "{rules}: {}", ran.err());
        assert!(ran.err().contains(why), "{rules}: {}", ran.err());
        assert!(ran.err().contains("nothing was started"), "{rules}: {}", ran.err());
    };
    cannot("limits.time = '1h'\n", "`limits.time`");
    cannot("[domains.tool]\nexec = ['/usr/bin/env']\n", "several domains");
    // Whether looks are decided is a matter of the run around.
    stage.file(&stage.work().join("secret"), "secret\n");
    let rules = "hiding = 'strict'\nfiles.hide = ['${workspace}/secret']\n";
    let ran = around(stage, rules, "dewar run -q -p ./inner.toml -- stat secret; echo $?");
    let (is_refused, told) = (ran.out() == "125\n", ran.err());
    assert!(is_refused || ran.out() == "1\n", "{}{told}", ran.out());
    let why = if is_refused { "what it hides shows by its name" } else { "No such file" };
    assert!(told.contains(why), "{told}");
    // Outside, the variable makes nothing weaker.
    let (profile, _) = with_dewar(stage, "");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let mut outside = stage.dewar(call, &bash("cat ~/.ssh/id_ed25519; echo $?"));
    outside.env("DEWAR_RUN", "run:0123456789abcdef");
    let ran = run(outside, b"");
    assert_eq!(ran.out(), "1\n", "{}", ran.err());
}

pub(crate) fn a_run_inside_a_run_is_bounded_by_both_profiles(stage: &Stage) {
    stage.file(&stage.work().join("secret"), "secret\n");
    stage.file(&stage.work().join("kept"), "kept\n");
    let outside = stage.outside().join("file");
    // What it grants beyond the run around it does not get; what it denies there is denied.
    let rules = format!(
        "files.read = [{outside:?}, '${{home}}/.aws']\nfiles.deny = ['${{workspace}}/secret']\nfiles.readonly = ['${{workspace}}/kept']\n"
    );
    let ran = around(
        stage,
        &rules,
        "dewar run -q -p ./inner.toml -- bash -c 'cat kept; for it in secret $OUTSIDE/file ~/.aws/credentials; do cat $it; echo $?; done 2>/dev/null; echo x >>kept; echo $?; echo new >made; cat made'; cat secret",
    );
    assert_eq!(ran.out(), "kept\n1\n1\n1\n1\nnew\nsecret\n", "{}", ran.err());
    let ran = around(
        stage,
        "network.inherit = false\n",
        "dewar run -q -p ./inner.toml -- python3 -c 'import socket; socket.socket()'; echo $?",
    );
    assert_eq!(ran.out(), "1\n", "{}", ran.err());
    assert!(ran.err().contains("PermissionError"), "{}", ran.err());
}

pub(crate) fn a_run_inside_a_run_is_what_its_command_is(stage: &Stage) {
    stage.file(&stage.work().join("script"), "#!/bin/sh\nread line; echo \"$line $1\"; exit 7\n");
    stage.prepare("chmod +x script");
    let ran = around(
        stage,
        "",
        "echo in | dewar run -q -p offline -- ./script out; echo $?; dewar run -q -p offline -- sh -c 'kill -TERM $$'; echo $?; dewar run -p offline -- nothing; echo $?; dewar run -p offline -- sh -c 'echo ${DEWAR_RUN#*/}; test -d \"$TMPDIR\" && echo x >$TMPDIR/y && cat $TMPDIR/y'",
    );
    let lines: Vec<_> = ran.out().lines().map(str::to_owned).collect();
    assert_eq!(lines[..4], ["in out", "7", "143", "127"], "{}", ran.err());
    assert!(lines[4].starts_with("main/offline."), "{lines:?}");
    assert_eq!(lines[5], "x", "{}", ran.err());
    assert!(ran.err().contains("within what that run may do"), "{}", ran.err());
}

fn what_a_run_inside_denies_is_on_record_under_its_name(stage: &Stage) {
    stage.file(&stage.work().join("secret"), "secret\n");
    let rules = "files.deny = ['${workspace}/secret']\n";
    let ran = around(stage, rules, "dewar run -q -p ./inner.toml -- cat secret; echo $?");
    assert_eq!(ran.out(), "1\n", "{}", ran.err());
    let record = stage.record();
    record.explains("/secret");
    let denied = record.denials_of("/secret");
    assert!(denied[0].reason.contains("in the run inside (inner."), "{:?}", denied[0]);
    let told = run(stage.control(&["explain", "--all"]), b"");
    assert!(told.out().contains("main/inner."), "{}{}", told.out(), told.err());
    assert!(!told.out().contains("domains.main/inner"), "{}", told.out());
    let report = run(stage.control(&["report"]), b"");
    assert!(report.out().contains("1 run began inside of it"), "{}", report.out());
}

fn tests_of_a_project_run_in_runs_of_their_own(stage: &Stage) {
    let make = "test: one two\none two:\n\tdewar run -q -p ./inner.toml -- ./check $@\n";
    stage.file(&stage.work().join("Makefile"), make);
    let check = "#!/bin/sh\ncat secret 2>/dev/null && exit 1\necho \"$1 passed\" | tee out.$1\n";
    stage.file(&stage.work().join("check"), check);
    stage.file(&stage.work().join("secret"), "secret\n");
    stage.file(
        &stage.work().join("package.json"),
        "{\"scripts\": {\"test\": \"dewar run -q -p ./inner.toml -- ./check three\"}}",
    );
    stage.prepare("chmod +x check");
    let rules = "files.deny = ['${workspace}/secret']\n";
    let ran =
        around(stage, rules, "make -s -j2 test && node --run test && cat out.* && cat secret");
    let mut lines: Vec<_> = ran.out().lines().map(str::to_owned).collect();
    lines[..2].sort();
    let want = "one passed\ntwo passed\nthree passed\none passed\nthree passed\ntwo passed\nsecret";
    let told = ran.err();
    if told.contains("node: bad option") || told.contains("node: command not found") {
        eprintln!("note: no node that has --run is here, so make's runs alone are tried");
        assert_eq!(lines[..2], ["one passed", "two passed"], "{told}");
    } else {
        assert_eq!(lines.join("\n"), want, "{told}");
    }
}

fn a_run_inside_a_run_begins_again_and_again(stage: &Stage) {
    stage.file(&stage.work().join("secret"), "secret\n");
    let rules = "files.deny = ['${workspace}/secret']\n";
    let ran = around(
        stage,
        rules,
        "for n in $(seq 50); do dewar run -q -p ./inner.toml -- bash -c 'cat secret 2>/dev/null || echo $0' $n; done",
    );
    let want: String = (1..=50).map(|n| format!("{n}\n")).collect();
    assert_eq!(ran.out(), want, "{}", ran.err());
}

fn runs_inside_of_each_other_take_more_each(stage: &Stage) {
    for n in 1..=5 {
        stage.file(&stage.work().join(format!("secret.{n}")), "secret\n");
    }
    let program = stage.under_dewar(stage.call(), &[]).remove(0);
    let directory = std::path::Path::new(&program).parent().expect("a directory").to_owned();
    for n in 1..=5 {
        let text = format!(
            "extends = 'workspace'\nfiles.exec = [{directory:?}]\nfiles.deny = ['${{workspace}}/secret.{n}']\n"
        );
        stage.file(&stage.work().join(format!("{n}.toml")), &text);
    }
    let script = "n=$(($1+1)); cat secret.* 2>/dev/null | wc -l; dewar run -q -p ./$n.toml -- bash ./deeper $n";
    stage.file(&stage.work().join("deeper"), script);
    let ran = around(stage, "", "bash ./deeper 0; echo $?");
    assert_eq!(ran.out(), "5\n4\n3\n2\n1\n125\n", "{}", ran.err());
    assert!(ran.err().contains("4 deep inside of a run"), "{}", ran.err());
}

fn a_run_goes_on_as_before_when_one_inside_has_ended(stage: &Stage) {
    let ran = around(
        stage,
        "network.inherit = false\n",
        "dewar run -q -p ./inner.toml -- true; echo x >a && mv a b && cat b; sleep 30 & kill $!; wait $!; echo $?; python3 -c 'import os; r = os.fork() or os._exit(3); print(os.waitpid(r, 0)[1] >> 8)'; cat ~/.ssh/id_ed25519; echo $?; ulimit -x 2>/dev/null | wc -l",
    );
    assert!(ran.out().starts_with("x\n143\n3\n1\n"), "{}{}", ran.out(), ran.err());
}

fn a_run_inside_a_run_has_the_memory_that_its_profile_says(stage: &Stage) {
    let much = "python3 -c 'print(len(bytes(700 << 20)) >> 20)'";
    let ran = around(
        stage,
        "limits.memory = '256M'\n",
        &format!(
            "{much}; dewar run -q -p ./inner.toml -- {much}; echo $?; dewar run -q -p ./inner.toml -- sh -c \"{much}\"; echo $?"
        ),
    );
    assert_eq!(ran.out(), "700\n1\n1\n", "{}", ran.err());
    assert!(ran.err().contains("MemoryError"), "{}", ran.err());
}

/// What a change of policy takes, made where the daemon decides, is taken inside, too.
fn a_run_inside_a_run_is_bounded_where_a_daemon_decides(stage: &Stage) {
    let _daemon = (!stage.has_daemon()).then(|| Daemon::start(stage, &[]));
    let (profile, program) = with_dewar(stage, "");
    let directory = std::path::Path::new(&program).parent().expect("a directory").to_owned();
    for file in ["secret", "kept", "taken"] {
        stage.file(&stage.work().join(file), "content\n");
    }
    let inner = format!(
        "extends = 'workspace'\nfiles.exec = [{directory:?}]\nfiles.deny = ['${{workspace}}/secret']\n"
    );
    stage.file(&stage.work().join("inner.toml"), &inner);
    let script = format!(
        "PATH={}:$PATH; dewar run -q -p ./inner.toml -- bash -c 'cat secret; echo $?; cat kept taken; touch ready; until [ -e go ]; do sleep 0.1; done; cat taken; echo $?; cat kept'",
        directory.display()
    );
    let call = Call { profile: Some(&profile), daemon: true, ..stage.call() };
    let mut command = stage.dewar(call, &bash(&script));
    let work = stage.work();
    let ran = std::thread::scope(|scope| {
        let running = scope.spawn(move || run_captured(&mut command));
        crate::process::until(|| work.join("ready").exists().then_some(())).expect("it runs");
        let revoked = run(stage.control(&["revoke", "--file", "taken"]), b"");
        stage.file(&work.join("go"), "");
        assert!(revoked.status.success(), "{}{}", revoked.out(), revoked.err());
        running.join().expect("the run")
    });
    assert_eq!(ran, "1\ncontent\ncontent\n1\ncontent\n");
}

fn run_captured(command: &mut std::process::Command) -> String {
    let output = command.stdin(std::process::Stdio::null()).output().expect("start `dewar`");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the profile inside denies is denied; no domain of the run around is entered, as the filter
/// of the run inside would go along, and who asks why is told.
fn a_run_inside_a_run_of_several_domains_is_bounded_by_each(stage: &Stage) {
    for file in ["secret", "kept", "others"] {
        stage.file(&stage.work().join(file), &format!("{file}\n"));
    }
    let rules = "[domains.tac]\nexec = ['/usr/bin/tac']\nfiles.deny = ['${workspace}/others']\n";
    let (profile, program) = with_dewar(stage, rules);
    let directory = std::path::Path::new(&program).parent().expect("a directory").to_owned();
    let inner = format!(
        "extends = 'workspace'\nfiles.exec = [{directory:?}]\nfiles.deny = ['${{workspace}}/secret']\n"
    );
    stage.file(&stage.work().join("inner.toml"), &inner);
    let script = format!(
        "PATH={}:$PATH; for it in cat tac; do for file in secret kept others; do $it $file 2>/dev/null || echo no; done; done; \
         dewar run -q -p ./inner.toml -- bash -c 'for it in cat tac; do for file in secret kept others; do $it $file 2>/dev/null || echo no; done; done'",
        directory.display()
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&script)), b"");
    let around = "secret\nkept\nothers\nsecret\nkept\nno\n";
    let inside = "no\nkept\nothers\nno\nno\nno\n";
    assert_eq!(ran.out(), format!("{around}{inside}"), "{}", ran.err());
    let record = stage.record();
    assert!(record.denials_of("tac").iter().any(|it| it.reason.contains("stays in the domain")));
}

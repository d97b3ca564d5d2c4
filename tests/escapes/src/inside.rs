//! Attacks from, and by, a run inside of a run.

use crate::{Case, cases, dewar, stage::Stage};
use std::{
    fmt::Write as _,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Output,
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    leaving_a_run_inside_a_run,
    entering_a_domain_with_a_policy_of_its_own,
    having_others_enter_a_run_inside,
    filling_a_run_with_runs,
    leaving_a_run_two_deep_inside,
    executing_what_a_run_inside_may_only_read,
    holding_up_the_end_of_a_run,
    filling_memory_with_policies_from_inside,
    making_a_call_after_a_revocation_by_the_dead,
];

/// How long a run may take to end, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program, and the directory that it lies in.
fn program() -> (String, String) {
    let program = dewar::words(dewar::Call::default()).remove(0);
    let directory = Path::new(&program).parent().and_then(Path::to_str).expect("a directory");
    (program.clone(), directory.to_owned())
}

/// What the run inside may not do, beside its caller.
const INNER: &str = "files.deny = ['${workspace}/secret', '${workspace}/box/secret']\n\
                     files.readonly = ['${workspace}/kept']\n";

/// A profile around, and one that takes from it.
fn profiles(stage: &Stage) -> (String, String) {
    let (_, directory) = program();
    let around = stage.profile(&format!("files.exec = [{directory:?}]\n"));
    for file in ["secret", "kept", "granted", "box/secret"] {
        stage.file(&format!("work/{file}"), file);
    }
    let text = format!("extends = 'workspace'\nfiles.exec = [{directory:?}]\n{INNER}");
    (around, path(&stage.file("work/inner.toml", &text)))
}

fn path(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs a script in a run, in both modes; in mode `fast` the run inside may be refused, by name.
fn holds(stage: &Stage, around: &str, script: &str) {
    for fast in [false, true] {
        let ran = run(stage, around, (fast, script));
        let told = String::from_utf8_lossy(&ran.stderr);
        if !(fast && ran.status.code() == Some(125) && told.contains("in mode `fast`")) {
            crate::stage::held(&ran);
        }
    }
}

fn run(stage: &Stage, around: &str, (fast, script): (bool, &str)) -> Output {
    let mut words = dewar::words(dewar::Call { fast, ..stage.call(around) });
    words.extend(["sh", "-c", script].map(str::to_owned));
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]);
    stage.like(command).output().expect("start `dewar`")
}

/// The script that starts an attack inside, from a shell that goes on to be there.
fn attacking(stage: &Stage, inner: &str) -> String {
    let (program, directory) = program();
    let wide = format!("extends = 'workspace'\nfiles.exec = [{directory:?}]\n");
    let wide = path(&stage.file("work/wide.toml", &wide));
    stage.program("work/leave_inside", "leave_inside");
    format!(
        "exec 7<. 9<secret 8<<E\npiped\nE\n{program} run -q -p {inner} -- ./leave_inside {program} {wide} 8<&- 9<&-; \
         status=$?; exec 7<&-; exit $status"
    )
}

fn leaving_a_run_inside_a_run(stage: &Stage) {
    let (around, inner) = profiles(stage);
    holds(stage, &around, &attacking(stage, &inner));
    for file in ["kept", "secret", "box/secret"] {
        let now = std::fs::read_to_string(stage.work().join(file)).expect("the file");
        assert_eq!(now, file);
    }
}

fn leaving_a_run_two_deep_inside(stage: &Stage) {
    let (around, inner) = profiles(stage);
    let (program, _) = program();
    let script = format!(
        "{program} run -q -p wide.toml -- sh -c '{}; exit $status'",
        attacking(stage, &inner).replace("; exit $status", "")
    );
    holds(stage, &around, &script);
}

/// What the run around may execute, and the one inside may not: in every way, and in a race.
fn executing_what_a_run_inside_may_only_read(stage: &Stage) {
    let (program, directory) = program();
    let around = stage.profile(&format!("files.exec = [{directory:?}, '${{home}}/data']\n"));
    let inner = format!(
        "extends = 'workspace'\nfiles.exec = [{directory:?}]\nfiles.read = ['${{home}}/data']\n"
    );
    let inner = path(&stage.file("work/inner.toml", &inner));
    let target = path(&stage.program("data/program", "escaped"));
    let loader = path(&stage.program("data/loader", "loader"));
    for attack in ["execute", "race_exec", "name_loader"] {
        stage.program(&format!("work/{attack}"), attack);
    }
    // It is granted around, or the attack would show nothing.
    let ran = run(stage, &around, (false, &target));
    assert_eq!(ran.status.code(), Some(42), "{}", String::from_utf8_lossy(&ran.stderr));
    let inside = format!("{program} run -q -p {inner} --");
    let script = format!(
        "{inside} ./execute {target} && {inside} ./race_exec {target} && ln -s {loader} l && \
         {inside} ./name_loader ./l; status=$?; rm -f l; exit $status"
    );
    holds(stage, &around, &script);
}

/// The policy that `dewar policy show` prints of a profile, as a process inside would send it.
fn policy_of(stage: &Stage, profile: &str) -> String {
    let (program, _) = program();
    let mut show = std::process::Command::new(&program);
    show.args(["policy", "show", profile, "--cil"]);
    let shown = stage.like(show).output().expect("start `dewar`");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    String::from_utf8(shown.stdout).expect("UTF-8")
}

/// What a process inside sends to be bounded by a policy.
fn request(cil: &str) -> String {
    let mut quoted = String::new();
    for c in cil.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => write!(quoted, "\\u{:04x}", u32::from(c)).expect("a string"),
            c => quoted.push(c),
        }
    }
    format!("{{\"name\":\"inner\",\"strict\":false,\"cil\":\"{quoted}\"}}")
}

fn having_others_enter_a_run_inside(stage: &Stage) {
    let (around, inner) = profiles(stage);
    stage.file("work/request", &request(&policy_of(stage, &inner)));
    stage.program("work/give_inside", "give_inside");
    let ran = run(stage, &around, (false, "./give_inside request secret"));
    crate::stage::held(&ran);
}

/// Asks, in Python, for the policy in the file `request`.
const ENTER: &str = "import os, socket
asked = socket.socket(fileno=os.open('/proc/self/attr/dewar/exec', os.O_RDWR))
asked.sendall(open('request', 'rb').read())
asked.shutdown(socket.SHUT_WR)
assert asked.recv(3) == b'in '";

/// The program would fail where that policy says, with the rights of its domain.
fn entering_a_domain_with_a_policy_of_its_own(stage: &Stage) {
    stage.program("work/vault", "vault");
    stage.file("work/request", &request(&policy_of(stage, "workspace")));
    let enter = format!(
        "{ENTER}
os.execv('/bin/sh', ['sh', '-c', './vault; test $? = 126 || exit 42'])"
    );
    stage.file("work/enter.py", &enter);
    let around = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    let ran = run(stage, &around, (false, "exec python3 enter.py"));
    crate::stage::held(&ran);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("Permission denied"), "{said}");
}

/// More than a run holds, beside each other, again and again: each is held, or refused by name; and
/// those that have ended make room.
fn filling_a_run_with_runs(stage: &Stage) {
    let (around, inner) = profiles(stage);
    let (program, _) = program();
    let one = format!("{program} run -q -p {inner} -- sh -c");
    let script = format!(
        "mkfifo wait; n=0; while [ $n -lt 40 ]; do \
           {one} 'cat secret; echo; cat <wait' >out.$n 2>err.$n & n=$((n+1)); done; \
         tries=0; until grep -q 'runs are inside already' err.*; do \
           tries=$((tries+1)); [ $tries -lt 60 ] || exit 3; sleep 0.5; done; \
         sleep 3; grep -l secret$ out.* && exit 42; \
         exec 5<>wait; exec 5>&-; kill $(jobs -p) 2>/dev/null; wait; \
         {one} 'cat secret' && exit 42; {one} 'cat granted' || exit 4"
    );
    let ran = run(stage, &around, (false, &script));
    crate::stage::held(&ran);
}

/// A policy takes minutes to be read, and its run ends meanwhile.
fn holding_up_the_end_of_a_run(stage: &Stage) {
    let (around, inner) = profiles(stage);
    let mut cil = policy_of(stage, &inner);
    for n in 0..8000 {
        writeln!(
            cil,
            "(type d{n}_t)(roletype dewar_r d{n}_t)(type e{n}_t)(roletype object_r e{n}_t)\
             (filecon \"/x{n}\" any (dewar_u object_r e{n}_t ((s0) (s0))))\
             (typetransition main_t e{n}_t process d{n}_t)(allow main_t e{n}_t (file (execute)))\
             (allow d{n}_t e{n}_t (file (entrypoint)))(allow main_t d{n}_t (process (transition)))"
        )
        .expect("a string");
    }
    stage.file("work/request", &request(&cil));
    let begun = Instant::now();
    let ran = run(stage, &around, (false, "cat request 1<>/proc/self/attr/dewar/exec"));
    crate::stage::held(&ran);
    assert!(begun.elapsed() < PATIENCE, "the run has ended after {:?}", begun.elapsed());
}

/// Each of many processes asks for a long policy, and lives.
fn filling_memory_with_policies_from_inside(stage: &Stage) {
    let (around, inner) = profiles(stage);
    let mut cil = policy_of(stage, &inner);
    for n in 0..45_000 {
        writeln!(cil, "(filecon \"/x{n}/b\" any (dewar_u object_r root_t ((s0) (s0))))")
            .expect("a string");
    }
    stage.file("work/request", &request(&cil));
    stage.program("work/ask_for_much", "ask_for_much");
    let ran = run(stage, &around, (false, "./ask_for_much request"));
    crate::stage::held(&ran);
}

/// What decides a call for long, as its own policy says, while its caller ends.
fn making_a_call_after_a_revocation_by_the_dead(stage: &Stage) {
    let (_, inner) = profiles(stage);
    let (program, directory) = program();
    let runtime = stage.directory("runtime");
    std::fs::set_permissions(&runtime, PermissionsExt::from_mode(0o700)).expect("set");
    let around = stage.profile(&format!("files.exec = [{directory:?}]\n"));
    let deep = format!("dir{}", format!("/{}", "b".repeat(240)).repeat(3));
    stage.directory(&format!("work/{deep}"));
    stage.file("work/payload", "mine");
    let slow = format!(
        "{}\n(filecon \"{}/dir/(.{{0,260}}){{0,260}}z\" any (dewar_u object_r workspace_t ((s0) (s0))))",
        policy_of(stage, &inner),
        stage.work().display()
    );
    stage.file("work/request", &request(&slow));
    stage.program("work/call_after_death", "call_after_death");
    let enter = format!(
        "{ENTER}
os.execv('./call_after_death', ['call_after_death', '{deep}'])"
    );
    stage.file("work/enter.py", &enter);
    let mut words = dewar::words(stage.call(&around));
    words.extend(["sh", "-c", "python3 enter.py; exec sleep 100"].map(str::to_owned));
    let mut run = std::process::Command::new(&words[0]);
    run.args(&words[1..]);
    let mut run = stage.like(run).env("XDG_RUNTIME_DIR", &runtime).spawn().expect("start `dewar`");
    let (ready, late) = (stage.work().join("ready"), stage.work().join(&deep).join("late"));
    let took = || std::fs::read_to_string(&ready).ok()?.trim().parse().ok();
    let begun = Instant::now();
    let took = loop {
        match took() {
            Some(took) => break Some(Duration::from_millis(took)),
            None if begun.elapsed() > 4 * PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    std::thread::sleep(Duration::from_secs(1));
    let was_early = late.exists();
    let mut revoke = std::process::Command::new(&program);
    revoke.args(["revoke", "--file", "dir"]);
    let revoked = stage.like(revoke).env("XDG_RUNTIME_DIR", &runtime).output().expect("start");
    std::thread::sleep(took.unwrap_or_default() * 2);
    let is_late = late.exists();
    let _ = (run.kill(), run.wait());
    let said = String::from_utf8_lossy(&revoked.stdout);
    let told = String::from_utf8_lossy(&revoked.stderr);
    assert!(took.is_some_and(|took| took > Duration::from_secs(3)) && !was_early, "{took:?}");
    assert!(!is_late, "made afterwards: {said}{told}");
    assert_eq!(revoked.status.code(), Some(1), "{said}{told}");
}

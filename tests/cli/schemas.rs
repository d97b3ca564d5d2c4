//! What commands print as JSON is what `--json-schema` says that they print.

use super::daemon::{GATE, Stage, wait_until};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

/// How documents are printed.
#[derive(Clone, Copy)]
enum Form {
    /// One, over many lines.
    One,
    /// One a line.
    Lines,
}

/// The flag that asks for the schema, behind the words of a command.
const SCHEMA: &str = "--json-schema";

/// The schema that a command prints of what it prints.
fn schema(stage: &Stage, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').chain([SCHEMA]).collect();
    let said = stage.say(&words);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{command}");
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// Validates `text`, in which there must be something, against the schema of `command`.
fn check(stage: &Stage, command: &str, form: Form, text: &str) {
    let schema = schema(stage, command);
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("https://dewar.invalid/schema", schema).unwrap();
    let index = compiler
        .compile("https://dewar.invalid/schema", &mut schemas)
        .unwrap_or_else(|error| panic!("{command}: {error:#}"));
    let documents: Vec<Value> = match form {
        Form::One => vec![serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))],
        Form::Lines => text.lines().map(|line| serde_json::from_str(line).expect(line)).collect(),
    };
    assert!(!documents.is_empty(), "{command} prints nothing");
    for document in &documents {
        let valid = schemas.validate(document, index);
        assert!(valid.is_ok(), "{command}: {:#}\n{document:#}", valid.unwrap_err());
    }
}

/// Runs `words`, and checks what comes out.
fn checked(stage: &Stage, command: &str, form: Form, words: &[&str]) {
    let words: Vec<&str> = command.split(' ').chain(words.iter().copied()).collect();
    let said = stage.say(&words);
    // A finding is no failure of what is printed about it.
    assert!(matches!(said.status, Some(0..=2)), "{words:?}: {}", said.err);
    assert!(!said.out.is_empty(), "{words:?}: {}", said.err);
    check(stage, command, form, &said.out);
}

/// What a benchmark has printed before, with the figures of a machine that is of no interest.
fn recorded(name: &str) -> String {
    let below = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/bench/recorded");
    fs::read_to_string(Path::new(below).join(format!("{name}.json"))).expect(name)
}

#[test]
fn what_every_benchmark_prints_is_as_its_schema_says() {
    let stage = Stage::new();
    for command in [
        "build",
        "decision",
        "harden",
        "ipc",
        "kernel",
        "library",
        "plugin",
        "project",
        "releases",
        "resolution",
        "revoke",
        "run",
        "self",
        "start",
        "syscalls",
        "trust",
        "unix",
        "walk",
        "web",
    ] {
        check(&stage, &format!("bench {command}"), Form::One, &recorded(command));
    }
    for asked in ["web-growth", "web-soak"] {
        check(&stage, "bench web", Form::One, &recorded(asked));
    }
}

#[test]
fn benchmarks_print_today_what_their_schemas_say() {
    let stage = Stage::new();
    for (command, words) in [
        ("bench start", &["--json", "--rounds", "2", "--only", "dewar all"][..]),
        ("bench revoke", &["--json", "--rounds", "1", "--most", "1"]),
        ("bench decision", &["--json", "--rounds", "1"]),
        ("bench library", &["--json", "--rounds", "1"]),
        ("bench resolution", &["--json", "--rounds", "1"]),
        ("bench plugin", &["--json", "--rounds", "1", "--batch-ms", "1", "--no-kernels"]),
    ] {
        checked(&stage, command, Form::One, words);
    }
}

fn plugin(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins").join(name);
    path.canonicalize().unwrap().into_os_string().into_string().unwrap()
}

#[test]
fn what_is_asked_of_policies_is_answered_as_the_schemas_say() {
    let stage = Stage::new();
    let broken = "(neverallow main_t self (process (fork))) (allow main_t self (process (fork)))
        (type bounded_t) (typebounds main_t bounded_t)
        (allow bounded_t unlabeled_t (file (read)))";
    let [one, other] = ["base.cil", "own.cil"].map(|name| stage.path("work").join(name));
    fs::write(&one, stage.say(&["policy", "show", "--cil", "workspace"]).out).unwrap();
    let text = fs::read_to_string(&one).unwrap();
    fs::write(&other, text + GATE + broken).unwrap();
    let subject = "dewar_u:dewar_r:main_t";
    let asked = [subject, "dewar_u:object_r:etc_t", "file"];
    let of = ["--json", "-f", "own.cil"];
    let question = [&of[..], &asked].concat();
    for (command, form, words) in [
        ("policy list", Form::Lines, &["--json"][..]),
        ("policy show", Form::One, &["--json", "agent"]),
        ("policy env", Form::One, &["--json"]),
        ("policy export", Form::One, &["--json", "workspace"]),
        ("policy diff", Form::Lines, &["--json", "base.cil", "own.cil"]),
        ("policy diff", Form::Lines, &["--json", "workspace", "agent"]),
        ("policy check", Form::Lines, &["--json", "own.cil"]),
        ("policy query", Form::Lines, &["--json", "-f", "own.cil", "-s", "main_t"]),
        ("policy av", Form::One, &question),
        ("policy transition", Form::One, &question),
        ("policy member", Form::One, &question),
        ("policy change", Form::One, &question),
    ] {
        checked(&stage, command, form, words);
    }
    let mut batch = stage.command(&["policy", "av", "--batch", "-f", "workspace"]);
    fs::write(stage.path("work/questions"), asked.join(" ") + "\nno question\n").unwrap();
    batch.stdin(fs::File::open(stage.path("work/questions")).unwrap());
    let said = String::from_utf8(batch.output().unwrap().stdout).unwrap();
    assert_eq!(said.lines().count(), 2, "{said}");
    check(&stage, "policy av", Form::Lines, &said);
}

#[test]
fn what_is_said_of_plugins_attacks_and_the_machine_is_as_the_schemas_say() {
    let stage = Stage::new();
    let (gray, headers) = (plugin("gray.e"), plugin("headers.e"));
    let input = plugin("headers.in");
    for (command, form, words) in [
        ("doctor", Form::One, &["--json", "--without", "user"][..]),
        ("plugin build", Form::One, &["--json", &gray]),
        ("plugin list", Form::One, &["--json"]),
        ("plugin test", Form::One, &["--json", "--target", "native", &headers]),
        ("selftest list", Form::One, &["--json"]),
        ("selftest", Form::One, &["--json", "git-hook"]),
    ] {
        checked(&stage, command, form, words);
    }
    let mut run = stage.command(&["plugin", "run", "--json", "--target", "all", &headers]);
    let run = run.stdin(fs::File::open(input).unwrap()).output().unwrap();
    check(&stage, "plugin run", Form::One, &String::from_utf8(run.stdout).unwrap());
}

#[test]
fn what_is_said_of_runs_is_as_the_schemas_say() {
    let mut stage = Stage::new();
    stage.start();
    fs::write(stage.path("work/gate.cil"), GATE).unwrap();
    fs::write(stage.path("work/data"), "data").unwrap();
    let script =
        "exec 7<data; cat ../home/.ssh/id; echo x > made; until [ -e stop ]; do sleep 0.1; done";
    let words = ["run", "--daemon", "--json", "--name", "one", "--cil", "gate.cil"];
    let words = [&words[..], &["--", "sh", "-c", script]].concat();
    let mut run = stage.command(&words);
    let run = Ended(Some(run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()));
    wait_until("the run has opened its file", || stage.path("work/made").exists());
    for (command, form, words) in [
        ("ps", Form::One, &["--json"][..]),
        ("top", Form::Lines, &["--json", "--once", "--interval", "0.1"]),
        ("daemon", Form::One, &["--runs", "--json"]),
        ("policy set", Form::One, &["--json", "one", "gate=off"]),
        ("revoke", Form::One, &["--json", "one", "--file", "data"]),
        ("grant", Form::One, &["--json", "one", "--file", "data"]),
        ("policy load", Form::One, &["--json", "one", "readonly"]),
        ("policy history", Form::One, &["--json", "one"]),
    ] {
        checked(&stage, command, form, words);
    }
    fs::write(stage.path("work/stop"), "").unwrap();
    let said = run.wait();
    let summary = said.lines().find(|line| line.starts_with('{')).expect(&said);
    check(&stage, "run", Form::One, summary);
    for (command, form, words) in [
        ("runs", Form::One, &["--json"][..]),
        ("explain", Form::One, &["--json", "one"]),
        ("report", Form::One, &["--json"]),
        ("audit", Form::Lines, &["--json", "--run", "one"]),
    ] {
        checked(&stage, command, form, words);
    }
}

#[test]
fn questions_are_events_as_the_schema_says() {
    let stage = Stage::new();
    fs::write(stage.path("home/notes"), "notes").unwrap();
    let script = "until [ -e go ]; do sleep 0.1; done; cat ../home/notes";
    let words = ["run", "--no-daemon", "--ask", "--ask-timeout", "1s", "--name", "one"];
    let words = [&words[..], &["--", "sh", "-c", script]].concat();
    let mut run = stage.command(&words);
    let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let run = Ended(Some(run.spawn().unwrap()));
    wait_until("it can be asked", || stage.say(&["ask", "one", "--list"]).status == Some(0));
    let mut listener = stage.command(&["ask", "one", "--json"]);
    let listener = listener.stdout(Stdio::piped()).spawn().unwrap();
    fs::write(stage.path("work/go"), "").unwrap();
    run.wait();
    let events = String::from_utf8(listener.wait_with_output().unwrap().stdout).unwrap();
    check(&stage, "ask", Form::Lines, &events);
}

/// A run that does not outlive the test.
struct Ended(Option<Child>);

impl Ended {
    /// Waits for its end; what it said.
    fn wait(mut self) -> String {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // One that has ended already is as good.
            let _ = (child.kill(), child.wait());
        }
    }
}

#[test]
fn a_schema_is_asked_for_alone_and_needs_nothing_else() {
    let stage = Stage::new();
    for command in ["revoke", "policy diff", "plugin run", "bench start", "policy set"] {
        assert!(schema(&stage, command)["$id"].as_str().unwrap().starts_with("dewar/"));
    }
    let said = stage.say(&["run", SCHEMA, "--", "touch", "trace"]);
    assert_eq!(said.status, Some(2), "{}", said.err);
    assert!(said.err.contains("cannot be used with") && !stage.path("work/trace").exists());
}

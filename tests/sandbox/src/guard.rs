//! Ordinary work where names that programs outside trust are guarded, and the report of what is
//! left.

use crate::{
    Case, cases,
    process::{Ran, run},
    stage::{Stage, bash},
};

pub(crate) const CASES: &[Case] = cases![
    git_works_on_under_a_guard,
    a_nested_repository_is_refused_and_explained,
    what_is_not_guarded_is_made_and_reported,
    nothing_is_reported_without_a_guard,
];

const CONFIG: &str = "git config --global init.defaultBranch main; git config --global user.name u
    git config --global user.email u@example.org; git init -q; echo a > a; git add a; git commit -qm first";

/// Runs a script under the guard of `agent`, without its network.
fn guarded(stage: &Stage, rules: &str, script: &str) -> Ran {
    let profile = stage.home().join("guarded.toml");
    let text = format!("extends = \"workspace\"\n[files]\nguard = \"host-trusted\"\n{rules}\n");
    stage.file(&profile, &text);
    let call = crate::dewar::Call { profile: profile.to_str(), ..stage.call() };
    run(stage.dewar(call, &bash(script)), b"")
}

fn report(stage: &Stage) -> String {
    run(stage.control(&["report"]), b"").out()
}

fn git_works_on_under_a_guard(stage: &Stage) {
    stage.prepare(CONFIG);
    let script = "set -e; echo b >> a; git commit -qam second; echo c >> a; git stash -q; git stash pop -q
        git checkout -q a; git checkout -qb topic; git worktree add -q tree -b side; cd tree; echo d > d; git add d
        git commit -qm third; cd ..; git merge -q side; git gc -q; git worktree remove tree; git log --format=%s
        git clone -q . \"$TMPDIR/clone\"; git -C \"$TMPDIR/clone\" log --format=%s -1; mv a b; mkdir d1; mv d1 d2";
    let ran = guarded(stage, "", script);
    assert_eq!(ran.out(), "third\nsecond\nfirst\nthird\n", "{}", ran.err());
    assert_eq!(ran.code(), 0, "{}", ran.err());
}

fn a_nested_repository_is_refused_and_explained(stage: &Stage) {
    stage.prepare(CONFIG);
    let ran = guarded(stage, "", "git clone -q . sub");
    assert_ne!(ran.code(), 0);
    let said = run(stage.control(&["explain"]), b"").out();
    let unguarded = format!("files.unguarded = [\"{}\"]", stage.work().join("sub").display());
    assert!(said.contains("outside, it would be for Git") && said.contains(&unguarded), "{said}");
    let ran =
        guarded(stage, "unguarded = [\"${workspace}/sub\"]", "rm -rf sub; git clone -q . sub");
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert!(report(stage).contains("sub/.git/config  (Git"), "{}", report(stage));
}

fn what_is_not_guarded_is_made_and_reported(stage: &Stage) {
    let script = "set -e; printf 'all:\\n' > Makefile; ln -s ../elsewhere out; mkdir -p node_modules/x .venv/bin
        echo > node_modules/x/AGENTS.md; echo > .venv/bin/tool; echo gone > GNUmakefile; rm GNUmakefile";
    let ran = guarded(stage, "", script);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let told = report(stage);
    for path in ["/Makefile", "/out", "/node_modules/x/AGENTS.md", "/.venv/bin/tool"] {
        assert!(told.contains(path), "{path}: {told}");
    }
    // That it was made and removed again is told, too; but nobody would execute it.
    let planted = told.split("what programs outside").nth(1).expect("a part of the report");
    assert!(!planted.contains("/GNUmakefile"), "{told}");
    let json = run(stage.control(&["report", "--json"]), b"").out();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["planted"].as_array().map(Vec::len), Some(4), "{json}");
    let allowed =
        guarded(stage, "guard_action = \"report\"", "mkdir .vscode; echo > .vscode/tasks.json");
    assert_eq!(allowed.code(), 0, "{}", allowed.err());
    assert!(allowed.err().contains("/.vscode/tasks.json"), "{}", allowed.err());
}

fn nothing_is_reported_without_a_guard(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("echo > Makefile; mkdir .vscode")), b"");
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    assert!(report(stage).contains("sets no guard"), "{}", report(stage));
}

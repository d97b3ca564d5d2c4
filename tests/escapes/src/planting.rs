//! Attacks by what a trusted program outside reads later.

use crate::{
    Case, cases,
    dewar::{Call, words},
    stage::{Stage, held},
};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    planting_a_repository,
    planting_a_repository_whose_directory_is_held_up,
    planting_a_repository_by_a_socket_that_is_led_elsewhere,
    planting_a_repository_by_two_runs_at_once,
    planting_names_that_programs_outside_trust,
    changing_names_that_programs_outside_trust,
    changing_what_is_saved_outside_by_a_rename,
    moving_what_is_executed_outside_into_place,
    moving_another_file_than_was_decided,
    leaving_a_device_behind,
];

/// Git in the stage's workspace, outside of any sandbox; what it says.
fn git(stage: &Stage, directory: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    let quiet = ["-c", "user.name=u", "-c", "user.email=u@example.org"];
    git.args(quiet).args(["-c", "init.defaultBranch=main"]).args(words);
    let output = stage.like(git).current_dir(directory).output().expect("git");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// A workspace that is a repository, with a worktree and, in `there`, a repository without a
/// working tree.
fn repository(stage: &Stage) {
    let work = stage.work();
    stage.file("work/file", "content");
    for words in [
        &["init", "-q", "."][..],
        &["add", "file"],
        &["commit", "-q", "-m", "first"],
        &["worktree", "add", "-q", "tree"],
        &["init", "-q", "--bare", "there"],
    ] {
        git(stage, &work, words);
    }
    assert!(work.join(".git/worktrees/tree/commondir").exists(), "no worktree was made");
}

/// Every directory of the workspace, but those inside of a `.git`.
fn directories(top: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while next < found.len() {
        for entry in std::fs::read_dir(&found[next]).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                found.push(entry.path());
            }
        }
        next += 1;
    }
    found
}

fn planting_a_repository(stage: &Stage) {
    for fast in [false, true] {
        for entry in std::fs::read_dir(stage.work()).expect("the workspace").flatten() {
            let path = entry.path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
            removed.expect("an empty workspace");
        }
        repository(stage);
        let marker = stage.home().join("obeyed");
        let command = format!("touch {}", marker.display());
        let call = Call { fast, ..stage.call("agent") };
        held(
            &stage.command(call, "plant_repository", &[&command]).output().expect("start `dewar`"),
        );
        for directory in directories(&stage.work()) {
            for words in [&["status"][..], &["log", "-p"], &["add", "."]] {
                let said = git(stage, &directory, words);
                assert!(!marker.exists(), "Git in {} obeyed: {said}", directory.display());
            }
        }
        let kept = std::fs::read_to_string(stage.work().join("there/config")).expect("it is there");
        assert!(!kept.contains("fsmonitor"), "{kept}");
    }
}

/// With so many entries, a directory is listed long enough for hundreds of names to be made
/// meanwhile.
const MANY: usize = 60_000;

fn planting_a_repository_whose_directory_is_held_up(stage: &Stage) {
    let held_up = stage.directory("work/held");
    stage.directory("work/held/objects");
    stage.file("work/held/HEAD", "ref: refs/heads/main\n");
    for number in 0..MANY {
        let name = held_up.join(format!("{number:0100}"));
        std::os::unix::fs::symlink("x", name).expect("a link");
    }
    let marker = stage.home().join("obeyed");
    let command = format!("touch {}", marker.display());
    let arguments = [held_up.to_str().expect("UTF-8"), &command];
    held(
        &stage
            .command(stage.call("agent"), "plant_held_up", &arguments)
            .output()
            .expect("start `dewar`"),
    );
    let is_there = |name: &str| held_up.join(name).exists();
    let said = git(stage, &held_up, &["status"]);
    assert!(!marker.exists(), "{said}");
    assert!(!is_there("refs") || !is_there("config"), "{said}");
}

fn planting_a_repository_by_a_socket_that_is_led_elsewhere(stage: &Stage) {
    let marker = stage.home().join("obeyed");
    let command = format!("touch {};false", marker.display());
    let attack = stage.command(stage.call("agent"), "plant_socket", &[&command]).output();
    let said = git(stage, &stage.work().join("p/sub"), &["status"]);
    assert!(!marker.exists(), "Git obeyed: {said}");
    held(&attack.expect("start `dewar`"));
}

/// As editors save, and Git its configuration.
fn changing_what_is_saved_outside_by_a_rename(stage: &Stage) {
    stage.directory("work/sub/.git");
    for (temporary, name) in [("sub/.envrc.new", "sub/.envrc"), ("sub/saved", "sub/.git/config")] {
        let paths = [temporary, name, "met"].map(|name| stage.work().join(name));
        let [from, to, met] = &paths;
        let words = paths.each_ref().map(|path| path.to_str().expect("UTF-8"));
        let mut attack = stage.command(stage.call("agent"), "saved_by_rename", &words);
        let attack = attack.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let attack = attack.expect("start `dewar`");
        stage.file(&format!("work/{temporary}"), "by somebody outside");
        let end = Instant::now() + Duration::from_secs(20);
        while !met.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::fs::rename(from, to).expect("rename");
        held(&attack.wait_with_output().expect("its end"));
        assert_eq!(std::fs::read_to_string(to).expect("read"), "by somebody outside");
        std::fs::remove_file(met).expect("remove");
    }
}

fn planting_a_repository_by_two_runs_at_once(stage: &Stage) {
    stage.directory("work/x/objects");
    let call = |what| stage.command(stage.call("agent"), "plant_together", &[what]);
    let runs = [call("refs"), call("config")].map(|mut run| {
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start `dewar`")
    });
    for run in runs.map(|run| run.wait_with_output().expect("its end")) {
        held(&run);
    }
}

fn planting_names_that_programs_outside_trust(stage: &Stage) {
    let names = [
        ".vscode",
        "a/b/.vscode",
        "a/.VSCode",
        "a/.v\u{17f}code",
        "a/.vs\u{200c}code",
        ".mcp.json",
        "a/CLAUDE.md",
        "a/b/agents.md",
        ".cursor",
        "a/.envrc",
        ".husky",
        "a/.devcontainer",
        ".gdbinit",
        "a/b/.exrc",
        ".nvim.lua",
        "a/.npmrc",
        ".yarnrc.yml",
        "a/x.code-workspace",
        ".claude",
        ".gemini",
        ".codex",
        ".zed",
        "a/.idea",
        "a/.helix",
        ".bsp",
        ".githooks",
        "mise.local.toml",
        "a/.ghci",
        "a/.RData",
        "a/.iex.exs",
        ".sl",
        ".hg/hgrc-not-shared",
        ".hg/sharedpath",
        ".jj/workspace-config.toml",
        "_darcs/prefs",
        ".git/lazygit.yml",
        ".git/sl",
        "AGENT.md",
        ".trae",
        "a/.rules",
        ".kilocode",
        "lefthook-local.yml",
        ".config/lefthook.toml",
        "a/.lintstagedrc.json",
        "mise/config.toml",
        ".lazy.lua",
        ".miserc.toml",
        "mise.dev.toml",
        "a/.mise.dev.local.toml",
        ".config/mise.dev.toml",
        "mise/config.dev.toml",
        "a/.envrc.private",
        ".shadowenv.d",
        ".git/commondir",
    ];
    for directory in [".hg", ".jj", "_darcs", ".git", ".config", "mise"] {
        stage.directory(&format!("work/{directory}"));
    }
    stage.holds("agent", "plant_names", &names);
    for name in names {
        assert!(!stage.work().join(name).exists(), "{name} was made");
    }
}

fn changing_names_that_programs_outside_trust(stage: &Stage) {
    let files = ["work/a/.vscode/tasks.json", "work/sub/AGENTS.md", "work/a/.NPMRC"];
    let files = files.map(|name| stage.file(name, "mine"));
    let names = files.each_ref().map(|path| path.to_str().expect("UTF-8"));
    stage.holds("agent", "change_files", &names);
    for file in &files {
        assert_eq!(
            std::fs::read_to_string(file).expect("it is there"),
            "mine",
            "{}",
            file.display()
        );
    }
}

fn moving_what_is_executed_outside_into_place(stage: &Stage) {
    for fast in [false, true] {
        std::fs::remove_dir_all(stage.work()).expect("an empty workspace");
        for name in ["Makefile", "setup.py", "sub/x", "CMakeLists.txt"] {
            stage.file(&format!("work/{name}"), "mine");
        }
        let call = Call { fast, ..stage.call("agent") };
        held(&stage.command(call, "move_into_place", &[]).output().expect("start `dewar`"));
        let mut report = Command::new(&words(call)[0]);
        report.arg("report");
        let report = stage.like(report).output().expect("start `dewar`").stdout;
        let report = String::from_utf8(report).expect("UTF-8");
        let (_, planted) = report.split_once("what programs outside").expect("a part of it");
        for name in [
            ".mvn/extensions.xml",
            ".venv/bin/activate",
            "e/gradle/wrapper/gradle-wrapper.jar",
            "Makefile",
            "sub/package.json",
            "setup.py",
            "Dockerfile",
            "CMakeLists.txt",
        ] {
            let path = format!(" {}  (", stage.work().join(name).display());
            assert!(planted.contains(&path), "of {name} nothing is said: {planted}");
        }
    }
}

fn moving_another_file_than_was_decided(stage: &Stage) {
    held(&stage.command(stage.call("agent"), "move_another", &[]).output().expect("start `dewar`"));
}

fn leaving_a_device_behind(stage: &Stage) {
    stage.holds("workspace", "whiteout", &[]);
    assert!(!stage.work().join("moved-away").exists(), "something is there");
}

//! What people see of runs that ended: `runs`, `explain`, `report`.

use assert_cmd::Command;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use test_support::browse;

/// A home with a project. Not below `/tmp`, of which each run has its own.
pub(super) struct Home(TempDir);

impl Home {
    pub(super) fn new() -> Self {
        let home = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::create_dir(home.work()).unwrap();
        home
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn work(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap().join("work")
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(test_support::dewar());
        command.args(args).current_dir(self.work()).env("HOME", self.0.path()).env("NO_COLOR", "1");
        command.env("XDG_STATE_HOME", self.0.path().join("state"));
        command.env("XDG_CACHE_HOME", self.0.path().join("cache")).env_remove("COLUMNS");
        command
    }

    /// Status, standard output, standard error.
    pub(super) fn say(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    pub(super) fn run(&self, name: &str, script: &str) -> (i32, String, String) {
        self.say(&["run", "--no-daemon", "--name", name, "--", "sh", "-c", script])
    }
}

#[test]
fn a_run_is_found_by_its_name_and_by_the_beginning_of_its_id_and_a_slip_is_named() {
    let home = Home::new();
    assert!(home.say(&["runs"]).1.contains("no run is kept"));
    assert_eq!(home.run("first-one", "cat /etc/shadow; echo x > made; exit 3").0, 3);
    assert_eq!(home.run("second", "true").0, 0);
    let (_, list, _) = home.say(&["runs", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&"second".into(), &"first-one".into()));
    assert_eq!((&list[1]["status"], &list[1]["denied"]), (&3.into(), &1.into()));
    let at = list[1]["started_at"].as_str().unwrap();
    assert!(at.starts_with("20") && at.ends_with('Z'), "{at}");
    let id = list[1]["id"].as_str().unwrap();
    for name in ["first-one", id, &id[..5]] {
        for command in ["explain", "report"] {
            let (status, out, err) = home.say(&[command, name]);
            assert!(status == 0 && out.contains("exit status 3"), "{command} {name}: {out}{err}");
        }
        let (_, out, err) = home.say(&["allow", name, "1", "--dry-run"]);
        assert!(out.contains("/etc/shadow"), "{name}: {out}{err}");
    }
    assert!(home.say(&["explain"]).1.contains("`sh -c true`"));
    for command in
        [&["explain", "frist-one"][..], &["report", "frist-one"], &["allow", "frist-one", "1"]]
    {
        let (status, _, err) = home.say(command);
        assert!(err.contains("did you mean `first-one`?") && err.contains("dewar runs"), "{err}");
        assert_eq!(status, 2, "{command:?}");
    }
}

#[test]
fn many_denials_are_told_in_few_lines_and_each_on_demand() {
    let home = Home::new();
    fs::write(
        home.work().join("x.toml"),
        "extends = 'workspace'\nfiles.deny = ['${workspace}/d']\n",
    )
    .unwrap();
    fs::create_dir(home.work().join("d")).unwrap();
    for n in 0..300 {
        fs::write(home.work().join(format!("d/f{n}")), "").unwrap();
    }
    let script =
        "i=0; while [ $i -lt 300 ]; do read x < d/f$i; i=$((i+1)); done 2> /dev/null; true";
    let (status, _, err) =
        home.say(&["run", "--no-daemon", "-p", "./x.toml", "-w", ".", "--", "sh", "-c", script]);
    assert_eq!(status, 0, "{err}");
    let (_, out, _) = home.say(&["explain"]);
    assert!(out.lines().count() < 40, "{} lines:\n{out}", out.lines().count());
    let pattern = format!("{}/d/*: 300 objects, 300 times", home.work().display());
    assert!(out.contains(&pattern) && out.contains("[1-300]"), "{out}");
    assert!(out.contains("dewar allow 1-300 --dry-run"), "{out}");
    let (_, all, _) = home.say(&["explain", "--all"]);
    assert!(all.contains("[300] "), "{}", all.lines().count());
}

#[test]
fn a_report_names_what_was_written_executed_and_removed() {
    let home = Home::new();
    home.run("r", "echo x > made; echo y > gone; rm gone; cat /etc/shadow");
    let (_, out, _) = home.say(&["report", "r"]);
    for part in [
        "programs executed",
        "/work/made",
        "names removed",
        "cat may not read or open /etc/shadow",
        "sets no guard",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, json, _) = home.say(&["report", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["mode"]), (&"dewar/run/1".into(), &"all".into()));
    let deeds = json["deeds"].as_array().unwrap();
    let has = |kind: &str, end: &str| {
        deeds.iter().any(|it| it["kind"] == kind && it["object"].as_str().unwrap().ends_with(end))
    };
    assert!(has("wrote", "/made") && has("removed", "/gone") && has("executed", "/cat"), "{json}");
    let (status, _, err) = home.say(&["report", "-o", "/nonexistent/x.html"]);
    assert!(status == 125 && err.contains("cannot write the report to"), "{err}");
}

#[test]
fn the_page_of_a_report_opens_in_a_browser_and_asks_nobody_for_anything() {
    let home = Home::new();
    home.run("r", "echo x > made; cat '/etc/shadow<script>' /etc/shadow");
    let page = home.work().join("report.html");
    let (status, _, err) = home.say(&["report", "-o", "report.html"]);
    assert_eq!(status, 0, "{err}");
    let html = fs::read_to_string(&page).unwrap();
    for word in ["src=", "href=", "@import", "url(", "<script"] {
        assert!(!html.contains(word), "{word}");
    }
    let dom = browse(&page, &["--dump-dom"]);
    for part in ["Timeline", "aria-labelledby", "Files written", "/etc/shadow"] {
        assert!(dom.contains(part), "{part}: {dom}");
    }
    for (name, flag) in [("light", "--window-size=900,1400"), ("dark", "--force-dark-mode")] {
        let picture = home.work().join(format!("{name}.png"));
        browse(&page, &[flag, &format!("--screenshot={}", picture.display())]);
        let bytes = fs::read(&picture).expect("a picture").len();
        assert!(bytes > 5000, "{name}: {bytes} bytes are an empty page");
    }
}

#[test]
fn colour_is_for_terminals_and_for_those_who_insist() {
    let home = Home::new();
    home.run("r", "cat /etc/shadow");
    for args in
        [&["explain"][..], &["runs"], &["report"], &["doctor"], &["policy", "show"], &["ps"]]
    {
        let out = |set: &str, unset: &str| {
            let mut command = home.command(args);
            let output = command.env(set, "1").env_remove(unset).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (plain, forced) =
            (out("NO_COLOR", "CLICOLOR_FORCE"), out("CLICOLOR_FORCE", "NO_COLOR"));
        assert!(!plain.contains('\x1b'), "{args:?}: {plain}");
        assert!(forced.contains('\x1b') || args == ["ps"], "{args:?}: {forced}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let home = Home::new();
    home.run("r", "cat /etc/shadow; echo x > made");
    for args in [&["runs"][..], &["report"], &["doctor"], &["policy", "show"]] {
        for columns in [80, 120] {
            let output = home.command(args).env("COLUMNS", columns.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let is_path = |line: &str| line.contains(env!("CARGO_TARGET_TMPDIR"));
            let wide: Vec<&str> =
                text.lines().filter(|it| it.chars().count() > columns && !is_path(it)).collect();
            assert!(wide.is_empty(), "{args:?} at {columns}: {wide:?}");
        }
    }
}

#[test]
fn a_dry_run_says_what_would_be_laid_down_and_runs_nothing() {
    let home = Home::new();
    let (status, out, err) = home.say(&["run", "--dry-run", "-p", "agent", "--", "touch", "trace"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    for part in ["nothing is run", "profile agent", "namespaces", "Landlock", "touch trace"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!home.work().join("trace").exists());
    assert!(home.say(&["runs"]).1.contains("no run is kept"), "it leaves no record");
    let (status, _, err) = home.say(&["run", "--dry-run", "-p", "nosuch", "--", "true"]);
    assert!(status == 2 && err.contains("no profile is called `nosuch`"), "{err}");
}

#[test]
fn a_quiet_run_says_nothing_of_denials_and_a_run_knows_its_name() {
    let home = Home::new();
    let script = "cat /etc/shadow 2> /dev/null; echo ${DEWAR_RUN%%:*}";
    let (_, out, err) =
        home.say(&["run", "--no-daemon", "--quiet", "--name", "ci", "--", "sh", "-c", script]);
    let kept = home.say(&["runs", "--json"]).1;
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((Some(out.trim()), err.as_str()), (kept[0]["id"].as_str(), ""));
    assert!(home.say(&["explain", "ci"]).1.contains("/etc/shadow"));
    let (status, _, err) = home.say(&["run", "--quiet", "-p", "nosuch", "--", "true"]);
    assert!(status == 2 && err.contains("no profile is called"), "{err}");
}

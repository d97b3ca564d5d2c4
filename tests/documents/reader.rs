//! Somebody who follows a page: one shell, in a workspace of one home.

use crate::{ROOT, page::Block};
use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::Command,
};

/// A command of a block, and what has to come of it.
struct Step {
    line: usize,
    command: String,
    printed: Vec<String>,
    /// 0 where nothing is printed; `None` if any will do.
    status: Option<i32>,
}

/// The steps of all blocks, as a script that says before and after each which one it is.
fn script(blocks: &[Block]) -> (String, Vec<Step>) {
    let mut script = String::from("exec 2>&1\n");
    let mut steps: Vec<Step> = Vec::new();
    let mut files = Vec::new();
    for block in blocks.iter().filter(|block| block.not_run.is_none()) {
        for commands in &block.before {
            writeln!(script, "echo '@@before {}'\n{commands}", block.line).expect("memory");
        }
        let mut run = |script: &mut String, step: Step| {
            let number = steps.len();
            writeln!(script, "echo '@@{number}'\n{}\necho \"@@status $?\"", step.command)
                .expect("memory");
            steps.push(step);
        };
        match &*block.kind {
            "toml" | "cil" => {
                let unnamed = format!("block-{}.{}", block.line, block.kind);
                let name = block.name.clone().unwrap_or(unnamed);
                let more = if files.contains(&name) { ">>" } else { ">" };
                writeln!(script, "cat {more} {name} <<'@@END'\n{}\n@@END", block.lines.join("\n"))
                    .expect("memory");
                files.push(name.clone());
                if block.kind == "toml" {
                    let command = format!(
                        "dewar policy show ./{name} > shown 2>&1 || {{ cat shown; false; }}"
                    );
                    let status = Some(0);
                    run(&mut script, Step { line: block.line, command, printed: vec![], status });
                }
            }
            "sh" => {
                for (line, command) in whole(block) {
                    let status =
                        command.rsplit_once("# exit ").and_then(|(_, it)| it.trim().parse().ok());
                    let status = Some(status.unwrap_or(0));
                    run(&mut script, Step { line, command, printed: vec![], status });
                }
            }
            "console" => {
                for step in typed(block) {
                    run(&mut script, step);
                }
            }
            _ => {}
        }
    }
    (script, steps)
}

/// The commands of a block, those that go on in the next line in one.
fn whole(block: &Block) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    for (line, number) in block.lines.iter().zip(block.line + 1..) {
        match commands.last_mut() {
            Some((_, last)) if last.ends_with('\\') => {
                last.push('\n');
                last.push_str(line);
            }
            _ if line.trim().is_empty() || line.trim_start().starts_with('#') => {}
            _ => commands.push((number, line.clone())),
        }
    }
    commands
}

fn typed(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (text, line) in block.lines.iter().zip(block.line + 1..) {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step {
                    line,
                    command: command.into(),
                    printed: vec![],
                    status: Some(0),
                });
            }
            // A comment that goes on.
            (None, _) if text.trim_start().starts_with("# ") && text.starts_with("   ") => {}
            (None, Some(step)) => {
                step.printed.push(text.trim_end().to_owned());
                step.status = None;
            }
            (None, None) => panic!("line {line}: `{text}` is printed by nothing"),
        }
    }
    steps
}

/// Whether a line is as the page has it, where `…` stands for anything.
fn fits(line: &str, wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return line == wanted;
    }
    let Some(rest) = line.strip_prefix(first.trim_end()) else { return false };
    let mut rest = rest;
    for part in &parts[1..parts.len() - 1] {
        match rest.find(part.trim()) {
            Some(at) => rest = &rest[at + part.trim().len()..],
            None => return false,
        }
    }
    rest.ends_with(last.trim_start())
}

/// Whether what was printed is what the page says; a line of `…` alone stands for any number of
/// lines.
fn same(printed: &[&str], wanted: &[String]) -> bool {
    match wanted.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| same(&printed[skipped..], rest))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| fits(line.trim_end(), first) && same(others, rest)),
    }
}

/// What is not as the page says.
pub(crate) fn follow(blocks: &[Block]) -> Vec<String> {
    let root =
        fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) && Path::new("/home").is_dir();
    // Not below `/tmp`, which a sandbox has for itself.
    let base = if root { "/home" } else { env!("CARGO_TARGET_TMPDIR") };
    let place = tempfile::tempdir_in(base).expect("a directory");
    let home = place.path().join("me");
    for name in ["me/app", "run", "state"] {
        fs::create_dir_all(place.path().join(name)).expect("created");
    }
    fs::set_permissions(place.path().join("run"), fs::Permissions::from_mode(0o700)).expect("set");
    let (script, steps) = script(blocks);
    let programs = test_support::dewar().parent().expect("its directory");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let mut bash = Command::new("timeout");
    bash.args([
        "--kill-after=5",
        "120",
        "bash",
        "-c",
        &format!("trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"),
    ]);
    bash.current_dir(home.join("app")).env_clear().env("PATH", path).env("HOME", &home);
    bash.env("XDG_RUNTIME_DIR", place.path().join("run"))
        .env("XDG_STATE_HOME", place.path().join("state"));
    bash.env("LANG", "C.UTF-8").env("NO_COLOR", "1").env("SOURCE", ROOT).env("TERM", "dumb");
    let output = bash.stdin(std::process::Stdio::null()).output().expect("bash");
    let printed =
        String::from_utf8_lossy(&output.stdout).replace(&home.display().to_string(), "/home/me");
    let mut wrong = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let own = printed.split(&format!("@@{number}\n")).nth(1);
        let Some((own, after)) = own.and_then(|own| own.split_once("@@status ")) else {
            wrong.push(format!("{}: `{}` was not reached:\n{printed}", step.line, step.command));
            break;
        };
        let status: Option<i32> = after.lines().next().and_then(|status| status.parse().ok());
        let lines: Vec<&str> = own.lines().collect();
        if step.status.is_some() && step.status != status {
            wrong.push(format!("{}: `{}` ended with {status:?}:\n{own}", step.line, step.command));
        } else if !step.printed.is_empty() && !same(&lines, &step.printed) {
            wrong.push(format!("{}: `{}` printed\n{own}", step.line, step.command));
        }
    }
    wrong
}

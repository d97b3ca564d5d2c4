//! `dewar init claude|codex`: coding agents whose shell commands run under Dewar.
//!
//! Both call a hook before a tool runs, which may rewrite the call: `dewar init hook` makes
//! `dewar init exec PROFILE PROJECT COMMAND` of the command. What the agent
//! does itself, such as writing files, is no command; to hold that, too, run the agent:
//! `dewar run -p agent -- claude`.

use crate::{
    failure::Usage,
    fitting::{Author, ProfileFile, file_of, undo},
    machine, output,
    proposal::of_profile,
    shell::quoted,
};
use anyhow::{Context as _, bail};
use clap::Args;
use learn::Judge;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Our hooks are told from others by this.
const OURS: &str = " init hook --profile ";

const CLAUDE_HELP: &str = "\
Examples:
  dewar init claude --print        what would be written, and where
  dewar init claude                this project: .claude/settings.local.json
  dewar init claude --user         every project: ~/.claude/settings.json
  dewar init claude --undo         takes it back

A hook rewrites each shell command to `dewar init exec PROFILE PROJECT COMMAND`, which is
`dewar run -p PROFILE -w PROJECT -- bash -c COMMAND`; where the hook fails, and where a tool
that it does not know has a command, nothing runs. Claude Code's own sandbox is turned off for
it, as one sandbox cannot be made in the other; so are shell commands in skills, which no hook
sees. Its file tools are not commands, nor are servers for tools (MCP), and a project's own
settings may have hooks of their own: `dewar run -p claude -- claude` holds all of it. Without
a person to ask (claude -p), commands run only in the mode bypassPermissions. With --user, a
project's settings are over these.

Exit status: 0; 2 for wrong use, or if a file is there that is not Dewar's to change; 125 if
nothing could be written.";

/// Have Claude Code run its shell commands under Dewar.
#[derive(Debug, Args)]
#[command(after_help = CLAUDE_HELP)]
pub(super) struct ClaudeArgs {
    /// The settings of the user instead of the project's
    #[arg(long)]
    user: bool,

    #[command(flatten)]
    what: WhatArgs,
}

const CODEX_HELP: &str = "\
Examples:
  dewar init codex --print         what would be written, and where
  dewar init codex                 then: codex --profile dewar
  dewar init codex --undo          takes it back

Writes a profile of Codex's, in which a hook rewrites each shell command to `dewar init exec
PROFILE PROJECT COMMAND`, which is `dewar run -p PROFILE -w PROJECT -- bash -c COMMAND`, and a
rule by which just that, with no other options, runs outside of Codex's own sandbox, as one
sandbox cannot be made in the other. Without --profile dewar, nothing is rewritten. Codex asks
once whether it may run the hook. Agree, or use --undo: until then, commands stay in its own
sandbox, but for one that the agent itself writes as `dewar init exec PROFILE DIRECTORY
COMMAND`, with a directory of its choice below your home or elsewhere, not the home or one
above.

Exit status: 0; 2 for wrong use, or if a file is there that is not Dewar's to change; 125 if
nothing could be written.";

/// Have Codex run its shell commands under Dewar.
#[derive(Debug, Args)]
#[command(after_help = CODEX_HELP)]
pub(super) struct CodexArgs {
    #[command(flatten)]
    what: WhatArgs,
}

#[derive(Debug, Args)]
struct WhatArgs {
    /// The profile of the commands: the name of a shipped one, or a file
    #[arg(short, long, value_name = "PROFILE", default_value = "workspace+guarded")]
    profile: String,

    /// Print what would be written, and write nothing
    #[arg(long, conflicts_with = "undo")]
    print: bool,

    /// Take the last change of the file back
    #[arg(long)]
    undo: bool,
}

/// Carries out `dewar init claude`.
pub(super) fn claude(args: &ClaudeArgs) -> anyhow::Result<()> {
    let file = match args.user {
        true => home()?.join(".claude/settings.json"),
        false => PathBuf::from(".claude/settings.local.json"),
    };
    let own = [".claude/settings.json", ".claude/settings.local.json"];
    // A link of the project's would lead to another's settings, or to what no guard is about.
    let here = machine::real(Path::new("."));
    let real = machine::real(&file);
    if !args.user && real != here.join(&file) {
        bail!(Usage(format!(
            "`{}` leads to `{}`, so what is written there is not this project's alone: remove the link, or use --user",
            file.display(),
            real.display()
        )));
    }
    let program = program()?;
    write(&args.what, (&file, &own), |before, profile| claude_settings(before, &program, profile))
}

/// Carries out `dewar init codex`.
pub(super) fn codex(args: &CodexArgs) -> anyhow::Result<()> {
    let directory = match std::env::var_os("CODEX_HOME") {
        Some(directory) => PathBuf::from(directory),
        None => home()?.join(".codex"),
    };
    let (file, rules) = (directory.join("dewar.config.toml"), directory.join("rules/dewar.rules"));
    let own = [".codex/config.toml"];
    // First what leads out of its sandbox: without the hook, nobody uses that.
    let program = program()?;
    write(&args.what, (&rules, &own), |before, profile| codex_rules(before, &program, profile))?;
    write(&args.what, (&file, &own), |before, profile| codex_settings(before, &program, profile))
}

/// This program, as the hook calls it.
pub(super) fn program() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let program = program.to_str().context("Dewar lies at a path that is not Unicode")?;
    Ok(program.to_owned())
}

/// The words that a command under Dewar begins with. Then come its workspace and the command, and
/// no options: an agent's rule lets out of its sandbox whatever begins so.
pub(super) fn beginning<'a>(program: &'a str, profile: &'a str) -> [&'a str; 4] {
    [program, "init", "exec", profile]
}

fn home() -> anyhow::Result<PathBuf> {
    std::env::home_dir().context("cannot tell your home directory")
}

/// Writes `settings` of the file as it is and the profile; `own` are the names by which the agent
/// finds settings in a project.
fn write(
    what: &WhatArgs,
    (file, own): (&Path, &[&str]),
    settings: impl FnOnce(&str, &str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let shown = file.display();
    if what.undo {
        let is_left = undo(file)?;
        let done = if is_left { "is as it was" } else { "is gone, as it was before" };
        return Ok(output::print(format!("{shown} {done}\n").as_bytes())?);
    }
    let profile = &profile(&what.profile)?;
    if let Some(odd) = profile.chars().find(|c| !(c.is_alphanumeric() || "/._-+@".contains(*c))) {
        bail!(Usage(format!("a profile in settings cannot have {odd:?} in its name")));
    }
    // Else each command of the agent would fail, and say so to nobody who could mend it.
    profile::Documents::read(&profile::Source::from_argument(profile))?;
    let target = ProfileFile::at(file)?;
    let before = target.before.clone().unwrap_or_default();
    insist_on_guard(profile, own)?;
    let text = settings(&before, profile).with_context(|| format!("`{shown}` was not changed"))?;
    if what.print {
        return Ok(output::print(format!("{shown}:\n{text}").as_bytes())?);
    }
    if text == before {
        return Ok(output::print(format!("{shown} has it already\n").as_bytes())?);
    }
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))
        .with_context(|| format!("cannot make the directory of `{shown}`"))?;
    target.write(&text, Author::Init)?;
    let message = format!("{shown} written; the same with --undo takes it back\n");
    Ok(output::print(message.as_bytes())?)
}

/// The profile that `argument` names, wherever the agent is by then: a relative name would be that
/// of another file in each directory, and the commands could make one.
fn profile(argument: &str) -> anyhow::Result<String> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    // Of several, the last may be a file.
    let (before, last) = match (file_of(argument, &here), argument.rsplit_once('+')) {
        (None, Some((before, last))) => (format!("{before}+"), last),
        _ => (String::new(), argument),
    };
    let Some(file) = file_of(last, &here) else { return Ok(argument.to_owned()) };
    let real = file.canonicalize();
    let real = real.map_err(|error| Usage(format!("cannot read profile `{last}`: {error}")))?;
    Ok(before + &real.to_string_lossy())
}

/// Refuses a profile under which the commands could change the agent's settings, and with them the
/// hook that holds the next command, or have the agent run others.
fn insist_on_guard(profile: &str, own: &[&str]) -> anyhow::Result<()> {
    let variables = machine::variables(None, "/tmp".into())?;
    let fitting = of_profile(profile, &variables.workspace, variables.clone())?;
    let compiled = fitting.compile(&[])?;
    let judge = Judge::new(&compiled)?;
    for domain in &compiled.domains {
        let writes =
            |name: &&&str| judge.rights(&variables.workspace.join(name), Some(&domain.name)).write;
        if let Some(name) = own.iter().find(writes) {
            bail!(Usage(format!(
                "under `{profile}` a command could write `{name}`, and so rewrite or leave out the hook, or have the agent \
                 run others outside: add the guard, as in `{profile}+guarded` or, in a file, files.guard = \"host-trusted\""
            )));
        }
    }
    Ok(())
}

/// What the hooks call. Where it fails, the agent runs nothing: exit status 2 says so to both. Its
/// path is whole: in `PATH`, directories of the project may come first, in which commands make
/// entries.
fn hook_command(program: &str, profile: &str) -> String {
    format!("{}{OURS}{profile} || exit 2", quoted(program))
}

/// How long Claude Code waits for the hook. After that it runs the command as it was: what keeps
/// the machine busy should not get there.
const HOOK_SECONDS: u32 = 600;

fn claude_settings(before: &str, program: &str, profile: &str) -> anyhow::Result<String> {
    let mut settings: Map<String, Value> = match before.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).context("it is no JSON object")?,
    };
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().context("`hooks` in it is no object")?;
    let groups = hooks.entry("PreToolUse").or_insert_with(|| json!([]));
    let groups = groups.as_array_mut().context("`hooks.PreToolUse` in it is no list")?;
    groups.retain(|group| !group.to_string().contains(OURS));
    // Of all tools: who knows which of them will have commands?
    groups.push(json!({
        "matcher": "*",
        "hooks": [{
            "type": "command",
            "command": hook_command(program, profile),
            "timeout": HOOK_SECONDS,
        }],
    }));
    let sandbox = settings.entry("sandbox").or_insert_with(|| json!({}));
    let sandbox = sandbox.as_object_mut().context("`sandbox` in it is no object")?;
    sandbox.insert("enabled".into(), json!(false));
    // What a project's settings could say otherwise, and what no hook sees.
    settings.insert("disableAllHooks".into(), json!(false));
    settings.insert("disableSkillShellExecution".into(), json!(true));
    Ok(serde_json::to_string_pretty(&settings)? + "\n")
}

fn codex_settings(before: &str, program: &str, profile: &str) -> anyhow::Result<String> {
    if !before.is_empty() && !before.contains(OURS) {
        bail!(Usage("a profile called `dewar` is there already, and is not Dewar's".into()));
    }
    let command = serde_json::to_string(&hook_command(program, profile))?;
    Ok(format!(
        "# Shell commands run under Dewar: `codex --profile dewar`. Written by `dewar init codex`.\n\
         # What the hook has not rewritten stays in this; rules/dewar.rules says what leaves it.\n\
         sandbox_mode = \"workspace-write\"\n\
         approval_policy = \"on-request\"\n\n\
         [[hooks.PreToolUse]]\n\
         matcher = \"^Bash$\"\n\n\
         [[hooks.PreToolUse.hooks]]\n\
         type = \"command\"\n\
         command = {command}\n"
    ))
}

/// The rule by which commands under Dewar, and these alone, run outside of Codex's sandbox.
fn codex_rules(before: &str, program: &str, profile: &str) -> anyhow::Result<String> {
    if !before.is_empty() && !before.contains("dewar init codex") {
        bail!(Usage("rules called `dewar` are there already, and are not Dewar's".into()));
    }
    let pattern = serde_json::to_string(&beginning(program, profile))?;
    Ok(format!(
        "# Commands under Dewar need no other sandbox. Written by `dewar init codex`.\n\
         prefix_rule(pattern = {pattern}, decision = \"allow\")\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_what_they_had_and_have_the_hook_once() {
        let before = r#"{"model": "opus", "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": []}],
            "Stop": []}, "sandbox": {"enabled": true, "network": {"x": 1}}}"#;
        let once = claude_settings(before, "/opt/de war/dewar", "agent").unwrap();
        assert_eq!(claude_settings(&once, "/opt/de war/dewar", "agent").unwrap(), once);
        let settings: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(settings["model"], "opus");
        assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "Edit");
        assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 2);
        // By no name that a command under Dewar could make in a directory of `PATH`.
        let command = &settings["hooks"]["PreToolUse"][1]["hooks"][0]["command"];
        assert_eq!(command, "'/opt/de war/dewar' init hook --profile agent || exit 2");
        assert_eq!(settings["sandbox"], json!({"enabled": false, "network": {"x": 1}}));
        assert_eq!(settings["disableAllHooks"], false);
        assert_eq!(settings["disableSkillShellExecution"], true);
        for broken in ["[]", "{", "{\"hooks\": 7}", "{\"hooks\": {\"PreToolUse\": {}}}"] {
            assert!(claude_settings(broken, "/d", "agent").is_err(), "{broken}");
        }
    }
}

//! `dewar init hook`: what the hooks of coding agents call before a tool runs.

use super::agents::{beginning, program};
use crate::{output, shell::quoted};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::io::Read as _;

/// The longest call of a tool that is rewritten.
const MOST_BYTES: u64 = 16 << 20;

/// Rewrite the call of a tool: what the hooks call.
#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The profile of the commands
    #[arg(short, long, value_name = "PROFILE")]
    profile: String,
}

/// Carries out `dewar init hook`: the call comes on standard input, its rewriting goes to standard
/// output; nothing for a tool that runs no command.
pub(super) fn hook(args: &HookArgs) -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut text).context("cannot read the call")?;
    let call: Value = serde_json::from_str(&text).context("the call is no JSON")?;
    // Claude Code says where the project is; Codex starts its hooks there. What the call says is
    // where the command is to start, which the agent chooses.
    let here = || std::env::current_dir().ok()?.into_os_string().into_string().ok();
    let workspace = std::env::var("CLAUDE_PROJECT_DIR").ok().or_else(here);
    match rewritten(&call, (&program()?, &args.profile), workspace.as_deref())? {
        Some(answer) => Ok(output::print((answer.to_string() + "\n").as_bytes())?),
        None => Ok(()),
    }
}

/// The tools whose `command` is one for a shell.
const SHELLS: [&str; 2] = ["Bash", "Monitor"];

/// The answer to a call of a shell: the same call of a command under Dewar, whose workspace is that
/// of the agent: a call may choose where its command starts. `None` for a call without a command.
fn rewritten(
    call: &Value,
    (program, profile): (&str, &str),
    workspace: Option<&str>,
) -> anyhow::Result<Option<Value>> {
    let mut input = call["tool_input"].as_object().context("a call without its input")?.clone();
    let tool = call["tool_name"].as_str().context("a call of no tool")?;
    // What a server for tools calls a command, it executes itself.
    if tool.starts_with("mcp__") || (tool != "Bash" && !input.contains_key("command")) {
        return Ok(None);
    }
    if !SHELLS.contains(&tool) {
        bail!("the tool {tool} has a command, and is not known: update Dewar");
    }
    let command = input.get("command").and_then(Value::as_str).context("a call of no command")?;
    let workspace = workspace.filter(|path| path.starts_with('/'));
    let workspace = workspace.context("a call that does not say where the project is")?;
    let around = beginning(program, profile).into_iter().chain([workspace, command]);
    let line: Vec<String> = around.map(quoted).collect();
    input.insert("command".into(), json!(line.join(" ")));
    // Without an answer of ours, an agent that knows no rewriting would run the command as it was.
    let bypasses = call["permission_mode"] == "bypassPermissions";
    let (decision, why) = match call["turn_id"].is_null() && !bypasses {
        true => ("ask", "; it is asked about but in mode bypassPermissions"),
        false => ("allow", ""),
    };
    Ok(Some(json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": format!("runs under Dewar, profile {profile}{why}"),
        "updatedInput": input,
    }})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_rewritten_whole_whatever_it_holds() {
        let command = "echo 'a b' \"$HOME\" `id`; exit 3 # '\n; rm -rf /";
        let call = json!({ "tool_name": "Bash", "tool_input":
            { "command": command, "description": "d", "timeout": 7 } });
        let by = ("/opt/de war/dewar", "agent");
        let answer = rewritten(&call, by, Some("/home/me/it's")).unwrap().unwrap();
        let input = &answer["hookSpecificOutput"]["updatedInput"];
        assert_eq!(
            (input["description"].as_str(), input["timeout"].as_u64()),
            (Some("d"), Some(7))
        );
        let line = input["command"].as_str().unwrap();
        let line = line.replacen("'/opt/de war/dewar'", "printf '%s\\n'", 1);
        let shell = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8(shell.stdout).unwrap();
        let before = "init\nexec\nagent\n/home/me/it's";
        assert_eq!(said, format!("{before}\n{command}\n"));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask");
    }

    #[test]
    fn what_has_a_command_is_rewritten_or_refused_and_nothing_else_is_touched() {
        let call = |tool: &str, input: Value| json!({"tool_name": tool, "tool_input": input});
        let command = json!({"command": "id"});
        let answer = |call: &Value| rewritten(call, ("/d", "agent"), Some("/w"));
        for tool in ["Bash", "Monitor"] {
            assert!(answer(&call(tool, command.clone())).unwrap().is_some(), "{tool}");
        }
        for (tool, input) in [
            ("Read", json!({"file_path": "/x"})),
            ("Monitor", json!({"ws": "wss://x"})),
            ("mcp__db__ask", command.clone()),
        ] {
            assert!(answer(&call(tool, input)).unwrap().is_none(), "{tool}");
        }
        for refused in [
            json!({}),
            call("Bash", json!({})),
            call("Bash", json!({"command": 7})),
            call("PowerShell", command.clone()),
            call("Terminal", json!({"command": ["id"]})),
            json!({"tool_input": command}),
        ] {
            assert!(answer(&refused).is_err(), "{refused}");
        }
        for nowhere in [None, Some("w"), Some("")] {
            assert!(rewritten(&call("Bash", command.clone()), ("/d", "agent"), nowhere).is_err());
        }
    }
}

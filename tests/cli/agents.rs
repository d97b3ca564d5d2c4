//! The real coding agents, against a stand-in for their service: they start, edit a file and call
//! their tool, under their profile and with the hooks of `dewar init`.

use crate::account::{Account, accounts, attack, has};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
};

/// What the service answers: the events of a stream, by what came.
type Answer = fn(&str, &str) -> String;

/// A service on loopback that has the agent do what an answer says. It ends with the test.
struct Service {
    port: u16,
}

impl Service {
    fn start(answer: Answer, work: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let work = work.clone();
                thread::spawn(move || serve(answer, &work, stream));
            }
        });
        Self { port }
    }
}

fn serve(answer: Answer, work: &str, stream: TcpStream) {
    let Ok(mut write) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
            let line = head[start..].to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = Vec::new();
        if reader.by_ref().take(length).read_to_end(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8_lossy(&body);
        let is_asked = head.starts_with("POST") && body.contains("\"tools\"");
        let (status, kind, text) = match is_asked {
            true => ("200 OK", "text/event-stream", answer(&body, work)),
            // Gemini CLI asks for minutes where it takes an answer for none.
            false if head.contains(":generateContent") => {
                ("400 No", "application/json", "{}".into())
            }
            false => ("200 OK", "application/json", "{}".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        if write.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

fn events(all: &[serde_json::Value]) -> String {
    let one = |event: &serde_json::Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    };
    all.iter().map(one).collect()
}

/// The command that each of them is told to run.
const COMMAND: &str = "cat edited.txt > said; bash ./tool.sh >> said 2>&1; echo 'it has' \"run\"";

/// Claude Code's service: a file, a command, and the end.
fn messages(body: &str, work: &str) -> String {
    use serde_json::json;
    let file = json!({ "file_path": format!("{work}/edited.txt"), "content": "edited\n" });
    let command = json!({ "command": COMMAND, "description": "runs the tool" });
    turn(body, &[("Write", file), ("Bash", command)])
}

/// The same for other ways to a shell, in the end with a directory of the agent's choice.
fn other_ways(body: &str, work: &str) -> String {
    use serde_json::json;
    let beside = "(echo monitor; pwd) > ../OUTSIDE; echo \"inside $DEWAR_RUN\" > watched";
    let monitor = json!({ "description": "x", "timeout_ms": 20_000, "command": beside });
    let another = json!({ "command": format!("cd {work}/..; echo x > OUTSIDE; sleep 1") });
    turn(body, &[("Skill", json!({ "skill": "build" })), ("Monitor", monitor), ("Bash", another)])
}

/// The next of these calls, by how many were made.
fn turn(body: &str, calls: &[(&str, serde_json::Value)]) -> String {
    use serde_json::json;
    let made = body.matches("\"tool_result\"").count();
    let (name, input) = calls.get(made).cloned().unwrap_or(("", json!(null)));
    let (block, delta, stop) = match name {
        "" => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "done" }),
            "end_turn",
        ),
        name => (
            json!({ "type": "tool_use", "id": format!("t{}", body.len()), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
    };
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
    events(&[
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ])
}

/// Codex's service: a command that makes the file, too, and the end.
fn responses(body: &str, _: &str) -> String {
    call(body, &serde_json::json!({ "cmd": format!("echo edited > edited.txt; {COMMAND}") }))
}

/// The same with a directory of the agent's choice.
fn elsewhere(body: &str, work: &str) -> String {
    let above = format!("{work}/..");
    call(body, &serde_json::json!({ "cmd": "echo x > OUTSIDE", "workdir": above }))
}

/// A command of Codex's, and the end.
fn call(body: &str, arguments: &serde_json::Value) -> String {
    use serde_json::json;
    let item = match body.contains("function_call_output") {
        false => {
            json!({ "type": "function_call", "id": "f", "call_id": "c", "name": "exec_command",
            "arguments": arguments.to_string() })
        }
        true => json!({ "type": "message", "id": "m", "role": "assistant",
            "content": [{ "type": "output_text", "text": "done" }] }),
    };
    let usage = json!({ "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
        "output_tokens_details": null, "total_tokens": 2 });
    events(&[
        json!({ "type": "response.created", "response": { "id": "r" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "r", "usage": usage } }),
    ])
}

/// Gemini CLI's service: the same as Claude Code's, in its words; other questions get nothing.
fn candidates(body: &str, work: &str) -> String {
    use serde_json::json;
    let call = |name: &str, args| json!({ "functionCall": { "name": name, "args": args } });
    let part = match body.matches("\"functionResponse\"").count() {
        0 => {
            let path = format!("{work}/edited.txt");
            call("write_file", json!({ "file_path": path, "content": "edited\n" }))
        }
        1 => {
            call("run_shell_command", json!({ "command": COMMAND, "description": "runs the tool" }))
        }
        _ => json!({ "text": "done" }),
    };
    let answer = json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
    });
    format!("data: {answer}\n\n")
}

/// A service, and an account whose agent asks it.
fn prepare(account: &mut Account, answer: Answer) -> Service {
    let service = Service::start(answer, account.path("work").display().to_string());
    let programs = account.programs().display().to_string();
    account.set("PATH", &format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
    account.set("ANTHROPIC_BASE_URL", &format!("http://127.0.0.1:{}", service.port));
    account.set("ANTHROPIC_API_KEY", "none");
    let provider = format!(
        "model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nname = \"p\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\nwire_api = \"responses\"\n",
        service.port
    );
    account.write(".codex/config.toml", &provider);
    account.set("GOOGLE_GEMINI_BASE_URL", &format!("http://127.0.0.1:{}", service.port));
    account.set("GEMINI_API_KEY", "none");
    account.set("GEMINI_CLI_TRUST_WORKSPACE", "true");
    let by_key = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#;
    account.write(".gemini/settings.json", by_key);
    account.write("work/tool.sh", &attack(service.port));
    for name in ["claude", "codex", "gemini"] {
        let port = service.port;
        let own = format!("extends = '{name}'\n[network]\nconnect = ['127.0.0.1:{port}']\n");
        account.write(&format!("{name}.toml"), &own);
    }
    account.give();
    service
}

/// What the tool has said.
fn said(account: &Account) -> String {
    fs::read_to_string(account.path("work/said")).unwrap_or_default()
}

fn came(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

const CLAUDE: [&str; 7] =
    ["claude", "-p", "go", "--allowedTools", "Write", "Bash", "--permission-mode"];
const CODEX: [&str; 4] = ["codex", "exec", "--skip-git-repo-check", "go"];

#[test]
fn claude_code_edits_a_file_and_its_tool_reaches_nothing() {
    if !has("claude") {
        return;
    }
    accounts(|mut account| {
        let _service = prepare(&mut account, messages);
        let came = account.run("../claude.toml", &[&CLAUDE[..], &["acceptEdits"]].concat());
        let said = said(&account);
        assert!(came.out.contains("done") && came.status == 0, "{}{}", came.out, came.err);
        assert!(said.starts_with("edited\n") && said.contains("tried"), "{said}{}", came.err);
        assert!(!said.contains("reached") && !said.contains("planted"), "{said}");
        assert!(account.path(".claude.json").exists(), "it keeps its settings: {}", came.err);
    });
}

#[test]
fn codex_edits_a_file_and_its_tool_reaches_nothing() {
    if !has("codex") {
        return;
    }
    accounts(|mut account| {
        let _service = prepare(&mut account, responses);
        let own_sandbox_off = ["--dangerously-bypass-approvals-and-sandbox"];
        let came = account.run("../codex.toml", &[&CODEX[..], &own_sandbox_off].concat());
        let said = said(&account);
        assert!(came.out.contains("done") && came.status == 0, "{}{}", came.out, came.err);
        assert!(said.starts_with("edited\n") && said.contains("tried"), "{said}{}", came.err);
        assert!(!said.contains("reached") && !said.contains("planted"), "{said}");
    });
}

#[test]
fn gemini_cli_edits_a_file_and_its_tool_reaches_nothing() {
    if !has("gemini") {
        return;
    }
    accounts(|mut account| {
        let _service = prepare(&mut account, candidates);
        let came = account.run("../gemini.toml", &["gemini", "-p", "go", "--yolo"]);
        let said = said(&account);
        assert!(came.out.contains("done") && came.status == 0, "{}{}", came.out, came.err);
        assert!(said.starts_with("edited\n") && said.contains("tried"), "{said}{}", came.err);
        assert!(!said.contains("reached") && !said.contains("planted"), "{said}");
    });
}

/// An ordinary user: Claude Code refuses to bypass its rules for root.
fn ordinary() -> Account {
    Account::new(rustix::process::geteuid().is_root().then_some(61_235))
}

#[test]
fn claude_code_runs_its_commands_by_the_hook_that_was_written_for_it() {
    if !has("claude") {
        return;
    }
    let mut account = ordinary();
    let _service = prepare(&mut account, messages);
    assert_eq!(account.dewar(&["init", "claude"]).status, 0);
    // Without anybody to ask, commands do not run.
    let refused = came(&mut account.plain(&[&CLAUDE[..], &["acceptEdits"]].concat()));
    assert!(refused.contains("done") && said(&account).is_empty(), "{refused}");
    let ran = came(&mut account.plain(&[&CLAUDE[..], &["bypassPermissions"]].concat()));
    let said = said(&account);
    assert!(said.starts_with("edited\n") && said.contains("tried"), "{said}{ran}");
    assert!(!said.contains("reached") && !said.contains("planted"), "{said}");
}

#[test]
fn claude_code_has_no_other_way_to_a_shell() {
    if !has("claude") {
        return;
    }
    let mut account = ordinary();
    let _service = prepare(&mut account, other_ways);
    let skill = "---\nname: build\ndescription: builds\n---\nState: !`echo skill > ../OUTSIDE`\n";
    account.write("work/.claude/skills/build/SKILL.md", skill);
    account.write("work/.claude/settings.json", r#"{"disableAllHooks": true}"#);
    account.give();
    assert_eq!(account.dewar(&["init", "claude"]).status, 0);
    let ran = came(&mut account.plain(&[&CLAUDE[..], &["bypassPermissions"]].concat()));
    assert!(ran.contains("done"), "{ran}");
    let outside = fs::read_to_string(account.path("OUTSIDE"));
    assert!(outside.is_err(), "{outside:?} {ran}");
    let watched = fs::read_to_string(account.path("work/watched")).unwrap_or_default();
    assert!(watched.trim_end().len() > "inside ".len(), "{watched}{ran}");
}

#[test]
fn codex_does_not_choose_what_its_commands_may_change() {
    if !has("codex") {
        return;
    }
    let mut account = ordinary();
    let _service = prepare(&mut account, elsewhere);
    assert_eq!(account.dewar(&["init", "codex"]).status, 0);
    let agreed = ["--profile", "dewar", "--dangerously-bypass-hook-trust"];
    let ran = came(&mut account.plain(&[&CODEX[..], &agreed].concat()));
    assert!(ran.contains(" init exec ") && ran.contains("done"), "{ran}");
    assert!(!account.path("OUTSIDE").exists(), "{ran}");
}

#[test]
fn codex_runs_its_commands_by_the_hook_that_was_written_for_it() {
    if !has("codex") {
        return;
    }
    let mut account = ordinary();
    let _service = prepare(&mut account, responses);
    let written = account.dewar(&["init", "codex"]);
    assert_eq!(written.status, 0, "{}", written.err);
    let profile = ["--profile", "dewar"];
    // A hook that nobody has agreed to is not called: then its own sandbox holds.
    let ran = came(&mut account.plain(&[&CODEX[..], &profile].concat()));
    assert!(!said(&account).contains("reached"), "{}{ran}", said(&account));
    let _ = fs::remove_file(account.path("work/said"));
    let agreed = [&CODEX[..], &profile, &["--dangerously-bypass-hook-trust"]].concat();
    let ran = came(&mut account.plain(&agreed));
    let said = said(&account);
    assert!(said.starts_with("edited\n") && said.contains("tried"), "{said}{ran}");
    assert!(!said.contains("reached") && !said.contains("planted"), "{said}");
    let undone = account.dewar(&["init", "codex", "--undo"]);
    assert_eq!(undone.status, 0, "{}", undone.err);
    assert!(!account.path(".codex/dewar.config.toml").exists());
    assert!(!account.path(".codex/rules/dewar.rules").exists());
}

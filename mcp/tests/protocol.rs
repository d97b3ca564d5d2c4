//! The real protocol: JSON-RPC lines on standard input and output.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A client, and a directory with a program `dewar` that says what it was called with.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join("dewar");
    fs::write(
        &program,
        "#!/bin/sh\n[ \"$2\" != bad ] || { echo no such run >&2; exit 1; }\n\
         [ \"$3\" != /a/key ] || { echo 'line 1: the secret key' >&2; exit 1; }\necho called \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_dewar-mcp"), directory.join("dewar-mcp")).unwrap();
    directory
}

impl Client {
    fn new(directory: &Path, denials: Option<&str>) -> Self {
        let mut command = Command::new(directory.join("dewar-mcp"));
        command.env_remove("DEWAR_DENIALS").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(denials.map(|path| ("DEWAR_DENIALS", path)));
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        let mut client = Self { child, input, output, last: 0 };
        let hello = client.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "dewar", "{hello}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// What a tool says, and whether that is a mistake.
    fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, answer["result"]["isError"] == true || !answer["error"].is_null())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input ends the server.
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success() || std::thread::panicking(), "{status}");
    }
}

#[test]
fn the_tools_are_listed_and_say_what_dewar_says() {
    let mut client = Client::new(&directory("listed"), None);
    let tools = client.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["explain", "propose", "show_profile"]);
    for (name, arguments, want) in [
        ("explain", json!({}), "called explain\n"),
        ("explain", json!({ "run": "ci" }), "called explain ci\n"),
        ("show_profile", json!({}), "called policy show workspace\n"),
        ("show_profile", json!({ "profile": "agent" }), "called policy show agent\n"),
    ] {
        assert_eq!(client.call(name, arguments), (want.to_owned(), false));
    }
}

#[test]
fn mistakes_are_said_and_no_argument_becomes_an_option() {
    let mut client = Client::new(&directory("mistakes"), None);
    for (name, arguments) in [
        ("explain", json!({ "run": "bad" })),
        ("explain", json!({ "run": "--json" })),
        ("explain", json!({ "run": 7 })),
        ("show_profile", json!({ "profile": "" })),
        ("propose", json!({})),
        ("propose", json!({ "lines": "files.read = ['/x']" })),
        ("no_such_tool", json!({})),
    ] {
        let (said, is_mistake) = client.call(name, arguments.clone());
        assert!(is_mistake && !said.contains("called"), "{name} {arguments}: {said}");
    }
}

#[test]
fn nothing_is_told_of_a_file_that_is_no_profile() {
    let mut client = Client::new(&directory("no-profile"), None);
    let (said, is_mistake) = client.call("show_profile", json!({ "profile": "/a/key" }));
    assert!(is_mistake && said.contains("/a/key") && !said.contains("secret"), "{said}");
}

#[test]
fn in_a_sandbox_a_proposal_goes_to_the_run() {
    let directory = directory("inside");
    let path = directory.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        stream
            .write_all(b"{\"asked\":3}\n{\"answered\":{\"asked\":3,\"answer\":\"run\"}}\n")
            .unwrap();
        line
    });
    let mut client = Client::new(&directory, path.to_str());
    let (said, is_mistake) = client.call("propose", json!({ "lines": "files.read = ['/x']" }));
    assert!(said.contains("\"answer\":\"run\"") && !is_mistake, "{said}");
    assert_eq!(served.join().unwrap(), "{\"propose\":\"files.read = ['/x']\"}\n");
}

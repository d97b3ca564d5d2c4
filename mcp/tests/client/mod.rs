//! A client of the server, and what stands for `dewar` beside it.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// Held where a program is written or started: who is started meanwhile would hold what is being
/// written, which could not be executed then.
static WRITES: Mutex<()> = Mutex::new(());

/// A client.
pub struct Client {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    /// The server was killed.
    pub killed: bool,
}

/// A directory with the server, and with a program `dewar` that does what `script` says.
pub fn directory(name: &str, script: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let _alone = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    let program = directory.join("dewar");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_dewar-mcp"), directory.join("dewar-mcp")).unwrap();
    directory
}

pub fn spawn(command: &mut Command) -> Child {
    let _alone = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

impl Client {
    pub fn new(directory: &Path, denials: Option<&str>) -> Self {
        let mut command = Command::new(directory.join("dewar-mcp"));
        command.env_remove("DEWAR_DENIALS").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(denials.map(|path| ("DEWAR_DENIALS", path)));
        let mut child = spawn(&mut command);
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        let mut client = Self { child, input, output, last: 0, killed: false };
        let hello = client.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "dewar", "{hello}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    /// Writes a line, whatever it is.
    pub fn write(&mut self, line: &[u8]) {
        self.input.as_mut().unwrap().write_all(&[line, b"\n"].concat()).unwrap();
    }

    /// What the server says next.
    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
        serde_json::from_str(&line).unwrap()
    }

    /// Asks, and goes on without the answer; the number of the question.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to the question `id`.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let answer = self.hear();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// What a tool says, and whether that is a mistake.
    pub fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let id = self.begin("tools/call", json!({ "name": name, "arguments": arguments }));
        self.said(id)
    }

    /// The same for a call that has begun.
    pub fn said(&mut self, id: u64) -> (String, bool) {
        let answer = self.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, answer["result"]["isError"] == true || !answer["error"].is_null())
    }

    /// The end of its input ends the server.
    pub fn leave(&mut self) {
        drop(self.input.take());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
        let status = self.child.wait().unwrap();
        assert!(status.success() || self.killed || std::thread::panicking(), "{status}");
    }
}

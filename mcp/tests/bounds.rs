//! Calls are bounded: in time, in what is kept of them, and by the life of the server.

mod client;

use client::{Client, directory};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Writes its number down, says something, and stays, with a child.
const STAYS: &str = "echo $$ >\"${0%/*}/pid\"; echo begun; echo why >&2; sleep 1000";
/// The same, with a child in the background, whose number it writes down, too.
const STAYS_BESIDE: &str =
    "trap '' TERM; sleep 1000 & echo $! >\"${0%/*}/beside\"; echo $$ >\"${0%/*}/pid\"; wait";
/// It leaves another behind, in a session of its own, that has lost its parent; and stays.
const LEAVES: &str =
    "(setsid sh -c 'echo $$ >\"${0%/*}/apart\"; exec sleep 1000' \"$0\" >/dev/null 2>&1 &)
while ! [ -s \"${0%/*}/apart\" ]; do sleep 0.01; done; echo $$ >\"${0%/*}/pid\"; echo begun; ";
/// The same, whoever asks it to end.
const STAYS_FOR_EVER: &str = "trap '' TERM; echo $$ >\"${0%/*}/pid\"; echo begun; exec sleep 1000";

/// Whether a process is there, and has not ended.
fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Waits for `is`, no longer than any limit of the server's own.
fn wait(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The number of the program that was called, once it has begun.
fn called(directory: &Path) -> String {
    let read = || fs::read_to_string(directory.join("pid")).unwrap_or_default();
    wait("nothing was called", || read().ends_with('\n'));
    read().trim().to_owned()
}

fn explain(seconds: u64) -> Value {
    json!({ "name": "explain", "arguments": { "seconds": seconds } })
}

#[test]
fn a_call_ends_at_its_limit_of_time_and_what_it_said_is_told() {
    let directory = directory("limit", STAYS);
    let mut client = Client::new(&directory, None);
    let (said, is_mistake) = client.call("explain", json!({ "seconds": 1 }));
    assert!(is_mistake && said.contains("ended at its limit of 1 s, by SIGTERM"), "{said}");
    assert!(said.contains("begun\n") && said.contains("why\n"), "{said}");
    assert!(!lives(&called(&directory)));
    // What a file holds that is no profile is no agent's business at the limit either.
    let (said, is_mistake) = client.call("show_profile", json!({ "seconds": 1 }));
    assert!(is_mistake && said.contains("limit of 1 s") && !said.contains("why"), "{said}");
}

#[test]
fn who_does_not_end_when_asked_is_killed() {
    let directory = directory("killed", STAYS_FOR_EVER);
    let mut client = Client::new(&directory, None);
    let (said, is_mistake) = client.call("explain", json!({ "seconds": 1 }));
    assert!(is_mistake && said.contains("limit of 1 s, by SIGKILL"), "{said}");
    assert!(said.contains("begun\n") && !lives(&called(&directory)), "{said}");
}

#[test]
fn an_output_without_end_neither_hangs_nor_is_kept_whole() {
    let fills = "head -c 3000000 /dev/zero | tr '\\0' a; echo end";
    for (name, script) in [
        ("bytes", format!("echo begun; {fills}")),
        ("bytes-of-mistakes", format!("{{ echo begun; {fills}; }} >&2; exit 1")),
    ] {
        let mut client = Client::new(&directory(name, &script), None);
        let (said, is_mistake) = client.call("explain", json!({}));
        assert_eq!(is_mistake, name != "bytes");
        assert!(said.starts_with("begun\naaa") && said.ends_with("aaaend\n"));
        assert!(said.contains("\n[2737866 bytes left out]\n"), "{}", said.len());
        assert!(said.len() < 300_000, "{}", said.len());
    }
    let mut client = Client::new(&directory("endless", "yes"), None);
    let (said, _) = client.call("explain", json!({ "seconds": 1 }));
    assert!(said.contains("limit of 1 s") && said.len() < 300_000, "{}", said.len());
}

#[test]
fn no_limit_is_longer_than_an_hour() {
    let mut client = Client::new(&directory("hour", "echo called"), None);
    for seconds in [0, 3601, u64::MAX] {
        let (said, is_mistake) = client.call("explain", json!({ "seconds": seconds }));
        assert!(is_mistake && said.contains("from 1 to 3600"), "{said}");
    }
    assert!(!client.call("explain", json!({ "seconds": 3600 })).1);
    let tools = client.ask("tools/list", json!({}));
    for tool in tools["result"]["tools"].as_array().unwrap() {
        let seconds = &tool["inputSchema"]["properties"]["seconds"];
        assert!(seconds["minimum"] == 1 && seconds["maximum"] == 3600, "{tool}");
    }
}

#[test]
fn what_was_called_ends_with_the_server_however_that_ends() {
    let killed = directory("server-killed", STAYS_FOR_EVER);
    let mut client = Client::new(&killed, None);
    client.begin("tools/call", explain(100));
    let pid = called(&killed);
    client.child.kill().unwrap();
    client.killed = true;
    wait("it outlives a server that was killed", || !lives(&pid));

    let left = directory("server-left", STAYS);
    let mut client = Client::new(&left, None);
    client.begin("tools/call", explain(100));
    let pid = called(&left);
    client.leave();
    wait("it outlives a server that was left", || !lives(&pid));
}

#[test]
fn what_a_call_has_started_ends_with_the_server_though_that_is_killed() {
    let directory = directory("beside", STAYS_BESIDE);
    let mut client = Client::new(&directory, None);
    client.begin("tools/call", explain(100));
    let pid = called(&directory);
    let beside = fs::read_to_string(directory.join("beside")).unwrap();
    assert!(lives(beside.trim()));
    client.child.kill().unwrap();
    client.killed = true;
    wait("it outlives a server that was killed", || !lives(&pid) && !lives(beside.trim()));
}

#[test]
fn what_has_left_its_group_and_its_parent_ends_with_the_call_and_with_the_server() {
    type How = fn(&mut Client, u64);
    let stays = format!("{LEAVES} exec sleep 1000");
    let ways: [(&str, &str, How); 4] = [
        ("apart-done", LEAVES, |client, id| {
            assert_eq!(client.said(id), ("begun\n".to_owned(), false));
        }),
        ("apart-limit", &stays, |client, id| assert!(client.said(id).1)),
        ("apart-cancelled", &stays, |client, id| {
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": id } }));
        }),
        ("apart-killed", &stays, |client, _| {
            client.child.kill().unwrap();
            client.killed = true;
        }),
    ];
    for (name, script, end) in ways {
        let directory = directory(name, script);
        let mut client = Client::new(&directory, None);
        let id = client.begin("tools/call", explain(if name == "apart-limit" { 2 } else { 100 }));
        let pid = called(&directory);
        let apart = fs::read_to_string(directory.join("apart")).unwrap();
        end(&mut client, id);
        wait(name, || !lives(&pid) && !lives(apart.trim()));
    }
}

#[test]
fn a_call_that_is_cancelled_ends() {
    let directory = directory("cancelled", STAYS);
    let mut client = Client::new(&directory, None);
    let id = client.begin("tools/call", explain(100));
    let pid = called(&directory);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": "enough" } }));
    wait("it goes on though it was cancelled", || !lives(&pid));
    // The server goes on.
    assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn a_run_that_does_not_answer_is_left_at_the_limit_and_when_it_is_cancelled() {
    let directory = directory("silent", "");
    let path = directory.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::new(&directory, path.to_str());
    let arguments = json!({ "lines": "files.read = ['/x']", "seconds": 1 });
    let id = client.begin("tools/call", json!({ "name": "propose", "arguments": arguments }));
    let (mut asked, _) = listener.accept().unwrap();
    asked.write_all(b"{\"asked\":3}\n").unwrap();
    let (said, is_mistake) = client.said(id);
    assert!(is_mistake && said.contains("not answered within 1 s"), "{said}");
    assert!(said.contains("{\"asked\":3}"), "{said}");

    let id = client.begin("tools/call", explain(100));
    let (left, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(left).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{\"denials\":true}");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id } }));
    assert!(lines.next().is_none());
}

#[test]
fn eight_calls_are_under_way_at_most() {
    let mut client = Client::new(&directory("many", "sleep 2; echo called"), None);
    let all: Vec<u64> = (0..9).map(|_| client.begin("tools/call", explain(100))).collect();
    // The one too many is answered first.
    let (said, is_mistake) = client.said(all[8]);
    assert!(is_mistake && said.contains("8 calls are under way"), "{said}");
    assert_eq!(client.said(all[0]), ("called\n".to_owned(), false));
}

#[test]
fn the_word_by_which_the_server_calls_itself_is_for_it_alone() {
    let directory = directory("word", "echo called");
    for words in [&["--call"][..], &["--call", "explain"]] {
        let mut server = Command::new(directory.join("dewar-mcp"));
        server.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = client::spawn(&mut server).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}

/// A server whose client writes `line` as often as it is taken, and reads nothing: the server, what
/// the client holds, and how often it was taken.
fn unread(name: &str, line: &str) -> (Child, UnixStream, ChildStdout, usize) {
    let (mut input, theirs) = UnixStream::pair().unwrap();
    let mut server = Command::new(directory(name, "").join("dewar-mcp"));
    server.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped());
    let mut server = client::spawn(&mut server);
    // The pipe's other end stays with the test, and is not read.
    let output = server.stdout.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    input.write_all(format!("{hello}\n").as_bytes()).unwrap();
    input.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let line = |id: &usize| line.replace("ID", &id.to_string());
    let taken = (1..MANY).take_while(|id| input.write_all(line(id).as_bytes()).is_ok()).count();
    (server, input, output, taken)
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"ping\"}\n";
const MANY: usize = 50_000;

#[test]
fn who_reads_no_answers_is_not_heard_and_ends_the_server_by_going() {
    for (name, line) in [("unread", PING), ("unread-mistakes", "[\n")] {
        let (mut server, input, output, taken) = unread(name, line);
        let kibibytes = |key: &str| {
            let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_end_matches("kB").trim().parse::<u64>().unwrap()
        };
        assert!(name != "unread" || taken < MANY / 2, "{taken} requests were taken");
        let most = kibibytes("VmHWM:");
        assert!(most < 64 << 10, "{most} KiB");
        drop(input);
        wait("it stays though nobody is there", || server.try_wait().unwrap().is_some());
        drop(output);
    }
}

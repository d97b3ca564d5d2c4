//! The real protocol: JSON-RPC lines on standard input and output.

mod client;

use client::{Client, directory};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixListener,
};

/// Says what it was called with.
const SAYS: &str = "[ \"$2\" != bad ] || { echo no such run >&2; exit 1; }
[ \"$3\" != /a/key ] || { echo 'line 1: the secret key' >&2; exit 1; }
echo called \"$@\"";

#[test]
fn the_tools_are_listed_and_say_what_dewar_says() {
    let mut client = Client::new(&directory("listed", SAYS), None);
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
    let mut client = Client::new(&directory("mistakes", SAYS), None);
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

/// Half a character is no JSON, nor is what else cannot be parsed.
#[test]
fn what_is_no_json_is_answered_and_the_server_goes_on() {
    let mut client = Client::new(&directory("no-json", SAYS), None);
    let call = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"explain","arguments":{{"run":"{text}"}}}}}}"#
        )
    };
    let deep = "[".repeat(1000);
    for line in [&*call(r"\ud800"), &call(r"\udc00a"), "{", "words", &deep] {
        client.write(line.as_bytes());
        let answer = client.hear();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &json!(null)));
        assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    }
    client.write(b"{\"id\":\"\xff\"}");
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.write(&vec![b'a'; 17 << 20]);
    assert_eq!(client.hear()["error"]["code"], -32700);
    // Lines that say nothing need no answer.
    client.write(b"");
    client.write(b" ");
    client.write(call(r"\ud83d\ude00").as_bytes());
    assert_eq!(client.hear()["result"]["content"][0]["text"], "called explain \u{1f600}\n");
    assert_eq!(client.call("explain", json!({})), ("called explain\n".to_owned(), false));
}

#[test]
fn nothing_is_told_of_a_file_that_is_no_profile() {
    let mut client = Client::new(&directory("no-profile", SAYS), None);
    let (said, is_mistake) = client.call("show_profile", json!({ "profile": "/a/key" }));
    assert!(is_mistake && said.contains("/a/key") && !said.contains("secret"), "{said}");
}

#[test]
fn in_a_sandbox_a_proposal_goes_to_the_run() {
    let directory = directory("inside", SAYS);
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

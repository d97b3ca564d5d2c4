//! Names of hosts in a profile, and a name server that is slow to answer.

use crate::account::Account;
use std::process::Command;

/// Answers nothing before it was asked for each of eight names, and no question twice.
const SERVER: &str = r"
import re, socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 53))
open('listening', 'w').close()
asked, waiting, answered = set(), [], set()
while True:
    question, whence = server.recvfrom(4096)
    asked.add(question[13:13 + question[12]])
    waiting.append((question, whence))
    if len(asked) < 8:
        continue
    for question, whence in waiting:
        end = question.index(b'\0', 12) + 5
        if question[12:end] in answered:
            open('asked-again', 'w').close()
            continue
        is_ipv4 = question[end - 4:end - 2] == b'\0\1'
        flags = b'\x81\x80\0\1' + (b'\0\1' if is_ipv4 else b'\0\0') + bytes(4)
        answer = b'\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\2\7' if is_ipv4 else b''
        server.sendto(question[:2] + flags + question[12:end] + answer, whence)
        answered.add(question[12:end])
    waiting = []
";

#[test]
fn names_are_looked_up_beside_each_other_and_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("note: not run by root, who alone can have a name server of its own");
        return;
    }
    let account = Account::new(None);
    let names: Vec<String> = (0..8).map(|n| format!("'h{n}.example:80'")).collect();
    let rules = format!(
        "extends = 'workspace'\n[network]\nconnect = [{}]\n[propose]\nwithin = 'bound.toml'\n",
        names.join(", ")
    );
    account.write("own.toml", &rules);
    account.write("bound.toml", rules.split("[propose]").next().unwrap());
    account.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:3 attempts:1\n");
    let script = "ip link set lo up; mount --bind ../resolv.conf /etc/resolv.conf; python3 -c \"$0\" & \
                  while [ ! -e listening ]; do sleep 0.05; done; \
                  \"$1\" run -p ../own.toml -- cat /etc/hosts; kill $!";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--propagation", "private", "sh", "-c", script, SERVER]);
    command.arg(account.programs().join("dewar")).current_dir(account.path("work"));
    let output = command.env("HOME", account.path("")).output().expect("start `unshare`");
    let said = String::from_utf8_lossy(&output.stdout);
    let found = said.lines().filter(|line| line.starts_with("192.0.2.7 h")).count();
    assert_eq!(found, 8, "{said}{}", String::from_utf8_lossy(&output.stderr));
    // Nor by whoever hears what programs inside propose.
    assert!(!account.path("work/asked-again").exists());
}

#[test]
fn a_host_that_is_granted_and_was_not_found_is_not_granted_again() {
    let home = super::learn::Home::new();
    let rules = "extends = 'workspace'\nnetwork.connect = ['no.invalid:443']\n";
    std::fs::write(home.work().join("dewar.toml"), rules).unwrap();
    let ask = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)";
    let run = ["run", "--no-daemon", "-p", "./dewar.toml", "--"];
    let asking = ["/usr/bin/python3", "-c", ask, "https://no.invalid/"];
    assert_eq!(home.say(&[&run[..], &asking].concat()).status, 1);
    let allowed = home.say(&["allow", "--all"]);
    assert_eq!((allowed.status, home.profile().as_str()), (1, rules), "{}", allowed.out);
    for told in [allowed.out, home.say(&["explain"]).out] {
        let why = "no.invalid:443 is granted, and had no address when the run started";
        assert!(told.contains(why) && !told.contains("network.connect"), "{told}");
    }
}

/// Git finds its host in a repository, Cargo in a lock file.
#[test]
fn where_a_name_was_looked_up_in_vain_the_hosts_that_had_no_address_are_named() {
    let home = super::learn::Home::new();
    let ask = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)";
    for (host, is_told) in [("no.invalid:443", true), ("192.0.2.1:443", false)] {
        let rules = format!("extends = 'workspace'\nnetwork.connect = ['{host}']\n");
        std::fs::write(home.work().join("dewar.toml"), rules).unwrap();
        let run = ["run", "--no-daemon", "-p", "./dewar.toml", "--", "/usr/bin/python3", "-c", ask];
        assert_eq!(home.say(&run).status, 1);
        let told = home.say(&["explain"]).out;
        let why = "granted      no.invalid: without an address when the run started";
        assert_eq!(told.contains(why), is_told, "{told}");
    }
}

#[test]
fn a_host_that_is_not_found_is_told_at_the_start() {
    let account = Account::new(None);
    let rules = "extends = 'workspace'\n[network]\nconnect = ['no.invalid:80', '192.0.2.1:80']\n";
    account.write("own.toml", rules);
    account.write("extending.toml", "extends = './own.toml'\n");
    for (options, profile, told) in [
        (&[][..], "../own.toml", 1),
        (&[], "../extending.toml", 1),
        (&["--quiet"], "../own.toml", 0),
    ] {
        let mut command = Command::new(account.programs().join("dewar"));
        command.arg("run").args(options).args(["-p", profile, "true"]);
        command.current_dir(account.path("work")).env("HOME", account.path(""));
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert_eq!(said.matches("not found, so not reached: no.invalid (").count(), told, "{said}");
    }
}

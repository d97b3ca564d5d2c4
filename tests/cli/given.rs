//! What the caller has left open is given as it is: one end of a pipe without the other.

use crate::{
    account::Account,
    ask::{Home, text},
};
use std::{
    fs,
    io::{self, Write as _},
    process::{Command, Stdio},
};

/// Tries to have the other end of what it was given, and both of a pipe of its own.
const TRIES: &str = r#"
import os, sys
def tries(name, fd, flags):
    try:
        os.close(os.open(f'/proc/self/fd/{fd}', flags | os.O_NONBLOCK))
        print(name, 'opened', file=log)
    except OSError as error:
        print(name, error.strerror, file=log)
log = open('log', 'w')
tries('input to write', 0, os.O_WRONLY); tries('input for both', 0, os.O_RDWR); tries('input to read', 0, os.O_RDONLY)
tries('output to read', 1, os.O_RDONLY); tries('output to write', 1, os.O_WRONLY)
tries('memory to write', 7, os.O_WRONLY); tries('memory to read', 7, os.O_RDONLY)
mine, other = os.pipe()
tries('own to write', mine, os.O_WRONLY); tries('own to read', other, os.O_RDONLY)
"#;

#[test]
fn a_run_has_one_end_of_a_pipe_that_it_was_given_and_both_of_its_own() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::write(work.join("tries.py"), TRIES).unwrap();
    let domains =
        "extends = 'workspace'\n[domains.tool]\nexec = ['/usr/bin/git']\nfrom = ['main']\n";
    fs::write(home.path().join("domains.toml"), domains).unwrap();
    for (profile, mode) in [("workspace", "all"), ("workspace", "fast"), ("../domains.toml", "all")]
    {
        let (input, mut to_input) = io::pipe().unwrap();
        let (_from_output, output) = io::pipe().unwrap();
        to_input.write_all(b"x").unwrap();
        let program = test_support::dewar().display();
        // Memory that is open there to be read.
        let script = format!(
            "import os; m = os.memfd_create('m'); r = os.open(f'/proc/self/fd/{{m}}', os.O_RDONLY); os.dup2(r, 7); \
             os.execv('{program}', 'dewar run -q --no-daemon -p {profile} --mode {mode} -- /usr/bin/python3 tries.py'.split())"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).current_dir(&work).env("HOME", home.path());
        command.env("XDG_STATE_HOME", home.path().join("state"));
        let command = command.stdin(input).stdout(output).stderr(Stdio::piped());
        let said = command.spawn().unwrap().wait_with_output().unwrap();
        let log = fs::read_to_string(work.join("log")).unwrap_or_default();
        let refused = "Permission denied";
        // In mode `fast` the kernel opens what is only read.
        let reads = if mode == "fast" { "opened" } else { refused };
        let want = format!(
            "input to write {refused}\ninput for both {refused}\ninput to read opened\n\
             output to read {reads}\noutput to write opened\nmemory to write {refused}\nmemory to read opened\n\
             own to write opened\nown to read opened\n"
        );
        let want = match profile {
            // Between domains one end is not the other.
            "workspace" => want,
            _ => want.replace(
                "own to write opened\nown to read opened",
                &format!("own to write {refused}\nown to read {refused}"),
            ),
        };
        assert_eq!(log, want, "{profile} {mode}: {}", text(&said.stderr));
    }
}

/// Sends two descriptors by a socket that `dewar` then inherits, as standard input and as 21;
/// and another socket, in whose queue are bytes alone, as 20.
const SENDS: &str = r#"
import os, socket, sys
def queued(kind, fds):
    mine, other = socket.socketpair(socket.AF_UNIX, kind)
    mine.send(b'first')
    if fds:
        socket.send_fds(mine, [b'x'], fds)
    return mine, other
directory = os.open('/', os.O_PATH)
streams, packets = queued(socket.SOCK_STREAM, [directory]), queued(socket.SOCK_SEQPACKET, [directory])
plain = queued(socket.SOCK_STREAM, [])
for other, fd in (streams[1], 0), (packets[1], 21), (plain[1], 20):
    os.dup2(other.fileno(), fd)
    os.set_inheritable(fd, True)
for kept in streams[0], packets[0], plain[0]:
    kept.set_inheritable(True); kept.detach()
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// What there is of each in the run.
const RECEIVES: &str = r#"
import os, socket
for fd in 0, 20, 21:
    try:
        message, fds, _, _ = socket.recv_fds(socket.socket(fileno=os.dup(fd)), 99, 9)
        print(fd, message.decode(), len(fds))
    except OSError as error:
        print(fd, error.strerror)
"#;

#[test]
fn a_run_gets_no_descriptors_that_waited_in_a_socket_which_it_was_given() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::write(work.join("receives.py"), RECEIVES).unwrap();
    for mode in ["all", "fast"] {
        let mut command = Command::new("python3");
        command.args(["-c", SENDS]).arg(test_support::dewar());
        command.args(["run", "--no-daemon", "--mode", mode, "--", "/usr/bin/python3"]);
        command.arg("receives.py").current_dir(&work).env("HOME", home.path());
        command.env("XDG_STATE_HOME", home.path().join("state"));
        let done = command.output().unwrap();
        let (out, err) = (text(&done.stdout), text(&done.stderr));
        let want = "0 Socket operation on non-socket\n20 first 0\n21 Bad file descriptor\n";
        assert_eq!(out, want, "{mode}: {err}");
        for fd in [0, 21] {
            let notice = format!("descriptor {fd} is not handed on: descriptors wait");
            assert!(err.contains(&notice), "{mode}: {err}");
        }
    }
}

#[test]
fn what_can_be_given_is_given_beside_what_cannot() {
    let home = Home::new();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir_all(path("d")).unwrap();
    fs::write(path("d/a.dat"), "data\n").unwrap();
    fs::write(path("a.txt"), "text\n").unwrap();
    let profile = "extends = 'workspace'\nfiles.write = ['${home}/d/*.txt']\n";
    fs::write(home.path().join("work/some.toml"), profile).unwrap();
    let script = "while [ ! -e end ]; do cat ~/a.txt ~/d/a.dat; sleep 0.1; done 2>/dev/null";
    let args =
        ["run", "--no-daemon", "--name", "it", "-p", "./some.toml", "--", "sh", "-c", script];
    let run = home.command(&[], &args).stdout(Stdio::piped()).spawn().unwrap();
    // The one that cannot be given comes first.
    let (data, notes) = (path("d/a.dat"), path("a.txt"));
    home.say_soon(&["explain", "it"], "a.txt");
    home.say_soon(&["explain", "it"], "a.dat");
    for order in [[&notes, &data], [&data, &notes]] {
        let said = home.say(&["allow", "it", order[0], order[1], "--once"]);
        let out = text(&said.stdout);
        assert_eq!(said.status.code(), Some(1), "{out}{}", text(&said.stderr));
        assert!(out.contains("OUT OF REACH") && out.contains("complete after"), "{out}");
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    fs::write(home.path().join("work/end"), "").unwrap();
    let said = run.wait_with_output().unwrap();
    assert!(text(&said.stdout).contains("data"), "{}", text(&said.stdout));
}

/// `/dev/stdout` is the caller's file, which policy does not let it open: it is what it has.
#[test]
fn a_file_that_the_caller_has_opened_is_reached_by_the_names_of_devices() {
    for account in [Account::new(None), Account::new(Some(61_235))] {
        account.write("in.txt", "given\n");
        account.give();
        for mode in ["all", "fast"] {
            let out = account.path("out.log");
            let open = |path| fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            fs::write(&out, "before\n").unwrap();
            let script = "echo out >> /dev/stdout; echo err | tee /dev/stderr >&2; echo cut > /dev/fd/1; \
                          (cat < /proc/self/fd/1) 2> /dev/null || echo not read >&2";
            let mut command =
                account.command(&["run", "-q", "--mode", mode, "--", "sh", "-c", script]);
            command.stdout(open(&out)).stderr(open(&account.path("err.log")));
            assert!(command.status().unwrap().success(), "{mode}");
            assert_eq!(fs::read_to_string(&out).unwrap(), "before\nout\ncut\n", "{mode}");
            let err = fs::read_to_string(account.path("err.log")).unwrap();
            assert_eq!(err, "err\nerr\nnot read\n", "{mode}");
            fs::remove_file(account.path("err.log")).unwrap();
        }
        let words =
            ["run", "--no-daemon", "--", "sh", "-c", "cat /dev/stdin; echo no > /dev/stdin"];
        let mut command = account.command(&words);
        command.stdin(fs::File::open(account.path("in.txt")).unwrap());
        let output = command.output().unwrap();
        assert_eq!(text(&output.stdout), "given\n", "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(account.path("in.txt")).unwrap(), "given\n");
    }
}

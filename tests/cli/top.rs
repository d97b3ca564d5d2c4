//! `dewar top` on a terminal of 80 columns and 24 rows.

use std::{fs, process::Command};

/// Plays on a terminal: starts a run, watches it, and says what was seen as JSON.
const PLAY: &str = r#"
import fcntl, json, os, pty, select, signal, struct, subprocess, sys, termios, time
dewar = sys.argv[1]
run = subprocess.Popen([dewar, "run", "--no-daemon", "--name", "watched", "--", "sleep", "60"])
until = time.time() + 30
while b"watched" not in subprocess.run([dewar, "ps"], capture_output=True).stdout and time.time() < until:
    time.sleep(0.1)

def settings(fd):
    return [it if not isinstance(it, list) else [str(c) for c in it] for it in termios.tcgetattr(fd)]

def play(keys, end):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = settings(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid(); fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in range(3): os.dup2(slave, fd)
        os.execv(dewar, [dewar, "top", "--interval", "0.1"])
    seen = ""
    def read(want, patience=20.0):
        nonlocal seen
        part, until = "", time.time() + patience
        while want not in part and time.time() < until:
            if select.select([master], [], [], 0.1)[0]:
                part += os.read(master, 65536).decode(errors="replace")
        seen += part
        return want in part
    found = [read("watched")]
    for key, want in keys:
        os.write(master, key.encode()); found.append(read(want))
    end(pid, master)
    read("\x1b[?1049l")
    status = os.waitpid(pid, 0)[1]
    return {"found": found, "restored": settings(slave) == before, "left": "\x1b[?1049l" in seen,
            "shown": "\x1b[?25h" in seen, "status": status}

interrupt = lambda pid, master: os.write(master, b"\x03")
terminate = lambda pid, master: os.kill(pid, signal.SIGTERM)
one = play([("s", "by decisions"), ("r", "take everything"), ("n", "nothing was revoked")], terminate)
alive = run.poll() is None
two = play([("r", "take everything"), ("y", "everything was taken")], interrupt)
try: ended = run.wait(20) is not None
except subprocess.TimeoutExpired: ended = False; run.kill()
print(json.dumps({"one": one, "two": two, "alive": alive, "ended": ended}))
"#;

#[test]
fn a_run_is_selected_and_revoked_and_the_terminal_is_left_as_it_was() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    let output = Command::new("python3")
        .args(["-c", PLAY])
        .arg(test_support::dewar())
        .current_dir(&work)
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("XDG_RUNTIME_DIR", home.path().join("runtime"))
        .env("TERM", "xterm")
        .output()
        .expect("python3 is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let played: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    for part in ["one", "two"] {
        let play = &played[part];
        let found = play["found"].as_array().unwrap();
        assert!(found.iter().all(|it| it == true), "{part}: {played}\n{said}");
        for state in ["restored", "left", "shown"] {
            assert_eq!(play[state], true, "{part}: the terminal is not {state}: {played}");
        }
    }
    assert_eq!((&played["alive"], &played["ended"]), (&true.into(), &true.into()), "{played}");
}

/// In the background, where timeout(1) puts it, the kernel stops it; what ends it there ends it.
const IN_THE_BACKGROUND: &str = r#"
import os, pty, select, sys, time
pid, master = pty.fork()
if pid == 0:
    # Whoever leads a session stays in the foreground.
    os.execvp("sh", ["sh", "-c", "timeout -k 20 1 \"$0\" top; exit $?", sys.argv[1]])
seen, until = b"", time.time() + 40
while time.time() < until:
    try:
        if select.select([master], [], [], 0.1)[0]: seen += os.read(master, 65536)
    except OSError: break
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended: break
else: status = -1
if not ended: status = os.waitpid(pid, 0)[1]
print(os.waitstatus_to_exitcode(status), b"\x1b[?1049h" in seen)
"#;

#[test]
fn what_ends_it_in_the_background_ends_it() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = Command::new("python3")
        .args(["-c", IN_THE_BACKGROUND])
        .arg(test_support::dewar())
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .env("TERM", "xterm")
        .output()
        .expect("python3 is there");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "124 False", "{}", String::from_utf8_lossy(&output.stderr));
}

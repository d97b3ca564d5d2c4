//! Completion of names, in the shells themselves.

use super::seeing::Home;
use assert_cmd::Command;
use std::fs;

/// A home with a kept run called `nightly`, and the completion script of a shell in the workspace.
fn home(shell: &str, script: &str) -> Home {
    let home = Home::new();
    home.run("nightly", "true");
    let (status, text, err) = home.say(&["completions", shell]);
    assert_eq!((status, err.as_str()), (0, ""));
    fs::write(home.work().join(script), text).unwrap();
    home
}

/// What a shell says, with `dewar` on its path.
fn ask(home: &Home, program: &str, arguments: &[&str]) -> String {
    let places = test_support::dewar().parent().unwrap().display();
    let path = format!("{places}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new(program);
    shell.args(arguments).current_dir(home.work()).env("PATH", path).env("HOME", home.path());
    shell.env("XDG_STATE_HOME", home.path().join("state")).env("TERM", "xterm");
    let output = shell.timeout(std::time::Duration::from_secs(120)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes_names_of_profiles_and_runs() {
    let home = home("bash", "completion");
    let complete = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            ". ./completion; COMP_WORDS=({}); COMP_CWORD={}; _dewar_names dewar \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\"",
            quoted.join(" "),
            words.len() - 1
        );
        ask(&home, "bash", &["-c", &script]).trim().to_owned()
    };
    assert_eq!(complete(&["dewar", "explain", "nigh"]), "nightly");
    assert_eq!(complete(&["dewar", "run", "-p", "work"]), "workspace");
    assert_eq!(complete(&["dewar", "policy", "show", "read"]), "readonly");
    assert!(complete(&["dewar", "run", "--allow-d"]).contains("--allow-degraded"));
    let own = complete(&["dewar", "run", "--"]);
    assert!(own.contains("--quiet") && !own.contains("--learning"), "{own}");
    assert!(complete(&["dewar", "ps", "--json-s"]).contains("--json-schema"));
    // What is behind `--` is a command, and then files, which bash completes where nothing is said.
    let commands = complete(&["dewar", "run", "-p", "git", "--", "printe"]);
    assert!(commands.split(' ').any(|it| it == "printenv"), "{commands}");
    for words in [["run", "--", "cat", "nigh"], ["run", "--", "dewar", "--"]] {
        assert_eq!(complete(&[&["dewar"][..], &words].concat()), "", "{words:?}");
    }
}

#[test]
fn fish_completes_names_of_profiles_and_runs() {
    let home = home("fish", "completion.fish");
    let complete = |line: &str| {
        let script = format!("source completion.fish; complete -C '{line}'");
        ask(&home, "fish", &["--no-config", "-c", &script])
    };
    assert!(complete("dewar explain nigh").lines().any(|it| it.starts_with("nightly")));
    assert!(complete("dewar run -p work").lines().any(|it| it.starts_with("workspace")));
    assert!(complete("dewar policy show read").lines().any(|it| it.starts_with("readonly")));
    assert!(complete("dewar run --allow-d").contains("--allow-degraded"));
    fs::write(home.work().join("own.toml"), "").unwrap();
    assert!(complete("dewar run -p ./ow").contains("own.toml"), "a profile may be a file");
    let commands = complete("dewar run -p git -- printe");
    assert!(commands.lines().any(|it| it.starts_with("printenv")), "{commands}");
    assert!(complete("dewar run -- cat ow").contains("own.toml"));
}

/// Types a line and a tabulator into zsh on a terminal, has the line printed instead of carried
/// out, and says what was seen until what is wanted came.
const ZSH: &str = r#"
import os, pty, select, sys, time
line, want = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("zsh", ["zsh", "-f", "-i"])
def read(want):
    seen, until = "", time.time() + 60
    while want not in seen and time.time() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try: seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError: break
    return seen
def say(text): os.write(terminal, text.encode())
say("PS1='rea''dy '; fpath=($PWD $fpath); autoload -U compinit; compinit -u -D\n")
read("ready ")
say(line + "\t" + "\x01print -r -- told: \n")
print(read("told: " + want))
os.kill(pid, 9)
"#;

#[test]
fn zsh_completes_names_of_profiles_and_runs() {
    let home = home("zsh", "_dewar");
    for (line, want) in [
        ("dewar explain nigh", "dewar explain nightly"),
        ("dewar run -p work", "dewar run -p workspace"),
        ("dewar policy show read", "dewar policy show readonly"),
        ("dewar run --allow-d", "dewar run --allow-degraded"),
        ("dewar run -- printe", "dewar run -- printenv"),
    ] {
        let said = ask(&home, "python3", &["-c", ZSH, line, want]);
        assert!(said.contains(&format!("told: {want}")), "{line}: {said:?}");
    }
}

#[test]
fn the_newest_runs_are_offered_with_what_they_ran() {
    let home = home("bash", "completion");
    home.run("nightly", "exit 3");
    for _ in 0..20 {
        home.say(&["run", "--no-daemon", "--", "echo", "some text"]);
    }
    home.run("last-one", "true");
    let (status, list, err) = home.say(&["completions", "--list", "runs"]);
    assert_eq!((status, err.as_str(), list.lines().count()), (0, "", 20));
    assert!(list.starts_with("last-one\tsh -c true\n"), "{list}");
    assert_eq!(list.matches("\techo some text\n").count(), 19, "{list}");
}

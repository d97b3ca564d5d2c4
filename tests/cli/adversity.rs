//! Where the machine does not play along: a full disk, a directory that is read-only, two at once,
//! and Ctrl-C. What goes wrong is named with its place, and nothing is left behind.

use super::daemon::{is_root, wait_until};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A home with a project in which something was denied once, a full disk and a read-only one.
struct Home(TempDir);

/// Mounts the disks, and carries out what is said. They are gone with the mount namespace.
const DISKS: &str = r#"
mount -t tmpfs -o size=64k none "$0/full" && mount -t tmpfs none "$0/fixed" || exit 99
mkdir "$0/full/project" "$0/fixed/project"
echo 'extends = "workspace"' > "$0/fixed/project/dewar.toml"
dd if=/dev/zero of="$0/full/fill" bs=1k 2> /dev/null
mount -o remount,ro "$0/fixed" || exit 99
export FULL="$0/full" FIXED="$0/fixed"
eval "$1"
"#;

impl Home {
    fn new() -> Self {
        let home = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        for name in ["work", "full", "fixed", "state", "runtime", "cache"] {
            fs::create_dir(home.0.path().join(name)).unwrap();
        }
        fs::write(home.0.path().join("notes"), "notes").unwrap();
        home.say("dewar run --no-daemon -- cat ../notes");
        home
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let places = test_support::dewar().parent().unwrap().display();
        let path = format!("{places}:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.current_dir(self.path().join("work")).env("PATH", path).stdin(Stdio::null());
        command.env("HOME", self.path()).env("XDG_STATE_HOME", self.path().join("state"));
        command.env("XDG_RUNTIME_DIR", self.path().join("runtime")).env("NO_COLOR", "1");
        command.env("XDG_CACHE_HOME", self.path().join("cache"));
        command
    }

    /// What a shell comes to that has the disks: status, and everything that was said.
    fn say(&self, script: &str) -> (i32, String) {
        let mut command = self.command("unshare");
        command.args(["--mount", "--propagation", "private"]);
        if !is_root() {
            command.arg("--map-root-user");
        }
        let output = command.args(["sh", "-c", DISKS]).arg(self.path()).arg(script).output();
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
    }
}

#[test]
fn what_the_caller_s_mask_leaves_is_not_what_dewar_makes_for_itself() {
    let home = Home::new();
    let (status, said) = home.say("umask 0777; dewar run --no-daemon -- cat ../notes");
    assert!(status == 1 && said.contains("denied once: cat may not read or open"), "{said}");
    let own = "umask 0777; export XDG_STATE_HOME=$PWD/made/state; dewar run --no-daemon -- true; \
               find made -type d ! -perm 0700; find made -type d | wc -l";
    let (status, said) = home.say(own);
    assert!(status == 0 && said.trim().parse::<usize>().is_ok_and(|made| made > 3), "{said}");
    let shared = "umask 0; dewar run --no-daemon -- true; find $XDG_STATE_HOME -type f -perm /077";
    assert_eq!(home.say(shared), (0, String::new()));
}

#[test]
fn a_start_that_cannot_be_names_the_remedy() {
    let home = Home::new();
    for (script, status, parts) in [
        ("ulimit -s 100; dewar run true", 125, &["stack", "ulimit -s 8192"][..]),
        ("XDG_STATE_HOME=/etc/passwd dewar run true", 125, &["set XDG_STATE_HOME"]),
        ("ulimit -n 6; dewar run true", 125, &["`ulimit -n` (6 here)"]),
        ("HOME=/nonexistent dewar policy list", 0, &["workspace ", "agent "]),
        ("cd $FULL; dewar serve . -w 0", 2, &["1..=256"]),
        ("cd $FULL; dewar serve . -w 100000", 2, &["1..=256"]),
    ] {
        let (ended, said) = home.say(script);
        let names_all = parts.iter().all(|part| said.contains(part));
        assert!(ended == status && names_all, "{script}: {ended}: {said}");
    }
}

#[test]
fn what_a_profile_leaves_too_little_of_is_named() {
    let home = Home::new();
    let run = |profile: &str| {
        fs::write(home.path().join("p.toml"), format!("extends = \"workspace\"\n{profile}"))
            .unwrap();
        home.say("dewar run --no-daemon -p ../p.toml -- true")
    };
    let (status, said) = run("limits.files = 1\n");
    assert!(status == 125 && said.contains("`limits.files`"), "{said}");
    // There is no such file, so nothing is granted.
    let (status, said) = run(&format!("files.read = [\"/usr/{}\"]\n", "x".repeat(300)));
    assert_eq!((status, said.as_str()), (0, ""));
}

#[test]
fn a_working_directory_that_the_profile_hides_is_named_with_its_line() {
    let home = Home::new();
    fs::create_dir(home.path().join(".ssh")).unwrap();
    let (status, said) = home.say("cd ../.ssh && dewar run --no-daemon -- true");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status == 2 && said.contains("is kept back by profile workspace"), "{said}");
    assert!(said.contains("${home}/.ssh"), "{said}");
}

#[test]
fn of_a_run_whose_record_could_not_be_kept_that_is_explained() {
    let home = Home::new();
    let run = "dewar run --no-daemon --name it -- sh -c";
    let full = format!(
        "export XDG_STATE_HOME=$FULL/state; rm $FULL/fill; mkdir $FULL/state; {run} true 2>&1; \
         {run} 'for i in $(seq 400); do echo > ~/x$i; done 2>/dev/null; exit 1' 2>/dev/null; dewar explain; dewar explain it"
    );
    let fixed = "export XDG_STATE_HOME=$FIXED/state; dewar run --no-daemon -- true 2>/dev/null; dewar explain";
    for (script, part) in [
        (full.as_str(), "ended without a record: that could not be written: No space left"),
        (fixed, "no record of a run can be kept here: `"),
        (fixed, "fixed`: Read-only file system"),
    ] {
        let (_, said) = home.say(script);
        assert!(said.contains(part), "{script}: {said}");
    }
}

#[test]
fn on_a_full_or_a_read_only_disk_what_cannot_be_written_is_named_and_not_left_in_part() {
    let home = Home::new();
    let mut faults = Vec::new();
    for (script, status, parts) in [
        ("dewar report -o $FULL/x.html", 125, &["x.html`: No space left"][..]),
        ("dewar allow 1 --write $FULL/x.toml", 125, &["x.toml`: No space left"]),
        ("dewar allow 1 --write $FIXED/x.toml", 125, &["x.toml`: Read-only file system"]),
        ("dewar learn -o $FIXED/x.toml -- touch ran", 125, &["x.toml`: Read-only", "-o names"]),
        ("cd $FULL/project; dewar init", 125, &["dewar.toml`: No space left"]),
        ("cd $FIXED; dewar init", 125, &["dewar.toml`: Read-only"]),
        ("cd $FIXED; dewar init claude", 125, &[".claude", "Read-only"]),
        ("cd $FULL/project; dewar init claude; s=$?; rmdir .claude; exit $s", 125, &["No space"]),
        ("cd $FIXED/project; XDG_STATE_HOME=$FULL/s dewar trust --yes", 125, &["what is trusted"]),
        ("XDG_STATE_HOME=$FULL/s dewar run --no-daemon -- echo ran", 0, &["ran", "No space left"]),
        ("XDG_STATE_HOME=$FULL/s dewar init", 125, &["changes/", "No space left"]),
        ("XDG_STATE_HOME=$FIXED/s dewar run --no-daemon -- echo ran", 0, &["ran", "Read-only"]),
        ("dewar run --no-daemon --audit $FULL/a -- ls; rm $FULL/a", 0, &["missing from the audit"]),
        ("dewar completions bash > $FULL/c; s=$?; rm $FULL/c; exit $s", 125, &["No space left"]),
        ("dewar explain > /dev/full", 125, &["standard output: No space left"]),
        ("dewar policy show --json > /dev/full", 125, &["standard output: No space left"]),
        ("dewar plugin build $PLUGIN -o $FULL/x.wasm", 125, &["x.wasm`: No space left"]),
        ("XDG_CACHE_HOME=$FIXED dewar plugin build $PLUGIN", 0, &["cache: Read-only", "compiled"]),
        ("dewar bench sample $FIXED/s", 125, &["$FIXED/s/config.h`: Read-only"]),
        ("dewar serve . --admin $FIXED/s -l 127.0.0.1:0", 1, &["$FIXED/s`: Read-only"]),
        ("dewar man $FULL/man; s=$?; rm -r $FULL/man; exit $s", 125, &["/man`", "No space left"]),
        ("dewar man new/man && test -s new/man/dewar-run.1; s=$?; rm -r new; exit $s", 0, &[]),
        ("TMPDIR=$FULL dewar learn -o - -- true", 125, &["No space left"]),
    ] {
        let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugins/gray.e");
        let left = "ls -A $FULL $FULL/project $FIXED | grep -vx 'fill\\|project\\|s\\|.*:\\|' | sed 's/^/LEFT: /'; \
                    find $FULL/s -type f 2> /dev/null | sed 's/^/LEFT: /'";
        let whole = format!("PLUGIN={plugin}; ({script}); s=$?; {left}; exit $s");
        let (ended, said) = home.say(&whole);
        let wanted = |part: &&&str| {
            let fixed = home.path().join("fixed").display().to_string();
            !said.contains(&part.replace("$FIXED", &fixed))
        };
        let missing: Vec<_> = parts.iter().filter(wanted).collect();
        let left = said.contains("LEFT: ");
        if ended != status || !missing.is_empty() || left || said.contains("at path") {
            faults.push(format!("{script}: {ended}, not {status}, without {missing:?}: {said}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(!home.path().join("work/ran").exists(), "it learned what it could not have written");
}

/// What runs leave where they keep sockets, and in the control groups.
fn traces(home: &Home) -> BTreeSet<PathBuf> {
    let below = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let sockets = below(&home.path().join("runtime/dewar"));
    let inner = sockets.iter().flat_map(|path| below(path)).collect::<Vec<_>>();
    let groups = below(Path::new("/sys/fs/cgroup"));
    let groups = groups.into_iter().filter(|path| path.to_string_lossy().contains("dewar"));
    inner.into_iter().chain(groups).collect()
}

#[test]
fn an_interrupted_run_leaves_no_process_no_socket_no_mount_and_no_group() {
    let home = Home::new();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let (before, traces_before) = (mounts(), traces(&home));
    for (signal, words) in [
        ("INT", &["run", "--no-daemon"][..]),
        ("TERM", &["run", "--no-daemon", "--ask"]),
        ("KILL", &["run", "--no-daemon"]),
        ("INT", &["learn", "-o", "x.toml"]),
    ] {
        let script = "echo $$ > pid; sleep 300";
        let mut command = home.command("dewar");
        command.args(words).args(["--", "sh", "-c", script]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, as a shell makes one; Ctrl-C is for the group.
        command.process_group(0);
        let mut run = command.spawn().unwrap();
        let pid = home.path().join("work/pid");
        wait_until("it runs", || fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n')));
        let group = format!("-{}", run.id());
        let killed = Command::new("kill").args(["-s", signal, "--", &group]).status().unwrap();
        assert!(killed.success(), "{words:?}");
        run.wait().unwrap();
        fs::remove_file(&pid).unwrap();
        let here = home.path();
        wait_until("no process is left", || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let mut places = processes.filter_map(|it| fs::read_link(it.path().join("cwd")).ok());
            !places.any(|place| place.starts_with(&here))
        });
    }
    assert_eq!(mounts(), before);
    // The socket of a run that was killed goes once it is certain that no run is only starting.
    let old = "touch -h -d '1 hour ago' $XDG_RUNTIME_DIR/dewar/runs/*";
    let said = home.say(&format!("{old}; dewar ps"));
    assert!(said.1.contains("nothing runs"), "{said:?}");
    assert_eq!(traces(&home), traces_before);
}

#[test]
fn two_at_once_do_not_write_over_each_other() {
    let home = Home::new();
    let learn = |name: &str| {
        let mut command = home.command("dewar");
        command.args(["learn", "-o", "one.toml", "--", "sh", "-c"]);
        command.arg(format!("echo > {name}; until [ -e go ]; do sleep 0.1; done"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [learn("a"), learn("b")];
    let there = |name: &str| home.path().join("work").join(name).exists();
    wait_until("both run", || there("a") && there("b"));
    std::thread::sleep(Duration::from_millis(100));
    fs::write(home.path().join("work/go"), "").unwrap();
    let ended = both.map(|it| it.wait_with_output().unwrap());
    let said = ended.each_ref().map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
    let mut codes = ended.each_ref().map(|it| it.status.code().unwrap());
    codes.sort_unstable();
    // The one that comes later finds a file that is not as it was, says so, and keeps it.
    assert!(codes[0] == 0 && codes[1] != 0, "{codes:?}: {said:?}");
    assert!(said.iter().any(|it| it.contains("one.toml")), "{said:?}");
    let (status, _) = home.say("dewar policy check ./one.toml");
    assert_eq!(status, 0, "what is there is whole");
}

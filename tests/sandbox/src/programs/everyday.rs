//! What people run every day, under the default profile: it ends as natively, and nothing is called
//! denied that no program misses.

use crate::{
    Case, cases,
    process::run,
    stage::{How, Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    everyday_commands_end_without_a_false_alarm,
    what_fails_natively_as_well_is_no_alarm,
    a_listing_of_what_lies_above_is_an_alarm_where_it_fails,
    nobody_listens_where_no_socket_is
];

/// A command, and what it is truly denied: ends of the objects' names. Their list is not complete
/// for machines with other programs, so only what is installed is run.
struct Everyday {
    program: &'static str,
    script: &'static str,
    /// Ends of the names of what is truly denied.
    denied: &'static [&'static str],
}

const fn plain(program: &'static str, script: &'static str) -> Everyday {
    Everyday { program, script, denied: &[] }
}

const EVERYDAY: &[Everyday] = &[
    plain("bash", "bash -ic 'echo $HISTFILE; exit' 2> /dev/null"),
    plain(
        "git",
        "git init -q . && git commit -q --allow-empty -m x && git log --oneline -3 | cut -d' ' -f2",
    ),
    plain(
        "git",
        "git init -q . && echo a > f && git add f && git commit -qm x && echo b > f && git stash -q && git stash pop -q && git status --short",
    ),
    plain(
        "git",
        "git init -q r && cd r && git commit -q --allow-empty -m x && git worktree add -q ../w && git worktree remove ../w",
    ),
    plain("ssh", "ssh -V 2>&1"),
    plain("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f k && test -s k.pub"),
    plain("vim", "vim -es -c 'wq' f; test -e f || touch f"),
    plain("less", "echo text > README.md; less -F README.md | cat"),
    plain("less", "echo text > f; TERM=xterm script -qec 'less -F f' /dev/null < /dev/null"),
    plain("sqlite3", "sqlite3 x.db 'create table t(a); insert into t values(1); select * from t'"),
    plain("python3", "echo pass > x.py; python3 -m pdb -c c -c q x.py > /dev/null"),
    plain(
        "python3",
        "python3 -c 'import multiprocessing as m; print(list(m.Pool(2).map(abs, [-1, -2])))'",
    ),
    plain("python3", "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'"),
    plain(
        "node",
        "echo 'process.disconnect && process.disconnect()' > x.js; node -e 'require(\"child_process\").fork(\"x.js\").on(\"exit\", c => console.log(c))'",
    ),
    plain("npm", "npm --version | wc -l"),
    plain("go", "go version | wc -l"),
    plain("java", "java -version 2>&1 | wc -l"),
    plain("cmake", "cmake --version | head -1"),
    plain("make", "printf 'a: b\\n\\tcp b a\\n' > Makefile; touch b; make -j2"),
    plain("gcc", "echo 'int main(void) { return 0; }' > a.c; gcc -c a.c && gcc a.o && ./a.out"),
    plain("gdb", "gdb -batch -ex 'p 1+1'"),
    plain("tar", "mkdir d; echo x > d/f; tar cpf a.tar d; rm -r d; tar xpf a.tar && cat d/f"),
    plain("cp", "echo x > a; cp -a --reflink=auto --sparse=always a b && cat b"),
    plain(
        "find",
        "touch -d yesterday f; echo x > g; find . -xdev -newer f -print0 | xargs -0 -P2 -n1 wc -c > /dev/null",
    ),
    plain("flock", "flock l -c 'echo held'"),
    plain("mkfifo", "mkfifo p; cat p & echo x > p; wait"),
    plain("dd", "dd if=/dev/zero of=f bs=1M count=4 2> /dev/null; wc -c < f"),
    plain("fallocate", "fallocate -l 1M f && rm f"),
    // It keeps its configuration in the home.
    Everyday {
        program: "top",
        script: "TERM=dumb top -b -n1 | head -1 | wc -l",
        denied: &["/.config", "/.config/procps"],
    },
    plain("ps", "ps aux | head -1 | wc -w"),
    plain("df", "df -h . | wc -l; free -m | wc -l; nproc"),
    plain("id", "id -u; groups | wc -l; getent passwd root"),
    plain("openssl", "echo x | openssl dgst -sha256"),
    plain("nice", "nice -n 19 true; renice 10 $$ > /dev/null; taskset -c 0 true; ionice -c3 true"),
    plain("timeout", "timeout 1 sleep 2; echo $?"),
    plain(
        "sed",
        "echo a > f; sed -i s/a/b/ f; cat f; awk '{print $1}' f; sort f | uniq -c; diff f f",
    ),
    plain("python3", "python3 -c 'import multiprocessing as m; print(m.Manager().dict())'"),
    plain("python3", "touch p.py; python3 -m compileall -q p.py; echo $?"),
    plain("ssh-agent", "eval \"$(ssh-agent)\" > /dev/null; ssh-add -l; kill $SSH_AGENT_PID"),
    plain("dd", "dd if=/dev/zero of=f bs=1M count=8 oflag=direct 2> /dev/null; wc -c < f"),
    plain("bash", "ulimit -f 1; echo ok; time -p true 2> /dev/null; chrt -i 0 true; echo $?"),
    // Both names of what clients of D-Bus look for.
    plain("cat", "cat /etc/machine-id /var/lib/dbus/machine-id 2> /dev/null | wc -c"),
    plain("hostname", "hostname > /dev/null; uptime > /dev/null 2>&1; echo $?"),
    plain("strace", "strace -f true 2> /dev/null; echo $?"),
    plain("bash", "bash -c 'trap \"echo bye\" EXIT; kill -TERM $$' 2> /dev/null; echo $?"),
    plain("xargs", "seq 100 | xargs -P4 -n10 echo | wc -l"),
    plain("perl", "perl -e 'print join(\",\", map { $_ * 2 } 1..3), \"\\n\"'"),
    plain("gzip", "echo x | gzip | gunzip; echo x | bzip2 | bunzip2; echo x | xz | unxz"),
    plain("tac", "printf '%s\\n' b a | sort -u | tee o | tac; cat o"),
    plain("git", "git init -q --bare b.git && git clone -q b.git c 2> /dev/null && ls c | wc -l"),
    plain(
        "git",
        "git init -q . && git commit -qm x --allow-empty && git tag v1 && git describe --tags",
    ),
    plain("script", "script -qc 'echo in' /dev/null | head -1"),
    plain("gcc", "gcc -x c -o a - <<< 'int main(){return 3;}'; ./a; echo $?"),
    plain("cargo", "cargo new --vcs none -q p && cat p/src/main.rs | wc -l"),
    plain(
        "go",
        "go mod init x 2> /dev/null; printf 'package main\\nfunc main() { println(\"go\") }\\n' > m.go; go vet . && echo vetted",
    ),
    plain(
        "ninja",
        "printf 'project(x C)\\ncmake_minimum_required(VERSION 3.1)\\nadd_executable(x x.c)\\n' > CMakeLists.txt; echo 'int main(void) { return 0; }' > x.c; cmake -S . -B b -G Ninja > /dev/null 2>&1; ninja -C b > /dev/null && b/x; echo $?",
    ),
    plain("valgrind", "valgrind -q true; echo $?"),
    plain("socat", "socat -u EXEC:'echo through' STDOUT"),
    plain(
        "socat",
        "socat UNIX-LISTEN:u.sock - & for i in 1 2 3 4 5 6 7 8 9; do test -S u.sock && break; sleep 0.2; done; echo x | socat - UNIX-CONNECT:u.sock; wait",
    ),
    plain("convert", "convert -size 9x9 xc:red r.png && test -s r.png; echo $?"),
    plain("jq", "jq -n '[1, 2] | add'"),
    plain("zip", "zip -q a.zip /etc/hostname && unzip -l a.zip | wc -l"),
    plain("findmnt", "findmnt -n / | wc -l; lscpu | head -1 | wc -w; mountpoint -q /; echo $?"),
    plain("nohup", "nohup echo x 2> /dev/null; setsid echo y; xxd -p <<< z"),
    plain("man", "man -w ls 2> /dev/null | wc -l; locale | wc -l"),
    plain("watch", "watch -n1 -g date > /dev/null 2>&1 & sleep 0.1; kill %1; wait; echo done"),
    Everyday {
        program: "curl",
        script: "curl -sS --connect-timeout 5 https://192.0.2.1 2> /dev/null",
        // Without namespaces it has no loopback of its own, and so no sockets.
        denied: &["192.0.2.1:443", "a new tcp_socket"],
    },
];

fn everyday_commands_end_without_a_false_alarm(stage: &Stage) {
    let mut faults = Vec::new();
    let mut ran = 0;
    for Everyday { program, script, denied } in EVERYDAY {
        if !is_installed(program) {
            continue;
        }
        ran += 1;
        let fresh = "find . -mindepth 1 -delete";
        stage.prepare(fresh);
        let native = run(stage.prepared(How::Native, None, &bash(script)), b"");
        stage.prepare(fresh);
        let dewar = run(stage.prepared(How::Dewar, None, &bash(script)), b"");
        let same = (native.code(), native.out()) == (dewar.code(), dewar.out());
        if !same && denied.is_empty() {
            faults.push(format!(
                "{script}\n  native {} {:?}\n  dewar  {} {:?}",
                native.code(),
                native.out(),
                dewar.code(),
                dewar.out()
            ));
        }
        let record = stage.record();
        // Without namespaces, what is outside shows itself: processes, and what lies in `/tmp`.
        let outside = |object: &str| {
            let shown = ["process ", "/tmp/"].iter().any(|name| object.starts_with(name));
            shown && !stage.variant.has_namespaces()
        };
        let is_true =
            |object: &str| denied.iter().any(|end| object.ends_with(end)) || outside(object);
        let (truly, falsely): (Vec<_>, Vec<_>) =
            record.denials.iter().partition(|denial| is_true(&denial.object));
        faults.extend(falsely.iter().map(|denial| format!("{script}\n  {}", denial.text())));
        if truly.is_empty() && !denied.is_empty() {
            faults.push(format!("{script}\n  not recorded: {denied:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(ran >= 25, "only {ran} of the programs are installed");
}

fn is_installed(program: &str) -> bool {
    crate::stage::PATH
        .split(':')
        .any(|directory| std::path::Path::new(directory).join(program).exists())
}

/// What the modes of files refuse a user natively, policy takes from nobody; nor does a program
/// miss the logs of the machine. Root, who has the machine's files natively, has only the latter.
fn what_fails_natively_as_well_is_no_alarm(stage: &Stage) {
    let files = "mkdir /usr/share/new; cat /etc/shadow; python3 -c 'import os; os.symlink(\"a\", \"/etc/new\")'";
    let log = "cat /var/log/wtmp > /dev/null; python3 -c 'import syslog; syslog.syslog(syslog.LOG_DEBUG, \"text\")'";
    let script = if stage.variant.is_root() { log.to_owned() } else { format!("{files}; {log}") };
    let ran = run(stage.dewar(stage.call(), &bash(&script)), b"");
    assert!(!ran.err().contains("dewar: denied"), "{}", ran.err());
    let record = stage.record();
    assert!(record.denials.iter().all(|denial| denial.probed), "{:?}", record.denials);
    let failed = run(stage.dewar(stage.call(), &bash(&format!("{script}; exit 1"))), b"");
    // Of a command that failed, it is said all the same: nobody knows what it needs.
    assert!(failed.err().contains("dewar: denied"), "{}", failed.err());
    if !stage.variant.is_root() {
        let ran = run(stage.dewar(stage.call(), &bash("mkdir /usr/share/new")), b"");
        assert!(ran.err().contains("without Dewar you may not either"), "{}", ran.err());
        let told = crate::explained::explained(stage);
        assert!(told.contains("you may not either") && !told.contains("in a profile"), "{told}");
    }
}

/// make lists the directories above its own, and does without. Whoever wants the list says so by
/// its failure.
fn a_listing_of_what_lies_above_is_an_alarm_where_it_fails(stage: &Stage) {
    let goes_on = "python3 -c 'import os
for path in [\"..\", \"../..\", \"/\"]:
    try: os.listdir(path)
    except PermissionError: print(path)'";
    let ran = run(stage.dewar(stage.call(), &bash(goes_on)), b"");
    assert!(ran.out().contains("..\n") && !ran.err().contains("dewar: denied"), "{}", ran.err());
    assert!(!stage.record().denials.is_empty());
    let ran = run(stage.dewar(stage.call(), &bash("ls ..")), b"");
    assert!(ran.err().contains("denied once: ls may not read or open"), "{}", ran.err());
    let ran = run(stage.dewar(stage.call(), &bash("ls ..; ls /var/lib; true")), b"");
    let told = ran.err();
    assert!(told.contains("dewar: denied once: ls") && told.contains(" /var/lib;"), "{told}");
}

/// A program that logs tries some names in turn, of which most systems have one: nobody listens at
/// a directory.
fn nobody_listens_where_no_socket_is(stage: &Stage) {
    let script = "import socket
for name in ['/var/lib', '/run/lock', '/home', '/nowhere']:
    try: socket.socket(socket.AF_UNIX).connect(name); print('connected')
    except OSError: pass";
    let ran = run(stage.dewar(stage.call(), &["python3".into(), "-c".into(), script.into()]), b"");
    assert!(ran.code() == 0 && ran.out().is_empty(), "{} {}", ran.code(), ran.err());
    assert!(!ran.err().contains("dewar: denied"), "{}", ran.err());
}

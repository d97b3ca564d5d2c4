//! What the view keeps away: hidden and denied places in the middle of what is granted, and what is
//! left out.

use super::refused::refused;
use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    what_is_hidden_inside_of_what_is_granted_does_not_exist_and_is_recorded,
    what_is_denied_inside_of_what_is_granted_is_refused_and_recorded,
    denials_below_a_denied_directory_reach_the_closing_line,
    what_does_not_exist_is_no_denial,
    what_would_be_made_where_nothing_is_granted_is_a_denial,
    the_closing_line_names_what_mattered,
    a_run_tells_which_layers_keep_no_record,
    what_is_hidden_shows_no_content_where_there_is_no_view,
    a_build_without_namespaces_takes_no_more_decisions,
    patterns_below_the_home_grant_what_they_match,
    a_file_is_replaced_atomically_where_a_pattern_lets_it_be_made,
    a_run_without_devices_starts_and_has_none,
    a_directory_on_the_way_to_what_a_rule_names_is_there_to_be_made_anew,
    the_null_device_is_no_cover_of_what_proc_denies,
];

const PROFILE: &str = "extends = 'workspace'
hiding = 'strict'
[files]
hide = ['${workspace}/hidden', '${workspace}/hidden-file']
deny = ['${workspace}/denied']
";

const PREPARED: &str = "mkdir -p hidden/sub denied/sub; echo secret | tee hidden/file denied/file hidden-file denied/sub/file > /dev/null; ln -s hidden link; ln -s . here";

/// The errno of each attempt, by name; and the record.
fn attempts(stage: &Stage, program: &str) -> (Vec<(String, String)>, crate::record::Record) {
    stage.prepare(PREPARED);
    let profile = stage.profile(PROFILE);
    let words = ["python3".into(), "-c".into(), crate::kernel::with_say(program).into()];
    let call = crate::dewar::Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &words), b"");
    assert!(ran.status.success(), "the program failed: {}{}", ran.out(), ran.err());
    let pair = |line: &str| {
        let (name, answer) = line.rsplit_once(' ').expect("an attempt and its answer");
        (name.to_owned(), answer.to_owned())
    };
    (ran.out().lines().map(pair).collect(), stage.record())
}

fn what_is_hidden_inside_of_what_is_granted_does_not_exist_and_is_recorded(stage: &Stage) {
    let (answers, record) = attempts(
        stage,
        "for p in ['hidden/file', 'here/hidden/file', 'link/file', os.getcwd() + '/hidden/file', 'hidden-file', 'hidden/sub/none']:
    say(lambda: open(p).read(), 'read ' + p); say(lambda: os.execv(p, ['x']), 'execute ' + p); say(lambda: os.chmod(p, 0o777), 'chmod ' + p)
say(lambda: os.listdir('hidden'), 'list'); say(lambda: os.listdir('hidden/sub'), 'list below'); say(lambda: os.chdir('hidden/sub'), 'chdir')
say(lambda: os.unlink('hidden/file'), 'unlink'); say(lambda: os.rename('hidden/file', 'mine'), 'rename')",
    );
    for (name, answer) in &answers {
        assert_eq!(answer, "ENOENT", "{name}: {answers:?}");
    }
    for object in ["/hidden/file", "/hidden-file", "/hidden", "/hidden/sub"] {
        record.explains(object);
    }
    assert!(record.denials_of("/none").is_empty(), "{record:?}");
    assert!(stage.work().join("hidden/file").exists());
}

fn what_is_denied_inside_of_what_is_granted_is_refused_and_recorded(stage: &Stage) {
    let (answers, record) = attempts(
        stage,
        "for p in ['denied/file', 'here/denied/file', os.getcwd() + '/denied/sub/file']:
    say(lambda: open(p).read(), 'read ' + p); say(lambda: open(p, 'w'), 'write ' + p)
say(lambda: os.listdir('denied'), 'list'); say(lambda: os.listdir('denied/sub'), 'list below'); say(lambda: open('denied/new', 'w'), 'make')
say(lambda: open('denied/none'), 'missing')",
    );
    for (name, answer) in &answers {
        let want = if name == "missing" { "ENOENT" } else { "EACCES" };
        assert_eq!(answer, want, "{name}: {answers:?}");
    }
    for object in ["/denied/file", "/denied/sub/file", "/denied", "/denied/sub", "/denied/new"] {
        record.explains(object);
    }
    assert!(record.denials_of("/none").is_empty(), "{record:?}");
}

fn denials_below_a_denied_directory_reach_the_closing_line(stage: &Stage) {
    stage.prepare(PREPARED);
    let profile = stage.profile(PROFILE);
    let call = crate::dewar::Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash("cat denied/sub/file")), b"");
    let line = "dewar: denied once: cat may not read or open ";
    assert!(ran.err().contains(line) && ran.err().contains("/denied/sub/file;"), "{}", ran.err());
}

/// Whatever policy would have said of it.
fn what_does_not_exist_is_no_denial(stage: &Stage) {
    let program = "import os
for p in ['~/.curlrc', '~/.config/none/x', '~/.ssh/none', '~/none/deeper', os.environ['OUTSIDE'] + '/none']:
    p = os.path.expanduser(p)
    for use in [open, os.stat, os.listdir, os.chdir, os.unlink, os.rmdir, lambda p: os.rename(p, 'x'), lambda p: os.execv(p, ['x']), lambda p: os.chmod(p, 0o777)]:
        try: use(p); raise SystemExit(p)
        except FileNotFoundError: pass";
    let words = ["python3".into(), "-c".into(), program.into()];
    let ran = run(stage.dewar(stage.call(), &words), b"");
    assert!(ran.status.success(), "{}{}", ran.out(), ran.err());
    let denials = stage.record().denials;
    let texts: Vec<_> = denials.iter().map(crate::record::Denial::text).collect();
    assert!(texts.is_empty(), "denied:\n{}", texts.join("\n"));
}

fn what_would_be_made_where_nothing_is_granted_is_a_denial(stage: &Stage) {
    stage.prepare("mkdir -p ../state/deep");
    let (_, record) = refused(
        stage,
        "h = os.environ['HOME']
say(lambda: open(h + '/new', 'w')); say(lambda: open(h + '/state/deep/made', 'w')); say(lambda: os.mkdir(h + '/state/made')); say(lambda: os.mkdir(h + '/state/none/made'))",
    );
    for object in ["/new", "/state/deep/made", "/state/made"] {
        record.explains(object);
    }
    assert!(record.denials_of("/none/made").is_empty(), "{record:?}");
}

fn the_closing_line_names_what_mattered(stage: &Stage) {
    let script = "for i in 1 2 3; do cat ~/.ssh/id_ed25519; done 2> /dev/null; /usr/bin/python3 -c 'import socket; s = socket.socket(); s.connect((\"192.0.2.1\", 443))' 2> /dev/null; cat ~/.aws/credentials";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    let last = ran.err().lines().last().unwrap_or_default().to_owned();
    assert!(
        last.starts_with("dewar: denied 5 times; likeliest to have mattered: python3 may not"),
        "{last}"
    );
}

fn a_run_tells_which_layers_keep_no_record(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("unshare -U true 2> /dev/null; true")), b"");
    assert!(ran.status.success(), "{}", ran.err());
    let told = run(stage.control(&["explain"]), b"");
    assert!(!told.out().contains("nothing was denied"), "{}", told.out());
    let line = "what leaves no record where it is refused: the system-call filter";
    assert!(told.out().contains(line), "{}", told.out());
}

/// Where there is none, its attributes show, unless the profile is strict; and whoever starts the
/// run is told.
fn what_is_hidden_shows_no_content_where_there_is_no_view(stage: &Stage) {
    let program = "import os
h = os.path.expanduser('~/.ssh/id_ed25519')
for use in [lambda: open(h), lambda: os.open(h, os.O_RDWR), lambda: os.listdir(os.path.dirname(h)), lambda: os.rename(h, 'x'), lambda: os.link(h, 'x'), lambda: os.unlink(h)]:
    try: use(); print('read')
    except FileNotFoundError: pass
    except PermissionError: pass
print('seen' if os.path.exists(h) else 'absent')";
    let words = ["python3".into(), "-c".into(), program.into()];
    for strict in [false, true] {
        let hiding = if strict { "strict" } else { "content" };
        let profile = stage.profile(&format!("extends = 'workspace'\nhiding = '{hiding}'"));
        let call = crate::dewar::Call { profile: Some(&profile), ..stage.call() };
        let ran = run(stage.dewar(call, &words), b"");
        let shows = !stage.variant.has_namespaces() && !strict;
        assert_eq!(ran.out(), if shows { "seen\n" } else { "absent\n" }, "{}", ran.err());
        assert_eq!(ran.warned, shows, "{}", ran.err());
    }
    for layer in ["user", "mount"] {
        let told = run(stage.control(&["doctor", "--without", layer]), b"");
        assert!(told.out().contains("and their attributes"), "{}", told.out());
    }
}

/// Without a view, nothing needs to be looked at that a view would leave out: as many decisions, or
/// fewer.
fn a_build_without_namespaces_takes_no_more_decisions(stage: &Stage) {
    let sources = "for i in 1 2 3; do printf '#include <stdio.h>\\n#include <stdlib.h>\\nint f%d(void) { return puts(\"\"); }\\n' $i > f$i.c; done
        printf 'all: f1.o f2.o f3.o\\n%%.o: %%.c\\n\\tgcc -c $<\\n' > Makefile; rm -f *.o";
    let decisions = |namespaces: bool| {
        stage.prepare(sources);
        let call = crate::dewar::Call { namespaces, ..stage.call() };
        let ran = run(stage.dewar(call, &bash("make -s")), b"");
        assert!(ran.status.success(), "{}", ran.err());
        stage.record().decisions.iter().map(|row| row.queries).sum::<u64>()
    };
    let (with, without) = (decisions(true), decisions(false));
    assert!(without * 10 <= with * 11, "{without} decisions without namespaces, {with} with them");
}

fn patterns_below_the_home_grant_what_they_match(stage: &Stage) {
    stage.prepare(
        "cd ..; mkdir -p data/deep tree/deep; for f in data/a data/deep/b tree/a tree/deep/b .foo1 .foorc .bar; do echo $f > $f; done",
    );
    let profile = stage.profile(
        "extends = 'workspace'\n[files]\nread = ['${home}/data/*', '${home}/.foo*']\nwrite = ['${home}/tree/**']",
    );
    let script = "cd; cat data/a .foo1 .foorc tree/a tree/deep/b; echo new > tree/new; cat tree/new; rm tree/a; \
        cat data/deep/b 2> /dev/null || echo no; cat .bar 2> /dev/null || echo no; cat .ssh/id_ed25519 2> /dev/null || echo no; \
        (echo x > data/new) 2> /dev/null || echo no; (echo x > .foo2) 2> /dev/null || echo no; ls tree/deep";
    for fast in [false, true] {
        stage.prepare("cd ..; echo tree/a > tree/a; rm -f tree/new");
        let call = crate::dewar::Call { profile: Some(&profile), fast, ..stage.call() };
        let ran = run(stage.dewar(call, &bash(script)), b"");
        let want = "data/a\n.foo1\n.foorc\ntree/a\ntree/deep/b\nnew\nno\nno\nno\nno\nno\nb\n";
        assert_eq!(ran.out(), want, "fast: {fast}\n{}", ran.err());
    }
}

/// Nothing else is made there, and what is hidden stays hidden.
fn a_file_is_replaced_atomically_where_a_pattern_lets_it_be_made(stage: &Stage) {
    let profile = stage.profile(
        "extends = 'workspace'\n[files]\nwrite = ['${home}/.tool.json', '${home}/.tool.json.tmp.*']",
    );
    let program = "import os
h = os.path.expanduser('~/'); target = h + '.tool.json'
for n in range(3):
    new = target + '.tmp.%d' % n
    open(new, 'w').write('content %d' % n); os.rename(new, target); print(open(target).read())
open(target + '.tmp.x', 'w').close(); os.unlink(target + '.tmp.x')
open('mine', 'w').close()
for use in [lambda: open(h + '.other', 'w'), lambda: os.rename('mine', h + '.zshenv'), lambda: os.link('mine', h + '.zshenv'), lambda: os.mkdir(h + 'd'), lambda: os.symlink('x', h + '.profile2'),
            lambda: open(h + '.ssh/id_ed25519'), lambda: open(h + '.ssh/new', 'w'), lambda: os.rename(target, h + '.zshenv'), lambda: os.listdir(h), lambda: open(h + '.secret')]:
    try: use(); print('got through')
    except OSError: pass";
    let words = ["python3".into(), "-c".into(), program.into()];
    for fast in [false, true] {
        stage.prepare("cd ..; echo before > .tool.json; echo secret > .secret; rm -f work/mine");
        let call = crate::dewar::Call { profile: Some(&profile), fast, ..stage.call() };
        let ran = run(stage.dewar(call, &words), b"");
        assert_eq!(ran.out(), "content 0\ncontent 1\ncontent 2\n", "fast: {fast}\n{}", ran.err());
        let content = std::fs::read_to_string(stage.home().join(".tool.json")).expect("the file");
        assert_eq!(content, "content 2");
        for name in [".other", ".zshenv", "d", ".profile2", ".ssh/new", ".tool.json.tmp.x"] {
            assert!(!stage.home().join(name).exists(), "{name} was made");
        }
    }
}

/// As `mkdir -p` has it; what is hidden, and what no rule names, does not show.
fn a_directory_on_the_way_to_what_a_rule_names_is_there_to_be_made_anew(stage: &Stage) {
    stage.prepare("cd; mkdir -p .cache/x .config/git other; echo secret > .cache/x/file");
    let script = "mkdir -p ~/.cache ~/.config && python3 -c 'import os; os.makedirs(os.path.expanduser(\"~/.cache\"), exist_ok=True)' && echo made
        ls ~/.cache 2> /dev/null || echo not listed; cat ~/.cache/x/file 2> /dev/null || echo not read; mkdir ~/.cache/new 2> /dev/null || echo not changed";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    let want = "made\nnot listed\nnot read\nnot changed\n";
    assert_eq!(ran.out(), want, "{}", ran.err());
    if stage.variant.has_namespaces() {
        let script = "stat ~/.ssh ~/other ~/.cache/x 2> /dev/null; echo done";
        let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
        assert_eq!(ran.out(), "done\n", "{}", ran.err());
    }
    let ran = run(stage.dewar(stage.call(), &bash("mkdir ~/other")), b"");
    assert_ne!(ran.code(), 0);
    if stage.variant.has_namespaces() {
        let told = crate::explained::explained(stage);
        assert!(!told.contains("make `other` yourself"), "{told}");
    }
}

fn a_run_without_devices_starts_and_has_none(stage: &Stage) {
    for list in ["deny", "hide"] {
        let profile =
            format!("[files]\nread = ['/']\nwrite = ['/']\nexec = ['/']\n{list} = ['/dev']\n");
        let profile = stage.profile(&profile);
        let call = crate::dewar::Call { profile: Some(&profile), ..stage.call() };
        let script = "echo begun; (: < /dev/null) 2>/dev/null && echo opened; exit 3";
        let ran = run(stage.dewar(call, &bash(script)), b"");
        assert_eq!((ran.out().as_str(), ran.status.code()), ("begun\n", Some(3)), "{}", ran.err());
    }
}

fn the_null_device_is_no_cover_of_what_proc_denies(stage: &Stage) {
    let script = "for it in kmsg kallsyms keys; do cat /proc/$it; done; echo x >/dev/null; echo $?";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    assert_eq!(ran.out(), "0\n", "{}", ran.err());
    assert_eq!(ran.err().matches("/proc/kallsyms: Permission denied").count(), 1, "{}", ran.err());
}

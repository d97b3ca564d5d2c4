//! What a person is told about a broken profile.

mod common;

use common::{compile, compile_source};
use miette::Diagnostic as _;
use profile::{Problem, Source};
use std::fs;

/// Message, line, column and help of each error of `text`.
fn errors(text: &str) -> Vec<(String, usize, usize, String)> {
    let errors = compile(text).expect_err(text);
    let one = |error: &profile::ProfileError| {
        let (_, line, column) = error.position().expect("every error has a place");
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        (error.to_string(), line, column, help)
    };
    errors.errors().iter().map(one).collect()
}

#[test]
fn each_mistake_is_named_with_its_place_and_with_what_to_write() {
    for (text, message, help) in [
        ("[file]\n", "unknown key `file`", "did you mean `files`?"),
        ("read = ['/usr']", "unknown key `read`", "did you mean `files.read`?"),
        ("[files]\nraed = []", "unknown key `files.raed`", "did you mean `files.read`?"),
        (
            "[files]\nfiles.read = []",
            "`files.read` does not belong below `[files]`",
            "below `[files]` write `read = …`",
        ),
        (
            "[limits]\nfiles.read = []",
            "`files.read` does not belong below `[limits]`",
            "above the first `[…]`, or `read = …` in a table `[files]`",
        ),
        (
            "[files]\ndomains.g.files.read = []",
            "`domains.g.files.read` does not",
            "`[domains.g.files]`",
        ),
        ("[network]\nfiles.read = []", "`files.read` does not belong below `[network]`", "above"),
        (
            "[files]\nxyzzyx = []",
            "unknown key `files.xyzzyx`",
            "known here: list, read, write, exec",
        ),
        ("[files]\nread = '/usr'", "`files.read` must be a list of strings, not string", "write a"),
        ("[files]\nread = [1]", "`files.read` must be a list of strings, not integer", "write a"),
        ("files = 1", "`files` must be a table, not integer", "write a table"),
        ("mode = 'fats'", "`fats` is not a mode", "write `all` or `fast`"),
        ("[files]\nread = ['${wrkspace}']", "unknown variable `${wrkspace}`", "`${workspace}`"),
        ("[files]\nread = ['src']", "`src` is not an absolute path", "`${workspace}/src`"),
        ("[files]\nread = ['~/.ssh']", "`~/.ssh` is not an absolute path", "`${home}/.ssh`"),
        ("[files]\nread = ['/a/../b']", "bad pattern `/a/../b`: it holds `..`", "without `..`"),
        ("[files]\nread = ['/a[b']", "a `[` is not closed", "[a-z]"),
        ("[files]\nread = ['/a{b']", "a `{` is not closed", "{a,b}"),
        ("[files]\nread = ['/a**b']", "`**` stands beside other characters", "/**/"),
        ("[files]\nread = ['/a\"b']", "double quote", "use `?`"),
        ("[files]\nread = ['/a*\"b']", "double quote", "use `?`"),
        ("[files]\nread = ['/a[\"]b']", "double quote", "use `?`"),
        ("[network]\nconnect = ['github.com']", "no port is named", "`github.com:443`"),
        ("[network]\nconnect = ['https://x.org/']", "it is a URL", "`x.org:443`"),
        ("[network]\nconnect = ['x.org:https']", "not a port", "write 443"),
        ("[network]\nconnect = ['x.org:70000']", "not a port", "65535"),
        ("[network]\nconnect = ['x.org:9-8']", "the range of ports is empty", "8000-8999"),
        ("[network]\nconnect = ['*.x.org:1']", "cannot hold a `*`", "name each host"),
        ("[network]\nconnect = ['::1:80']", "stands in brackets", "`[::1]:PORT`"),
        ("[network]\nconnect = ['10.0.0.1/8:*']", "bits beyond", "`10.0.0.0/8`"),
        ("[network]\nconnect = ['x.org:1/sctp']", "unknown protocol", "/udp"),
        ("[network]\nconnect = ['unix:run/x']", "is not an absolute path", "`${workspace}/run/x`"),
        ("[network]\nbind = ['unix:/run/x']", "creates a file", "files.write"),
        ("[limits]\nmemory = '4X'", "`4X` is not a size", "`512M`"),
        ("[limits]\ntime = '10'", "`10` is not a time", "`10m`"),
        ("[limits]\ncpu = 200", "`200` is not a share", "`200%`"),
        ("capabilities = ['CAP_CHOWN']", "`CAP_CHOWN` is not a capability", "`chown`"),
        (
            "[domains.g]\nexec = ['/g']\ncapabilities = ['chown']",
            "`g` and the base domain keep different capabilities: only one of them has `chown`",
            "name the same ones at the top level",
        ),
        ("capabilities = ['chown']\n[domains.g]\nexec = ['/g']", "has `chown`", "in every domain"),
        ("[domains.Git]\nexec = ['/g']", "`Git` is not a name for a domain", "lower-case"),
        ("[domains.main]\nexec = ['/g']", "`main` is not a domain with `files", "at the top of"),
        ("[domains.git]", "`git` is not a domain that a program enters", "domains.git.exec"),
        ("[domains.g]\nexec = ['/g']\nfrom = ['x']", "not a domain of this profile", "main, g"),
        ("[env]\npass = ['A=b']", "`A=b` is not the name of a variable", "env.set"),
        ("extends = 'workspaces'", "no profile is called `workspaces`", "`workspace`"),
        ("extends = './nothing.toml'", "cannot read profile", ""),
        ("a = = 1", "not valid TOML", ""),
    ] {
        let found = errors(text);
        let (said, line, _, helped) = &found[0];
        assert!(said.contains(message), "{text}: said {said}");
        assert!(helped.contains(help), "{text}: helped {helped}");
        assert!((1..=text.lines().count()).contains(line), "{text}: line {line}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once_in_place_and_in_the_order_of_lines() {
    let text = "mode = 'x'\n[files]\nread = ['/usr', 'b',\n  '${c}']\nwrit = []\n";
    let places: Vec<(usize, usize)> =
        errors(text).into_iter().map(|(_, line, column, _)| (line, column)).collect();
    assert_eq!(places, [(1, 8), (3, 17), (4, 3), (5, 1)]);
}

#[test]
fn a_program_that_enters_two_domains_is_an_error() {
    let text = "[domains.a]\nexec = ['/bin/x']\n[domains.b]\nexec = ['/bin/x']\n";
    assert!(errors(text)[0].0.contains("`/bin/x` enters both `a` and `b` from `main`"));
    let apart = text.replace("[domains.b]", "[domains.b]\nfrom = ['a']");
    let apart = apart.replace("[domains.a]", "[domains.a]\nfrom = ['main']");
    assert!(compile(&apart).is_ok());
}

#[test]
fn a_circle_of_extends_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.toml"), "extends = './b.toml'").unwrap();
    fs::write(dir.path().join("b.toml"), "extends = 'a.toml'").unwrap();
    let errors = compile_source(&Source::File(dir.path().join("a.toml"))).unwrap_err();
    let Problem::Cycle { chain } = &errors.errors()[0].problem else { panic!("{errors:?}") };
    assert_eq!(chain.matches("a.toml").count(), 2);
    assert_eq!(errors.errors()[0].position().unwrap().1, 1);
}

#[test]
fn what_a_profile_extends_is_a_file_before_it_is_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    // Nobody writes into it: to open it would last for ever.
    let pipe = dir.path().join("pipe.toml");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(dir.path().join("a.toml"), "extends = './pipe.toml'").unwrap();
    for (name, why) in
        [("a.toml", "it is no file"), ("pipe.toml", "it is no file"), ("", "a directory")]
    {
        let errors = compile_source(&Source::File(dir.path().join(name))).unwrap_err();
        let Problem::Unreadable { reason, .. } = &errors.errors()[0].problem else {
            panic!("{errors:?}")
        };
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn a_profile_extends_only_so_many_others_however_it_names_them() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..100 {
        let text = format!("extends = './{}.toml'", n + 1);
        fs::write(dir.path().join(format!("{n}.toml")), text).unwrap();
    }
    fs::write(dir.path().join("100.toml"), "").unwrap();
    let names = "workspace+".repeat(90_000);
    fs::write(dir.path().join("names.toml"), format!("extends = '{names}workspace'")).unwrap();
    for name in ["0.toml", "names.toml"] {
        let errors = compile_source(&Source::File(dir.path().join(name))).unwrap_err();
        let said = errors.errors()[0].to_string();
        assert!(said.contains("at most 64"), "{name}: {said}");
    }
    assert!(compile_source(&Source::File(dir.path().join("60.toml"))).is_ok());
}

#[test]
fn a_mistake_in_an_extended_file_is_shown_in_that_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("base.toml"), "\n\nmode = 3").unwrap();
    fs::write(dir.path().join("a.toml"), "extends = './base.toml'").unwrap();
    let errors = compile_source(&Source::File(dir.path().join("a.toml"))).unwrap_err();
    let (file, line, _) = errors.errors()[0].position().unwrap();
    assert!(file.ends_with("base.toml"));
    assert_eq!(line, 3);
}

#[test]
fn the_report_shows_the_line_and_the_help() {
    let errors = compile("[files]\nread = ['src']\n").unwrap_err();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
    let mut report = String::new();
    handler.render_report(&mut report, &errors).unwrap();
    assert!(report.contains("test.toml:2:9"), "{report}");
    assert!(report.contains("read = ['src']"), "{report}");
    assert!(report.contains("help: write `${workspace}/src`"), "{report}");
}

#[test]
fn every_key_that_is_read_is_in_the_list_of_all() {
    let tables = ["", "files.", "network.", "env.", "limits.", "propose.", "domains.NAME."];
    let mut read = Vec::new();
    for table in tables {
        let errors = compile(&format!("{}unheard = 1\n", table.replace("NAME", "git")));
        for error in errors.expect_err(table).errors() {
            if let Problem::UnknownKey { known, .. } = &error.problem {
                read.extend(known.split(", ").map(|key| format!("{table}{key}")));
            }
        }
    }
    let is_table = |key: &String| tables.contains(&&*format!("{key}."));
    // A domain's own are those of the top level.
    read.retain(|key| !is_table(key) && key != "domains" && !key.ends_with("NAME.files"));
    read.retain(|key| !key.ends_with("NAME.network"));
    read.sort();
    let mut all = profile::keys().to_vec();
    all.sort_unstable();
    assert_eq!(read, all);
}

#[test]
fn a_profile_without_a_name_is_said_to_have_none() {
    let errors = compile_source(&Source::from_argument("")).expect_err("it has no name");
    assert_eq!(errors.errors()[0].to_string(), "the name of the profile is empty");
}

#[test]
fn more_domains_than_can_be_compared_are_refused_at_once() {
    let domains = |count: usize| -> String {
        let one = |n| format!("[domains.d{n}]\nexec=[\"/usr/bin/p{n}\"]\ninherit=true\n");
        (0..count).map(one).collect()
    };
    let before = std::time::Instant::now();
    let found = errors(&format!("extends = \"workspace\"\n{}", domains(1200)));
    assert!(found[0].0.contains("more than 64 domains"), "{found:?}");
    assert!(found[0].3.contains("`exec`"), "{found:?}");
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
    compile(&domains(64)).expect("so many there may be");
}

/// Each domain has less than one may have.
#[test]
fn what_domains_have_below_each_other_is_bounded_for_all_of_them_together() {
    let list = |count: usize, text: &dyn Fn(usize) -> String| {
        (0..count).map(|n| format!("'${{workspace}}/{}'", text(n))).collect::<Vec<_>>().join(",")
    };
    let (globs, deep) = (list(60, &|n| format!("**/g{n}")), list(100, &|n| format!("a/w{n}")));
    let domains = |count: usize| -> String {
        let one = |n| format!("[domains.d{n}]\nexec=[\"/usr/bin/p{n}\"]\ninherit=true\n");
        format!("files.read = [{globs}]\nfiles.write = [{deep}]\n")
            + &(0..count).map(one).collect::<String>()
    };
    compile(&domains(2)).expect("so much it may be");
    let found = errors(&domains(60));
    assert!(found.iter().all(|it| it.0.contains("patterns of files")), "{found:?}");
}

/// What globs have below other paths can be many times what the text names.
#[test]
fn more_patterns_than_can_be_compared_are_refused_before_they_fill_memory() {
    let list = |count: usize, text: &dyn Fn(usize) -> String| {
        (0..count).map(|n| format!("'${{workspace}}/{}'", text(n))).collect::<Vec<_>>().join(",")
    };
    let globs = list(300, &|n| format!("{}**/g{n}", "**/a/".repeat(3)));
    let deep = list(2000, &|n| format!("{}w{n}", "a/".repeat(20)));
    let many = list(20_000, &|n| format!("w{n}"));
    for text in [format!("read = [{globs}]\nwrite = [{deep}]"), format!("write = [{many}]")] {
        let found = errors(&format!("[files]\n{text}\n"));
        assert!(found.iter().all(|it| it.0.contains("more than 8192 patterns")), "{found:?}");
    }
}

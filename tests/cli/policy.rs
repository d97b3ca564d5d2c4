//! `dewar policy`.

use super::{dewar, dewar_in};
use std::fs;

#[test]
fn shipped_profiles_are_listed_with_what_they_are_for() {
    let said = dewar(&["policy", "list"]);
    for name in ["workspace", "build", "agent", "readonly", "offline", "web", "open"] {
        let line = said.out.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line.len() > name.len() + 10, "{line}");
    }
    assert_eq!(said.status, 0);
}

#[test]
fn the_policy_of_a_profile_is_printed_in_cil_without_asking_a_name_server() {
    let said = dewar(&["policy", "show", "--cil", "agent"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.contains("(allow main_t usr_t files_exec)"));
    assert!(said.out.contains("; github.com has no address (yet)"));
}

#[test]
fn each_rule_of_the_policy_can_be_printed_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), "[files]\nread = ['/srv']\n").unwrap();
    let said = dewar_in(dir.path(), &["policy", "show", "--cil", "--origins", "x.toml"]);
    let line = said.out.lines().find(|line| line.starts_with("(allow main_t srv_t files_read"));
    assert!(line.unwrap().ends_with("; x.toml:2: '/srv'"), "{line:?}");
}

#[test]
fn what_a_profile_grants_is_shown_for_people() {
    let dir = tempfile::tempdir().unwrap();
    let text = "description = 'mine'\n[files]\nwrite = ['${workspace}']\nhide = ['/srv']\n\
                [domains.git]\nexec = ['/usr/bin/git']\nnetwork.connect = ['example.org:22', '10.0.0.0/8:1-9/udp']\n";
    fs::write(dir.path().join("x.toml"), text).unwrap();
    let workspace = dir.path().canonicalize().unwrap();
    let said = dewar_in(dir.path(), &["policy", "show", "x.toml"]);
    let lines: Vec<String> =
        said.out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "mine".to_owned(),
        format!("rw {}", workspace.display()),
        "hidden /srv".to_owned(),
        "domain git, where it differs from main".to_owned(),
        "enter git by /usr/bin/git".to_owned(),
        "connect example.org:22/tcp".to_owned(),
        "connect 10.0.0.0/8:1-9/udp".to_owned(),
    ] {
        assert!(lines.contains(&line), "{line}\n{}", said.out);
    }
}

#[test]
fn a_profile_is_printed_as_one_text_that_grants_the_same_or_not_at_all() {
    // A profile in the workspace has a line for itself.
    let body = |text: &str| {
        let own = |word: &&str| !["/x.toml", "/own.toml"].iter().any(|it| word.ends_with(it));
        let lines =
            text.lines().skip(1).map(|line| line.split(' ').filter(own).collect::<Vec<_>>());
        let lines = lines.map(|words| words.join(" ").trim_end().to_owned() + "\n");
        let about_it =
            |line: &str| ["r", "rx", "workspace"].contains(&line) || line.ends_with(" by");
        lines.filter(|line| !about_it(line.trim())).collect::<String>()
    };
    let listed = dewar(&["policy", "list", "--json"]).out;
    let listed: Vec<serde_json::Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut names: Vec<&str> = listed.iter().map(|it| it["name"].as_str().unwrap()).collect();
    names.push("./own.toml");
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let dir = tempfile::tempdir().unwrap();
        let own =
            "extends = 'readonly'\nfiles.write = ['${workspace}/out']\nfiles.deny = ['/srv']\n";
        fs::write(dir.path().join("own.toml"), own).unwrap();
        let flat = dewar_in(dir.path(), &["policy", "show", "--toml", name]);
        assert!(flat.status == 0 && !flat.out.contains("extends"), "{name}: {}", flat.err);
        fs::write(dir.path().join("x.toml"), flat.out).unwrap();
        let [one, other] =
            [name, "x.toml"].map(|it| dewar_in(dir.path(), &["policy", "show", "--all", it]));
        assert_eq!(body(&one.out), body(&other.out), "{name}: {}", other.err);
    }
}

#[test]
fn a_profile_that_has_no_one_text_is_named_with_where_it_has_none() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("base.toml"), "files.deny = ['/srv/*']\n").unwrap();
    // Both patterns are as specific: which is the later document decides.
    let text = "extends = './base.toml'\nfiles.read = ['/srv/?*']\n";
    fs::write(dir.path().join("own.toml"), text).unwrap();
    let flat = dewar_in(dir.path(), &["policy", "show", "--toml", "./own.toml"]);
    assert_eq!(flat.status, 2, "{}", flat.out);
    for part in ["/srv", "the order counts", "--cil"] {
        assert!(flat.err.contains(part), "{part}: {}", flat.err);
    }
}

#[test]
fn a_profile_is_printed_without_what_it_has_forgotten_of_what_it_extends() {
    let dir = tempfile::tempdir().unwrap();
    let base = "extends = 'workspace'\n[network]\nconnect = ['old.example:443']\nbind = ['127.0.0.1:80']\n\
                [domains.git]\nexec = ['/usr/bin/git']\nfrom = ['main']\nnetwork.connect = ['git.example:22']\n\
                [domains.cc]\nexec = ['/usr/bin/cc']\n";
    let top = "extends = './base.toml'\n[network]\ninherit = false\nconnect = ['new.example:443']\n\
               [domains.git]\nfrom = ['cc']\n";
    fs::write(dir.path().join("base.toml"), base).unwrap();
    fs::write(dir.path().join("top.toml"), top).unwrap();
    let flat = dewar_in(dir.path(), &["policy", "show", "--toml", "./top.toml"]);
    assert_eq!(flat.status, 0, "{}", flat.err);
    assert!(!flat.out.contains("old.example") && !flat.out.contains("bind"), "{}", flat.out);
    assert!(flat.out.contains("from = [\"main\", \"cc\"]"), "{}", flat.out);
    fs::write(dir.path().join("flat.toml"), &flat.out).unwrap();
    let [own, flat] = ["./top.toml", "./flat.toml"].map(|it| {
        let said = dewar_in(dir.path(), &["policy", "show", "--json", it]);
        let value: serde_json::Value = serde_json::from_str(&said.out).expect(&said.err);
        let grants = |it: &serde_json::Value| {
            [it["name"].clone(), it["connect"].clone(), it["bind"].clone()]
        };
        value["domains"].as_array().unwrap().iter().map(grants).collect::<Vec<_>>()
    });
    assert_eq!(own, flat);
}

#[test]
fn a_profile_as_json_names_each_grant_with_its_units() {
    let dir = tempfile::tempdir().unwrap();
    let text = "files.hide = ['/srv']\nlimits.time = '90s'\nnetwork.connect = ['10.0.0.1:1-9/udp']\n\
                [domains.git]\nexec = ['/usr/bin/git']\n";
    fs::write(dir.path().join("x.toml"), text).unwrap();
    let said = dewar_in(dir.path(), &["policy", "show", "--json", "x.toml"]);
    let value: serde_json::Value = serde_json::from_str(&said.out).expect(&said.err);
    assert_eq!(value["schema"], "dewar/profile/1");
    assert_eq!(value["limits"]["time_seconds"], 90.0);
    let main = &value["domains"][0];
    let hidden = main["files"].as_array().unwrap().iter().find(|it| it["files"] == "/srv").unwrap();
    assert_eq!((&hidden["rights"], &hidden["group"]), (&"hidden".into(), &"system".into()));
    assert_eq!(
        (&main["connect"][0]["last_port"], &main["connect"][0]["protocol"]),
        (&9.into(), &"udp".into())
    );
    assert_eq!(main["entry_points"][0]["domain"], "git");
    assert!(value["policy"]["allow"].as_u64().is_some());
}

#[test]
fn no_line_of_a_shown_profile_is_wider_than_the_terminal() {
    for columns in ["80", "120"] {
        let mut command = assert_cmd::Command::new(test_support::dewar());
        let out =
            command.args(["policy", "show", "agent"]).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let most: usize = columns.parse().unwrap();
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > most).collect();
        assert!(wide.is_empty(), "{wide:?}");
        assert!(text.lines().count() < 110, "{}", text.lines().count());
    }
}

#[test]
fn checking_says_nothing_about_good_profiles_and_everything_about_bad_ones() {
    let good = dewar(&["policy", "check", "workspace", "agent"]);
    assert_eq!((good.status, good.out.as_str(), good.err.as_str()), (0, "", ""));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), "mode = 1").unwrap();
    let bad = dewar_in(dir.path(), &["policy", "check", "workspace", "./x.toml"]);
    assert!(bad.err.contains("`mode` must be a string, not integer"), "{}", bad.err);
    assert_eq!(bad.status, 2);
}

/// A policy with a promise that a rule of an attribute breaks, a condition, and labels.
const CIL: &str =
    "(class file (read write)) (class process (transition)) (classorder (file process))
(user u) (role r) (userrole u r) (type web_t) (type log_t) (type secret_t) (type cgi_t)
(typeattribute domain) (typeattributeset domain (web_t cgi_t)) (roletype r domain)
(boolean web_writes false)
(allow web_t log_t (file (read)))
(booleanif web_writes (true (allow web_t log_t (file (write)))))
(typetransition web_t log_t process cgi_t)
(typetransition web_t log_t file \"audit\" secret_t)
";
const WEB: &str = "u:r:web_t";
const LOG: &str = "u:object_r:log_t";

fn with_policy(extra: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.cil");
    fs::write(&path, format!("{CIL}{extra}")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

#[test]
fn a_decision_is_told_with_the_rules_and_what_would_change_it() {
    let (_dir, path) = with_policy("");
    let said = dewar(&["policy", "av", "-f", &path, WEB, LOG, "file"]);
    assert!(said.out.contains("allowed     read\n"), "{}", said.out);
    assert!(said.out.contains("(allow web_t log_t (file (read)))"), "{}", said.out);
    assert!(said.out.contains("only while web_writes is true"), "{}", said.out);
    let said =
        dewar(&["policy", "av", "-f", &path, "-b", "web_writes=on", "--json", WEB, LOG, "file"]);
    assert!(said.out.starts_with("{\"allowed\":[\"read\",\"write\"]"), "{}", said.out);
    let said = dewar(&["policy", "av", "-f", &path, WEB, "u:object_r:none", "file"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("the policy has no type `none`"), "{}", said.err);
}

#[test]
fn labels_are_computed_by_rule_and_name() {
    let (_dir, path) = with_policy("");
    for (class, name, want) in [
        ("process", None, "u:r:cgi_t\n"),
        ("file", None, "u:object_r:log_t\n"),
        ("file", Some("audit"), "u:object_r:secret_t\n"),
    ] {
        let mut args = vec!["policy", "transition", "-f", &path, WEB, LOG, class];
        args.extend(name);
        assert_eq!(dewar(&args).out, want, "{class} {name:?}");
    }
}

#[test]
fn rules_are_found_by_pattern_and_by_attribute() {
    let (_dir, path) = with_policy("(allow domain secret_t (file (read)))");
    let query = |more: &[&str]| {
        let mut args = vec!["policy", "query", "-f", &path];
        args.extend(more);
        dewar(&args).out
    };
    assert_eq!(query(&["-s", "web_t", "-c", "file", "-k", "allow", "--active"]).lines().count(), 1);
    assert!(
        query(&["-s", "web_t", "-p", "write"]).contains("; if web_writes is true: not in force")
    );
    assert!(query(&["-s", "cgi_t", "-e"]).contains("(allow domain secret_t (file (read)))"));
    assert!(
        query(&["-k", "typetransition"]).contains("(typetransition web_t log_t process cgi_t)")
    );
}

#[test]
fn a_rule_that_breaks_a_promise_is_named_with_it() {
    let (_dir, good) = with_policy("(neverallow domain secret_t (file (write)))");
    assert_eq!(dewar(&["policy", "check", &good]).status, 0);
    let (_dir, bad) = with_policy(
        "(neverallow domain secret_t (file (all)))\n(allow domain secret_t (file (read)))",
    );
    let said = dewar(&["policy", "check", &bad]);
    assert_eq!(said.status, 2);
    for part in [
        "(allow domain secret_t (file (read)))",
        "p.cil:10",
        "(neverallow domain secret_t (file (all)))",
        "p.cil:9",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
}

#[test]
fn a_rule_beyond_its_bounds_is_named_with_both_types_and_places() {
    let bounds = "(typebounds web_t cgi_t)\n";
    let (_dir, good) = with_policy(&format!("{bounds}(allow cgi_t log_t (file (read)))"));
    let said = dewar(&["policy", "check", &good]);
    assert_eq!((said.status, said.out.as_str()), (0, ""));
    let (_dir, bad) = with_policy(&format!("{bounds}(allow cgi_t log_t (file (read write)))"));
    let said = dewar(&["policy", "check", &bad]);
    assert_eq!(said.status, 2);
    for part in [
        "(allow cgi_t log_t (file (read write)))",
        "p.cil:10",
        "grants (write) to cgi_t on log_t, which web_t may not do",
        "(typebounds web_t cgi_t)",
        "p.cil:9",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    assert!(said.err.contains("goes beyond its bounds"), "{}", said.err);
    let said = dewar(&["policy", "check", "--json", &bad]);
    assert!(said.out.contains("\"breaks\":\"typebounds\""), "{}", said.out);
}

#[test]
fn rules_of_every_kind_are_found() {
    let (_dir, path) = with_policy(
        "(role s) (roleallow r s) (roletransition r log_t process s)
(allowx web_t log_t (ioctl file ((range 0x1000 0x10ff))))",
    );
    let query = |more: &[&str]| dewar(&[&["policy", "query", "-f", &path], more].concat());
    for (args, want) in [
        (&["-k", "roleallow"][..], "(roleallow r s)\n"),
        (&["-t", "s"], "(roleallow r s)\n"),
        (&["-k", "roletransition", "-s", "r"], "(roletransition r log_t process s)\n"),
        (
            &["-k", "typetransition", "-c", "file"],
            "(typetransition web_t log_t file \"audit\" secret_t)\n",
        ),
    ] {
        assert_eq!(query(args).out, want, "{args:?}");
    }
    let found = query(&["-x", "0x1010"]).out;
    assert!(
        found.starts_with("(allowx web_t log_t (ioctl file ((range 0x1000 0x10ff))))"),
        "{found}"
    );
    assert_eq!(query(&["-x", "0x2000"]).out, "");
    assert!(query(&["-s", "none"]).err.contains("no type, attribute or role `none`"));
    assert!(query(&["-p", "none"]).err.contains("no permission `none`"));
}

#[test]
fn what_bears_on_authority_is_compared_statement_by_statement() {
    let (_old_dir, old) =
        with_policy("(role s) (boolean b true) (allow web_t web_t (file (read)))");
    let (_new_dir, new) = with_policy(
        "(role t) (roleallow r t) (boolean b false) (typepermissive cgi_t) (typebounds web_t cgi_t)
(constrain (file (read)) (eq u1 u2)) (allow web_t web_t (file (read))) (allow cgi_t web_t (file (read write)))
(booleanif b (true (allow web_t secret_t (file (read)))))",
    );
    let said = dewar(&["policy", "diff", &old, &new]);
    let lines: Vec<&str> = said.out.lines().collect();
    let want = [
        "+ cgi_t web_t file { read }",
        "+ web_t secret_t file { read } if b is true",
        "~ boolean b: true -> false",
        "+ constraint (constrain (file (read)) (eq u1 u2))",
        "+ permissive cgi_t",
        "- role s",
        "+ role t",
        "+ roleallow (roleallow r t)",
        "+ typebounds cgi_t: web_t",
    ];
    assert_eq!(lines, want);
    let said = dewar(&["policy", "diff", "--only", "boolean", "--json", &old, &new]);
    let json = "{\"about\":\"b\",\"new\":\"false\",\"old\":\"true\",\"section\":\"boolean\"}\n";
    assert_eq!(said.out, json);
    assert_eq!(dewar(&["policy", "diff", "--only", "nothing", &old, &new]).status, 2);
}

#[test]
fn authority_is_compared_not_text() {
    let (_old_dir, old) = with_policy("");
    let (_new_dir, new) = with_policy(
        "(typeattribute both) (typeattributeset both (log_t secret_t)) (allow web_t both (file (read)))",
    );
    let authority = |a: &str, b: &str| dewar(&["policy", "diff", "--only", "authority", a, b]).out;
    assert_eq!(authority(&old, &new), "+ web_t secret_t file { read }\n");
    assert_eq!(authority(&new, &old), "- web_t secret_t file { read }\n");
    assert_eq!(dewar(&["policy", "diff", &old, &old]).out, "");
}

#[test]
fn an_exported_policy_is_a_policy_again() {
    let (dir, path) = with_policy("");
    let exported = dir.path().join("again.cil");
    fs::write(&exported, dewar(&["policy", "export", "--cil", &path]).out).unwrap();
    let exported = exported.to_str().unwrap();
    assert_eq!(dewar(&["policy", "diff", &path, exported]).out, "");
    assert_eq!(dewar(&["policy", "check", exported]).status, 0);
}

#[test]
fn every_policy_subcommand_prints_json() {
    let (_dir, path) = with_policy("");
    let policy = &["-f", &path][..];
    for args in [
        &["list"][..],
        &["show", &path],
        &[&["query"], policy].concat(),
        &[&["av"], policy, &[WEB, LOG, "file"]].concat(),
        &[&["transition"], policy, &[WEB, LOG, "file"]].concat(),
        &[&["member"], policy, &[WEB, LOG, "file"]].concat(),
        &[&["change"], policy, &[WEB, LOG, "file"]].concat(),
        &["diff", "workspace", &path],
        &["export", &path],
    ] {
        let said = dewar(&[&["policy"], args, &["--json"]].concat());
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
        assert!(!said.out.is_empty(), "{args:?}");
        for line in said.out.lines() {
            let object = line.starts_with('{') && line.ends_with('}');
            assert!(object, "{args:?}: {line}");
        }
    }
}

#[test]
fn every_policy_subcommand_takes_profiles_too() {
    let said =
        dewar(&["policy", "query", "-f", "workspace", "-k", "allow", "-c", "file", "--json"]);
    assert!(said.out.lines().count() > 3, "{}{}", said.out, said.err);
    assert_eq!(dewar(&["policy", "diff", "workspace", "workspace"]).out, "");
    assert!(dewar(&["policy", "show", "--json", "workspace"]).out.contains("\"allow\":"));
}

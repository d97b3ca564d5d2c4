//! What `explain` and `allow` suggest, followed to the letter: it is true, and the command works.

use super::learn::Home;
use std::fs;

fn home() -> Home {
    let home = Home::new();
    for (path, text) in [("docs/a", "content"), ("docs/deep/b", ""), ("docs/kept", "secret")] {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home
}

/// Standard output and error of a shell's script under the profile that was written.
fn under_profile(home: &Home, script: &str) -> String {
    let said = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", script]);
    format!("{}{}", said.out, said.err)
}

#[test]
fn a_directory_that_may_be_listed_shows_its_names_also_where_all_around_it_is_absent() {
    let home = home();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "echo ~/docs/*"]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains("files.list = [\"${home}/docs\"]"), "{}{}", said.out, said.err);
    assert_eq!(under_profile(&home, "ls ~/docs"), "a\ndeep\nkept\n");
    for script in ["cat ~/docs/a", "ls ~/docs/deep", "cat ~/notes.txt", "echo x > ~/docs/new"] {
        let said = under_profile(&home, script);
        assert!(said.contains("denied once"), "{script}: {said}");
        assert!(!said.contains("content"), "{script}: {said}");
    }
    let hidden = home.profile() + "hide = [\"${home}/docs/kept\"]\n";
    fs::write(home.work().join("dewar.toml"), hidden).unwrap();
    let said = under_profile(&home, "cat ~/docs/kept; ls ~/docs");
    assert!(said.contains("No such file") && !said.contains("secret"), "{said}");
    assert!(said.contains("\ndeep\n"), "{said}");
}

#[test]
fn what_may_not_be_taken_out_of_a_directory_is_allowed_by_writing_it() {
    let home = home();
    let profile =
        "extends = 'workspace'\nfiles.list = ['${home}/docs']\nfiles.read = ['${home}/docs/**']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let said = under_profile(&home, "rm ~/docs/a");
    assert!(said.contains("rm may not remove"), "{said}");
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains("files.write = [\"${home}/docs\"]"), "{}{}", said.out, said.err);
    assert_eq!(under_profile(&home, "rm ~/docs/a"), "");
    assert!(!home.path().join("docs/a").exists());
}

#[test]
fn no_line_is_suggested_for_a_name_that_no_profile_can_hold() {
    let home = home();
    fs::write(home.path().join("docs/q\"uo"), "").unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "cat ~/docs/q*; cat '../docs/q\"uo'"]);
    let said = home.say(&["explain", "--all"]);
    assert!(said.out.contains("no line names it"), "{}", said.out);
    assert!(!said.out.contains("\\\"uo"), "{}", said.out);
    let said = home.say(&["allow", "--all", "--dry-run"]);
    assert!(said.out.contains("no line names it"), "{}{}", said.out, said.err);
}

#[test]
fn a_file_that_is_not_there_is_made_where_the_run_sees_its_directory_or_before() {
    let home = home();
    let script = "echo x > ~/made";
    let profile = "extends = 'workspace'\nfiles.write = ['${home}/made']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    // Said by the run, which the kernel leaves without a denial.
    let said = under_profile(&home, script);
    assert!(said.contains("is not there, and the run sees nothing of its directory"), "{said}");
    fs::write(home.path().join("made"), "").unwrap();
    assert_eq!(under_profile(&home, script), "");
    assert_eq!(fs::read_to_string(home.path().join("made")).unwrap(), "x\n");
    fs::remove_file(home.path().join("made")).unwrap();
    fs::remove_file(home.work().join("dewar.toml")).unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(
        said.out.contains("files.list = [\"${home}\"]\n  the run sees all names"),
        "{}",
        said.out
    );
    for mode in ["", "mode = 'fast'\n"] {
        fs::write(home.work().join("dewar.toml"), mode.to_owned() + &home.profile()).unwrap();
        assert_eq!(under_profile(&home, script), "");
        fs::remove_file(home.path().join("made")).unwrap();
    }
}

#[test]
fn a_command_that_makes_renames_or_removes_works_once_its_denial_is_allowed() {
    for script in [
        "touch ~/docs/new",
        "mkdir ~/docs/new",
        "ln -s x ~/docs/new",
        "mv ~/docs/a ~/docs/new",
        "cp input ~/docs/new",
        "mv input ~/docs/new",
        "rm ~/docs/a",
        "rmdir ~/docs/empty",
        "rm -r ~/docs/deep",
    ] {
        let home = home();
        fs::create_dir(home.path().join("docs/empty")).unwrap();
        home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
        let explained = home.say(&["explain"]).out;
        let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
        let line = "files.write = [\"${home}/docs\"]";
        assert!(said.out.contains(line), "{script}: {}{}", said.out, said.err);
        assert!(explained.contains(line), "{script}: {explained}");
        let said =
            home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", script]);
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{script}: {}", home.profile());
        // The directory that explain names can be named, too.
        let run = ["run", "--no-daemon", "-p", "workspace", "--"];
        home.say(&[&run[..], &["touch", "../docs/other"]].concat());
        let docs = home.path().join("docs").display().to_string();
        let said = home.say(&["allow", &docs, "--dry-run"]);
        assert!(said.out.contains(line), "{}{}", said.out, said.err);
    }
}

/// Its network and its files would be granted to whatever else the run starts.
#[test]
fn a_program_that_lies_elsewhere_is_let_into_its_domain_and_nothing_is_granted_around_it() {
    let home = home();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy("/bin/cat", bin.join("fetch")).unwrap();
    let profile = "extends = 'workspace'\nfiles.exec = ['${home}/bin']\n[domains.fetch]\n\
                   exec = ['/usr/local/bin/{fetch,fetcher}']\nfiles.read = ['${home}/docs']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let script = "~/bin/fetch ~/docs/a";
    assert!(under_profile(&home, script).contains("denied"));
    let line = "domains.fetch.exec = [\"${home}/bin/fetch\"]";
    let explained = home.say(&["explain"]).out;
    assert!(explained.contains(line) && !explained.contains("files.read"), "{explained}");
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains(line) && !said.out.contains("files.read"), "{}", said.out);
    assert_eq!(under_profile(&home, script), "content");
    assert!(under_profile(&home, "cat ~/docs/a").contains("denied once"), "nobody else");
    // What the run could have put there is not let in.
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    fs::copy("/bin/cat", home.work().join("fetch")).unwrap();
    assert!(under_profile(&home, "./fetch ~/docs/a").contains("denied"));
    let explained = home.say(&["explain"]).out;
    assert!(!explained.contains("domains.fetch.exec"), "{explained}");
}

#[test]
fn a_repository_is_let_be_changed_only_where_it_is_named() {
    let home = home();
    let repository = home.path().join("docs");
    fs::create_dir(repository.join(".git")).unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "rm ~/docs/a"]);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert!(said.status == 1 && said.out.contains("name that in full"), "{}", said.out);
    let said = home.say(&["allow", &repository.display().to_string(), "--write", "dewar.toml"]);
    assert!(said.out.contains("UNGUARDED: the hooks"), "{}{}", said.out, said.err);
    assert_eq!(under_profile(&home, "rm ~/docs/a"), "");
}

#[test]
fn what_would_take_a_home_to_be_changed_is_said_to_be_done_outside() {
    let home = home();
    for script in ["rm ~/notes.txt", "ln -s x ~/new"] {
        home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
        for told in [home.say(&["allow", "--all"]), home.say(&["explain", "--toml"])] {
            assert!(told.out.contains("do it outside of the run"), "{script}: {}", told.out);
            assert!(!told.out.contains("files.write"), "{script}: {}", told.out);
        }
    }
}

#[test]
fn a_command_that_failed_without_a_denial_is_led_to_learn() {
    let home = home();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "test -e ~/docs/a"]);
    let said = home.say(&["explain"]);
    assert!(said.out.contains("`dewar learn -- COMMAND`"), "{}", said.out);
    assert!(said.out.contains("-p NAME+loopback"), "{}", said.out);
    home.say(&["run", "--no-daemon", "--", "true"]);
    assert!(!home.say(&["explain"]).out.contains("dewar learn"));
}

#[test]
fn what_the_profile_itself_hides_is_neither_suggested_nor_written() {
    let home = home();
    let profile = "extends = 'workspace'\nfiles.hide = ['${home}/docs/kept']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let said = under_profile(&home, "cat ~/docs/kept");
    assert!(said.contains("denied once"), "{said}");
    let said = home.say(&["explain"]);
    assert!(said.out.contains("no line helps: the profile itself keeps it back"), "{}", said.out);
    assert!(!said.out.contains("files.read"), "{}", said.out);
    let said = home.say(&["allow", "1"]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("not allowed: cat") && !said.out.contains("changed"), "{}", said.out);
    assert_eq!(home.profile(), profile);
}

#[test]
fn a_directory_that_a_run_was_to_make_is_made_before_the_next_one() {
    let home = home();
    let script = "mkdir -p ~/.store && echo x > ~/.store/made && cat ~/.store/made";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let said = home.say(&["explain"]);
    assert!(said.out.contains("/.store/\"]") && !said.out.contains("yourself"), "{}", said.out);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert!(said.out.contains("files.write = [\"${home}/.store/\"]"), "{}{}", said.out, said.err);
    assert!(!said.out.contains("grant"), "{}", said.out);
    assert_eq!(under_profile(&home, script), "x\n");
    // Nor is all of the home suggested for a file.
    home.say(&["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", "echo x > ~/new"]);
    let said = home.say(&["allow", "1"]);
    assert!(said.out.contains("files.write = [\"${home}/new\"]"), "{}", said.out);
}

#[test]
fn an_argument_that_is_there_and_not_in_the_run_is_named_when_the_command_fails() {
    let home = home();
    let path = home.path().join("docs/a").display().to_string();
    let own = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let own = own.path().display().to_string();
    let lib = format!("--find-links={path}");
    let script = "import os, sys; sys.exit(not all(os.path.exists(it) for it in sys.argv[1:]))";
    for (word, want) in [
        (&path, ": files.read = [\"${home}/docs/a\"]".to_owned()),
        (&lib, ": files.read = [\"${home}/docs/a\"]".to_owned()),
        (&own, format!("{own} is there, but a run has a /tmp of its own")),
    ] {
        let run = ["run", "--no-daemon", "--", "/usr/bin/python3", "-c", script, word];
        let said = home.say(&run);
        assert!(said.status == 1 && said.err.contains(&want), "{}", said.err);
        assert!(home.say(&["explain"]).out.contains(&want), "{word}");
    }
    let said = home.say(&["run", "--no-daemon", "--", "test", "-e", "/usr/nowhere"]);
    assert_eq!((said.status, said.err.as_str()), (1, ""));
}

#[test]
fn what_a_command_names_and_does_not_see_is_allowed_by_its_path() {
    let home = home();
    let docs = home.path().join("docs").display().to_string();
    let said = home.say(&["run", "--no-daemon", "--", "ls", &docs]);
    assert!(said.err.contains("is there, but not in this run"), "{}", said.err);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert!(said.err.contains(&format!("`dewar allow {docs}`")), "{}", said.err);
    let said = home.say(&["allow", &docs, "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(home.profile().contains("# ls: allowed"), "{}", home.profile());
    let said = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "ls", &docs]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", home.profile());
    // What lies where the run has a directory of its own, no profile shows.
    let own = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let own = own.path().display().to_string();
    home.say(&["run", "--no-daemon", "-p", "workspace", "--", "ls", &own]);
    for what in ["1", &own] {
        let said = home.say(&["allow", what, "--write", "dewar.toml"]);
        let want = format!("was denied nothing; {own} is there, but a run has a /tmp of its own");
        assert!(said.status == 2 && said.err.contains(&want), "{what}: {}{}", said.out, said.err);
    }
}

#[test]
fn a_profile_that_extends_none_is_told_what_grants_the_system() {
    let home = home();
    fs::write(home.work().join("dewar.toml"), "limits.processes = 500\n").unwrap();
    let said = under_profile(&home, "true");
    assert!(said.contains("`extends = \"workspace\"` at its top does"), "{said}");
}

#[test]
fn a_socket_that_was_tried_in_vain_is_spoken_of_also_when_the_command_has_succeeded() {
    let home = home();
    let profile = "extends = 'workspace'\nnetwork.connect = ['192.0.2.1:443']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let script = |status: i32| {
        format!(
            "exec /usr/bin/python3 -c 'import socket\ntry: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             except PermissionError: exit({status})'"
        )
    };
    for status in [0, 1] {
        let said = under_profile(&home, &script(status));
        assert!(said.contains("denied once: python3 may not create a new udp_socket"), "{said}");
        assert!(home.say(&["explain"]).out.contains("a new udp_socket"));
    }
}

#[test]
fn no_warning_is_given_of_a_gate_that_a_shipped_profile_has_by_itself() {
    let home = home();
    let scripts = "[domains.scripts]\nfiles.read = ['${home}/notes.txt']\n";
    let own = "[domains.own]\nexec = ['/opt/own/tool']\nfiles.read = ['${home}/notes.txt']\n";
    for (lines, domain, is_told) in
        [("", scripts, false), ("", own, false), ("files.write = ['/opt/own']\n", own, true)]
    {
        let profile = format!("extends = 'npm'\n{lines}{domain}");
        fs::write(home.work().join("dewar.toml"), profile).unwrap();
        let said = under_profile(&home, "cat ~/notes.txt");
        let told = said.contains("may write, replace or rename what enters");
        assert!(said.contains("notes") && told == is_told, "{said}");
    }
}

#[test]
fn doctor_says_inside_of_a_run_that_it_is_inside() {
    let home = home();
    let dewar = test_support::install(&home.work(), &["dewar"]);
    let dewar = dewar.display().to_string();
    let said = home.say(&["run", "--no-daemon", "--", &dewar, "doctor"]);
    assert!(said.out.starts_with("This is inside of a run"), "{}{}", said.out, said.err);
}

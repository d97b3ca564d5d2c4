//! `dewar learn --domains`: who alone reaches the network has a domain of its own, if everything
//! runs with it.

use super::learn::Home;
use std::{fs, net::TcpListener, path::Path};
use test_support::copy_program;

/// Reaches a port, and does what else it is told.
const CLIENT: &str = "import os, socket, sys\nsocket.create_connection(('127.0.0.1', int(sys.argv[1])))\nprint(open(os.path.expanduser('~/.config/foo/settings')).read())\n";

/// A home with a client, and a service on loopback.
fn prepare(more: &str) -> (Home, TcpListener, String) {
    let home = Home::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::write(home.work().join("client.py"), format!("{CLIENT}{more}")).unwrap();
    let port = service.local_addr().unwrap().port();
    let command = format!("cat input; /usr/bin/python3 client.py {port}; cat ~/notes.txt");
    (home, service, command)
}

#[test]
fn who_alone_reaches_the_network_gets_a_domain_and_a_replay_is_denied_nothing() {
    let (home, service, command) = prepare("");
    let learn = |file: &str| {
        let said = home.say(&["learn", "--domains", "-o", file, "--", "sh", "-c", &command]);
        assert_eq!(said.status, 0, "{}", said.err);
        (fs::read_to_string(home.work().join(file)).unwrap(), said.err)
    };
    let (learned, told) = learn("first.toml");
    assert!(told.contains("a domain of its own"), "{told}");
    assert!(learned.contains("[domains.python") && !learned.contains("\n[network]"), "{learned}");
    assert_eq!(learn("second.toml").0, learned);

    let run = |file: &str, command: &str| {
        let said = home.say(&["run", "--no-daemon", "-p", file, "--", "bash", "-c", command]);
        (said.status, said.err, said.out, home.denials())
    };
    let (status, err, out, denials) = run("./first.toml", &command);
    assert_eq!((status, err.as_str(), denials), (0, "", 0), "{learned}");
    // Nobody else does.
    let port = service.local_addr().unwrap().port();
    let other = run("./first.toml", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    assert!(other.0 != 0 && other.3 > 0, "{other:?}");

    let entries: Vec<&str> = learned.lines().filter(|line| line.starts_with("    \"")).collect();
    assert!(entries.len() >= 4, "{learned}");
    for entry in entries {
        let less = learned.replace(&format!("{entry}\n"), "");
        fs::write(home.work().join("less.toml"), less).unwrap();
        let less = run("./less.toml", &command);
        // On a loopback of the run's own nobody listens, which is no denial.
        let lacks = less.0 == 2 || less.3 > 0 || less.2 != out;
        assert!(lacks, "{entry} is not needed: {learned}");
    }
}

#[test]
fn a_domain_is_not_made_where_that_is_not_clear_or_something_would_be_denied() {
    // With a domain, nobody signals those outside of it.
    let (home, service, command) = prepare("os.kill(os.getppid(), 0)\n");
    let learn = ["learn", "--force", "--domains", "--", "bash", "-c"];
    let said = home.say(&[&learn[..], &[&command]].concat());
    assert!(said.err.contains("no domain for python3"), "{}", said.err);
    let learned = home.profile();
    assert!(!learned.contains("[domains") && learned.contains("[network]"), "{learned}");
    assert_eq!(
        home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "bash", "-c", &command])
            .status,
        0
    );

    // The command itself reaches it, too.
    let port = service.local_addr().unwrap().port();
    let both = format!("{command}; exec 3<>/dev/tcp/127.0.0.1/{port}");
    let said = home.say(&[&learn[..], &[&both]].concat());
    assert!(!said.err.contains("running again"), "{}", said.err);
    assert!(!home.profile().contains("[domains"), "{}", home.profile());

    // Unasked, it is only said.
    let said = home.say(&["learn", "--force", "--", "bash", "-c", &command]);
    assert!(said.err.contains("--domains keeps it from the others"), "{}", said.err);
}

#[test]
fn no_domain_is_learned_for_a_program_that_the_run_could_exchange() {
    let home = Home::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let fetch = home.path().join("tools/fetch");
    fs::create_dir_all(fetch.parent().unwrap()).unwrap();
    copy_program(Path::new("/bin/bash"), &fetch);
    let command = format!(
        "../tools/fetch -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'; for i in a b c d e; do echo hi > ../tools/$i; done"
    );
    let said = home.say(&["learn", "--domains", "--", "sh", "-c", &command]);
    assert!(said.err.contains("no domain for fetch: the command writes"), "{}", said.err);
    let learned = home.profile();
    assert!(!learned.contains("[domains") && learned.contains("[network]"), "{learned}");
    // Nor is it promised.
    let said = home.say(&["learn", "--force", "--", "sh", "-c", &command]);
    assert!(!said.err.contains("--domains keeps it"), "{}", said.err);
}

#[test]
fn a_socket_that_is_tried_in_vain_keeps_no_program_from_its_domain() {
    let tries = "if os.path.exists('ran'):\n try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n \
                 except PermissionError: pass\nopen('ran', 'w')\n";
    let (home, _service, command) = prepare(tries);
    let said = home.say(&["learn", "--domains", "--", "sh", "-c", &command]);
    assert!(said.err.contains("a domain of its own"), "{}", said.err);
    assert!(home.profile().contains("[domains.python"), "{}", home.profile());
}

#[test]
fn no_domain_is_offered_where_no_line_for_the_network_was_learned() {
    let home = Home::new();
    let bind = "import socket; socket.socket().bind((\"127.0.0.1\", 0))";
    let command = format!("cat input; /usr/bin/python3 -c '{bind}'; true");
    let said = home.say(&["learn", "--", "sh", "-c", &command]);
    assert!(!said.err.contains("reached the network"), "{}", said.err);
    // There is nothing to write at all.
    assert!(!home.work().join("dewar.toml").exists(), "{}", said.err);
}

#[test]
fn what_the_first_run_leaves_where_it_is_learned_from_leads_the_second_nowhere() {
    let (home, service, command) = prepare("");
    let tmp = home.path().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let victim = home.path().join(".ssh/id_ed25519");
    let plant = "for place in ~/tmp/.tmp*; do for name in domains.toml second; do \
                 ln -s ~/.ssh/id_ed25519 $place/$name; done; done";
    let command = format!("{plant}; {command}");
    let args = ["learn", "--domains", "--", "sh", "-c", &command];
    let said = home.say_with(&args, &[("TMPDIR", &tmp)]);
    assert!(said.err.contains("running again"), "{}", said.err);
    assert_eq!(fs::read_to_string(victim).unwrap(), "key", "{}", said.err);
    drop(service);
}

#[test]
fn whoever_may_exchange_the_program_that_enters_a_domain_is_named_at_the_start_and_by_check() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("tools")).unwrap();
    let fetch = home.path().join("tools/fetch");
    copy_program(Path::new("/bin/bash"), &fetch);
    let write = |name: &str, more: &str| {
        let text = format!(
            "extends = 'workspace'\nfiles.write = ['${{home}}/tools']\n{more}[domains.fetch]\n\
             exec = ['${{home}}/tools/fetch']\nnetwork.connect = ['192.0.2.1:443']\n"
        );
        fs::write(home.work().join(name), text).unwrap();
    };
    write("open.toml", "");
    write("shut.toml", "files.readonly = ['${home}/tools/fetch']\n");
    let check = |words: &[&str]| home.say(&[&["policy", "check"], words].concat());
    let run = |profile: &str, command: &str| {
        home.say(&["run", "--no-daemon", "-p", profile, "--", "bash", "-c", command])
    };
    for said in [check(&["./open.toml"]), check(&["--json", "./open.toml"]), run("./open.toml", "")]
    {
        let told = [
            "`main`",
            "domain `fetch`",
            "open.toml:4: '${home}/tools/fetch'",
            "open.toml:2: '${home}/tools':",
        ];
        assert!(told.iter().all(|it| said.err.contains(it)), "{}", said.err);
        assert_eq!((said.status, said.out.as_str()), (0, ""), "{}", said.err);
    }
    assert_eq!(check(&["./shut.toml"]).err, "");
    // What was warned of is so; and what is said to help does.
    let exchange = "cp /bin/true ~/tools/own && mv ~/tools/own ~/tools/fetch";
    let shut = ["mv ~/tools ~/work/tools", "rm ~/tools/fetch", "echo >~/tools/fetch", exchange];
    for command in shut {
        let said = run("./shut.toml", command);
        assert!(said.status != 0 && !said.err.contains("WARNING"), "{command}: {}", said.err);
    }
    assert!(fs::metadata(&fetch).unwrap().len() > 500_000);
    assert_eq!(run("./open.toml", exchange).status, 0);
    assert!(fs::metadata(&fetch).unwrap().len() < 500_000);

    // While it is learned, nearly everything is granted, which has been said.
    let said = home.say(&["learn", "-p", "cargo", "-o", "-", "--", "true"]);
    assert!(!said.err.contains("WARNING"), "{}", said.err);
}

#[test]
fn a_loader_that_enters_a_domain_starts_its_program() {
    let home = Home::new();
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loaders.into_iter().find(|loader| Path::new(loader).exists()).unwrap();
    let file = fs::canonicalize(loader).unwrap();
    let profile = format!("extends = 'workspace'\n[domains.other]\nexec = [{file:?}]\n");
    fs::write(home.work().join("own.toml"), profile).unwrap();
    for variable in ["TMPDIR=/tmp", "LD_DEBUG=all", "A=b"] {
        let script = format!("{variable} {loader} /usr/bin/echo works");
        let run = ["run", "--no-daemon", "-p", "./own.toml", "--", "sh", "-c", &script];
        let said = home.say(&run);
        assert_eq!((said.status, &*said.out), (0, "works\n"), "{variable}: {}", said.err);
    }
}

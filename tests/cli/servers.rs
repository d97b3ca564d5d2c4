//! More ready profiles with the real tools: Git, CMake, PostgreSQL, nginx.

use crate::account::{Account, accounts, has};
use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

#[test]
fn git_clones_and_commits_and_what_it_starts_reaches_nothing() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut account = Account::new(None);
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]
    {
        account.set(name, "me");
    }
    let home = account.path("");
    let base = format!("--base-path={}", home.display());
    // The daemon itself: `git daemon` would leave it behind when it is killed.
    let programs = Command::new("git").arg("--exec-path").output().unwrap().stdout;
    let programs = String::from_utf8(programs).unwrap();
    let mut daemon = Command::new(Path::new(programs.trim()).join("git-daemon"));
    daemon.args(["--export-all", "--listen=127.0.0.1"]).arg(base).arg(format!("--port={free}"));
    daemon.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.directory");
    let mut daemon = daemon.env("GIT_CONFIG_VALUE_0", "*").spawn().unwrap();
    account.write("work/f", "text");
    let own = format!("extends = 'git'\n[domains.git.network]\nconnect = ['127.0.0.1:{free}']\n");
    account.write("own.toml", &own);
    account.write("work/.git/placeholder", "");
    account.green("git", &["git", "init", "-q", "."]);
    // A hook is not run, and what the repository's configuration starts reaches nothing.
    account.write("work/.git/hooks/pre-commit", "#!/bin/sh\ntouch hooked\n");
    let hook = account.path("work/.git/hooks/pre-commit");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(hook, open).unwrap();
    account.green("git", &["sh", "-c", "git add f && git commit -qm one && git log --oneline"]);
    assert!(!account.path("work/hooked").exists());
    account.write("work/attack.sh", &crate::account::attack(free));
    let attack = ["git", "-c", "core.fsmonitor=bash attack.sh >&2; true", "status", "-s"];
    let came = account.run("../own.toml", &attack);
    let said = came.out + &came.err;
    assert!(said.contains("tried") && !said.contains("reached\n"), "{said}");
    assert!(!said.contains("planted"), "{said}");
    let url = format!("git://127.0.0.1:{free}/work");
    account.green("../own.toml", &["git", "clone", "-q", &url, "copy"]);
    assert!(account.path("work/copy/f").exists());
    let _ = daemon.kill();
    let _ = daemon.wait();
}

#[test]
fn cmake_builds_and_tests_without_a_network() {
    if !has("cmake") {
        return;
    }
    accounts(|account| {
        let text = "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(p p.c)\n\
                    enable_testing()\nadd_test(NAME t COMMAND p)\n";
        account.write("work/CMakeLists.txt", text);
        account.write("work/p.c", "int main(void) { return 0; }\n");
        account.give();
        let build = "cmake -B b . && cmake --build b && ctest --test-dir b";
        account.green("cmake", &["sh", "-c", build]);
    });
}

#[test]
fn nginx_serves_its_directory_and_reads_nothing_else() {
    if !has("nginx") {
        return;
    }
    for processes in ["master_process off;", "worker_processes 2;"] {
        serves(processes);
    }
}

fn serves(processes: &str) {
    let account = Account::new(None);
    let root = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let configuration = format!(
        "{root} daemon off; {processes} pid n.pid; error_log e.log;\nevents {{}}\nhttp {{\n  access_log a.log;\n\
         client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
         server {{ listen 127.0.0.1:8443; location / {{ root {0}; }} location /h/ {{ alias {1}; }} }}\n}}\n",
        account.path("work").display(),
        account.path("").display()
    );
    account.write("work/nginx.conf", &configuration);
    account.write("work/index.html", "served");
    account.write("notes.txt", "planted");
    let (work, get) = (account.path("work").display().to_string() + "/", |path: &str| {
        let mut stream = TcpStream::connect("127.0.0.1:8443").ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    });
    let mut server =
        account.start("nginx", &["nginx", "-p", &work, "-c", &format!("{work}nginx.conf")]);
    let answer = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        get("/index.html")
    });
    let other = get("/h/notes.txt");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let _ = server.wait();
    assert!(answer.as_ref().is_some_and(|answer| answer.ends_with("served")), "{answer:?}");
    assert!(other.as_ref().is_some_and(|answer| !answer.contains("planted")), "{other:?}");
}

#[test]
fn postgres_serves_its_directory_and_its_superuser_reaches_nothing() {
    if !has("postgres") {
        return;
    }
    // It refuses to be started by root, and looks its user up.
    let root = rustix::process::geteuid().is_root();
    let mut account = Account::new(root.then_some(65_534));
    account.set("PATH", "/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin");
    account.write("work/attack.sh", &crate::account::attack(5432));
    let script = "set -e\ninitdb -D data -U u > log\npg_ctl -D data -o \"-k $PWD\" -w start >> log\n\
                  psql -h $PWD -U u -tc 'select 6 * 7' postgres\n\
                  psql -h $PWD -U u -c \"copy (select 1) to program 'bash $PWD/attack.sh > $PWD/said'\" postgres || true\n\
                  pg_ctl -D data -w stop >> log\n";
    account.write("work/all.sh", script);
    account.give();
    let came = account.run("postgres", &["bash", "all.sh"]);
    assert_eq!(came.status, 0, "{}{}", came.out, came.err);
    assert!(came.out.contains("42"), "{}", came.out);
    let said = std::fs::read_to_string(account.path("work/said")).unwrap_or_default();
    assert!(said.contains("tried") && !said.contains("reached"), "{said}");
    assert!(!said.contains("planted"), "{said}");
}

//! The broker in C, compiled by gcc against the header, and clients of it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The library, which was built beside this program: the newest of its name.
fn library() -> PathBuf {
    let program = env::current_exe().expect("this program");
    let directory = program.parent().expect("target/PROFILE/deps");
    let files =
        fs::read_dir(directory).expect("it can be listed").flatten().map(|file| file.path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libdewar_port") && name.ends_with(".a")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    files.filter(is_library).max_by_key(age).expect("the static library was built")
}

fn compile(name: &str, directory: &Path) -> PathBuf {
    let program = directory.join(name);
    let output = Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"])
        .arg(format!("{ROOT}/crates/ipc-c/include"))
        .arg(format!("{ROOT}/examples/broker/{name}.c"))
        .arg(library())
        .args(["-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program)
        .output()
        .expect("gcc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

struct Broker(Child, PathBuf, PathBuf);

impl Broker {
    /// What a client of that domain gets; `None` lets it be nobody.
    fn asked_by(&mut self, domain: Option<&str>) -> Output {
        let pipe = Stdio::piped;
        let client =
            Command::new(&self.2).arg(&self.1).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn();
        let mut client = client.expect("a client");
        if let Some(domain) = domain {
            let input = self.0.stdin.as_mut().expect("a pipe");
            writeln!(input, "{} dewar_u:dewar_r:{domain}_t", client.id()).expect("the broker runs");
            let mut line = String::new();
            BufReader::new(self.0.stdout.as_mut().expect("a pipe"))
                .read_line(&mut line)
                .expect("a line");
            assert_eq!(line, "noted\n");
        }
        writeln!(client.stdin.take().expect("a pipe")).expect("the client runs");
        client.wait_with_output().expect("its output")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_broker_in_c_serves_one_domain_and_refuses_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let [broker, client] = ["broker", "client"].map(|name| compile(name, directory.path()));
    let socket = directory.path().join("socket");
    let running = Command::new(broker)
        .arg(&socket)
        .arg(format!("{ROOT}/examples/broker/policy.cil"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut broker = Broker(running.expect("the broker"), socket, client);
    for (domain, want) in [("deploy", "s3cret\n"), ("main", "none for you\n")] {
        let output = broker.asked_by(Some(domain));
        assert_eq!(String::from_utf8_lossy(&output.stdout), want, "{output:?}");
    }
    for domain in [Some("guest"), None] {
        let output = broker.asked_by(domain);
        assert!(!output.status.success() && output.stdout.is_empty(), "{domain:?}: {output:?}");
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(why, "client: Permission denied\n");
    }
}

//! A service outside asks who of a sandbox has connected.

#[path = "../../../../examples/broker/token.rs"]
mod token;

use crate::{
    Case, cases,
    dewar::Call,
    process::{run, until},
    stage::{Stage, bash},
};
use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{fd::AsFd as _, unix::net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// The cases of this part.
pub(crate) const CASES: &[&[Case]] = &[cases![
    a_broker_outside_serves_one_domain_and_refuses_others,
    a_broker_at_a_port_serves_one_domain_and_refuses_others,
    a_service_knows_a_run_from_another_and_from_outside,
    who_has_entered_another_domain_is_not_served_for_what_it_was,
    nobody_passes_for_another_by_the_name_of_a_socket,
]];

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Serves instead of testing, if that is what this program is called for; never returns then.
pub(crate) fn serve_if_called_so() {
    let words: Vec<String> = std::env::args().collect();
    let [_, service, socket] = &words[..] else { return };
    let ended = match service.as_str() {
        "serve-token" => token::serve(Path::new(socket)),
        "serve-who" => who(Path::new(socket)),
        _ => return,
    };
    panic!("the service ended: {ended:?}");
}

/// Says to every client who it is, when it has sent a question mark: it may have been another when
/// it connected.
fn who(path: &Path) -> io::Result<()> {
    for connection in UnixListener::bind(path)?.incoming() {
        let mut connection = connection?;
        let mut byte = [0];
        while byte != *b"?" && connection.read(&mut byte)? > 0 {}
        let answer = match runs::client(connection.as_fd()) {
            Ok(Some(client)) => {
                format!("{} of {}\n", client.domain(), client.run_name().unwrap_or("a run"))
            }
            Ok(None) => "outside\n".into(),
            Err(error) => format!("unknown: {error}\n"),
        };
        // Who has hung up needs no answer.
        let _ = connection.write_all(answer.as_bytes());
    }
    Ok(())
}

/// A service that runs outside. Ended when dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the socket of a service is to be.
fn place(stage: &Stage, name: &str) -> PathBuf {
    let directory = stage.home().join("services");
    if !directory.exists() {
        std::fs::create_dir(&directory).expect("a directory");
        stage.give(&directory);
    }
    directory.join(name)
}

/// Starts a service at `socket`, as the user of the case.
fn service(stage: &Stage, words: &[OsString], socket: &Path) -> Service {
    let mut command = stage.command(words);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the service");
    let service = Service(child);
    until(|| socket.exists().then_some(())).expect("the service listens");
    service
}

/// The words that make this program a service, where every user can execute it.
fn this_program(stage: &Stage, service: &str, socket: &Path) -> [OsString; 3] {
    let path = stage.home().join("service");
    test_support::copy_program(&std::env::current_exe().expect("this program"), &path);
    [path.into(), service.into(), socket.into()]
}

/// The library for C, which was built beside this program: the newest of its name.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let files = std::fs::read_dir(program.parent().expect("target/PROFILE/deps")).expect("files");
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libdewar_port") && name.ends_with(".a")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let files = files.flatten().map(|file| file.path()).filter(is_library);
    files.max_by_key(age).expect("the static library was built")
}

/// Compiles a program in C.
pub(crate) fn compile(source: &str, program: &Path) {
    let output = Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"])
        .arg(format!("{ROOT}/crates/ipc-c/include"))
        .arg(format!("{ROOT}/{source}"))
        .arg(library())
        .args(["-lpthread", "-lm", "-ldl", "-o"])
        .arg(program)
        .output()
        .expect("gcc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A profile in which `deploy` in the workspace is a domain, and both domains reach `socket`.
fn profile(stage: &Stage, socket: &Path) -> PathBuf {
    let profile = stage.home().join("identity.toml");
    let connect = format!("connect = [\"unix:{0}\", \"unix:{0}.silent\"]", socket.display());
    // The home is hidden but for what a rule for files names.
    let directory = socket.parent().expect("a directory").display();
    let text = format!(
        "extends = \"workspace\"\n[files]\nread = [\"{directory}\"]\n[network]\n{connect}\n\
         [domains.deploy]\nexec = [\"${{workspace}}/deploy\"]\nnetwork.{connect}\n"
    );
    stage.file(&profile, &text);
    profile
}

/// Puts a client into the workspace: as itself, which stays in the domain of the command, and as
/// `deploy`.
fn clients(stage: &Stage, source: &str) {
    let program = stage.work().join("client");
    compile(source, &program);
    test_support::copy_program(&program, &stage.work().join("deploy"));
    for name in ["client", "deploy"] {
        stage.give(&stage.work().join(name));
    }
}

/// What a script says in a sandbox, in a run of that name.
fn said(stage: &Stage, profile: &Path, name: &str, script: &str) -> String {
    let call = Call { profile: profile.to_str(), ..stage.call() };
    let mut words = stage.under_dewar(call, &bash(script));
    words.splice(2..2, ["--name".into(), name.into()]);
    let ran = run(stage.command(&words), b"\n\n\n");
    format!("{}{}", ran.out(), ran.err())
}

fn a_broker_outside_serves_one_domain_and_refuses_others(stage: &Stage) {
    clients(stage, "tests/sandbox/src/identity/connect.c");
    let in_c = stage.home().join("token");
    compile("examples/broker/token.c", &in_c);
    for language in ["Rust", "C"] {
        let socket = place(stage, language);
        let words = match language {
            "Rust" => this_program(stage, "serve-token", &socket).to_vec(),
            _ => vec![in_c.clone().into(), socket.clone().into()],
        };
        let _service = service(stage, &words, &socket);
        let profile = profile(stage, &socket);
        let take = |program: &str| format!("./{program} take {}", socket.display());
        let script = [take("client"), take("deploy"), take("client")].join("; ");
        let want = "none for you\ns3cret\nnone for you\n";
        assert_eq!(said(stage, &profile, "one", &script), want, "{language}");
        let outside = run(stage.command(&bash(&take("deploy"))), b"");
        assert_eq!(outside.out(), "none for you\n", "{language}, outside");
    }
}

fn a_broker_at_a_port_serves_one_domain_and_refuses_others(stage: &Stage) {
    clients(stage, "examples/broker/client.c");
    let (broker, socket) = (stage.home().join("broker"), place(stage, "socket"));
    compile("examples/broker/broker.c", &broker);
    let policy = stage.home().join("policy.cil");
    stage.file(&policy, include_str!("../../../../examples/broker/policy.cil"));
    let words = [broker.into(), socket.clone().into(), policy.into()];
    let _service = service(stage, &words, &socket);
    let ask = |program: &str| format!("./{program} {}", socket.display());
    let script = [ask("client"), ask("deploy")].join("; ");
    let answered = said(stage, &profile(stage, &socket), "one", &script);
    assert_eq!(answered, "none for you\ns3cret\n");
    let outside = run(stage.command(&bash(&ask("deploy"))), b"\n");
    assert_eq!(outside.err(), "client: Permission denied\n");
}

fn a_service_knows_a_run_from_another_and_from_outside(stage: &Stage) {
    clients(stage, "tests/sandbox/src/identity/connect.c");
    let socket = place(stage, "socket");
    let _service = service(stage, &this_program(stage, "serve-who", &socket), &socket);
    let profile = profile(stage, &socket);
    let ask = |program: &str| format!("./{program} ask {}", socket.display());
    thread::scope(|scope| {
        for (name, program, want) in
            [("one", "client", "main of one\n"), ("two", "deploy", "deploy of two\n")]
        {
            let (profile, script) = (&profile, ask(program));
            scope.spawn(move || assert_eq!(said(stage, profile, name, &script), want));
        }
    });
    let outside = run(stage.command(&bash(&ask("deploy"))), b"");
    assert_eq!(outside.out(), "outside\n");
    // The run whose directory this service cannot find is not taken for the outside.
    let mut elsewhere = stage.dewar(
        Call { profile: profile.to_str(), daemon: false, ..stage.call() },
        &bash(&ask("client")),
    );
    let runtime = stage.home().join("work/elsewhere");
    std::fs::create_dir(&runtime).expect("a directory");
    stage.give(&runtime);
    elsewhere.env("XDG_RUNTIME_DIR", runtime);
    let unknown = run(elsewhere, b"").out();
    assert!(unknown.starts_with("unknown: ") && unknown.contains("no such run"), "{unknown}");
}

/// It sends as `main`, and is `deploy` when the service asks; then the other way about, for a
/// program that has stayed.
fn who_has_entered_another_domain_is_not_served_for_what_it_was(stage: &Stage) {
    clients(stage, "tests/sandbox/src/identity/connect.c");
    let socket = place(stage, "socket");
    let _service = service(stage, &this_program(stage, "serve-who", &socket), &socket);
    let profile = profile(stage, &socket);
    let script = |program| format!("./client exec {} ./{program}", socket.display());
    let unknown = said(stage, &profile, "one", &script("deploy"));
    assert!(unknown.starts_with("unknown: ") && unknown.contains("another domain"), "{unknown}");
    assert_eq!(said(stage, &profile, "one", &script("client")), "main of one\n");
}

fn nobody_passes_for_another_by_the_name_of_a_socket(stage: &Stage) {
    clients(stage, "tests/sandbox/src/identity/connect.c");
    let socket = place(stage, "socket");
    let silent = place(stage, "socket.silent");
    drop(UnixListener::bind(&silent).expect("a socket"));
    stage.give(&silent);
    let _service = service(stage, &this_program(stage, "serve-who", &socket), &socket);
    let profile = profile(stage, &socket);
    let say = |script: String| said(stage, &profile, "one", &script);
    let (socket, silent) = (socket.display(), silent.display());
    let forged = say(format!("./client name {socket} dewar/1/2.3.4/5"));
    assert_eq!(forged, "bind: Permission denied\n");
    for own in ["anything", "-"] {
        let named = say(format!("./client name {socket} {own}"));
        assert!(named.starts_with("unknown: the client has bound"), "{own}: {named}");
    }
    // The child is another process than the one that the socket is named after.
    assert_eq!(say(format!("./deploy lend {socket} {silent}")), "connect: Permission denied\n");
}

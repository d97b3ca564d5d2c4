//! Asking the run around for a policy that bounds the command further.
//!
//! The command is executed by this very process: the run around it knows who has asked, and gives
//! the new domain to nobody else, at the next exec.

use crate::{
    led::Links,
    machine,
    output::tell,
    run::{RunRequest, prepare, proposing, spelling, summary},
    writable_programs,
};
use anyhow::{Context as _, bail};
use confine::launch::{self, CommandStatus, Inherited, Limits};
use monitor::{InnerPolicy, InsideError, visible};
use profile::{Compiled, Documents, Hiding};
use security_server::{Server, cil};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// The file that asks. No kernel has it: the monitor of a run answers.
const REQUEST: &str = "/proc/self/attr/dewar/exec";

/// How long is waited for others who ask.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name of the policy in explanations.
const POLICY_NAME: &str = "inside";

/// Letters of a profile's name that are kept.
const LONGEST_NAME: usize = 32;

/// What is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    name: String,
    strict: bool,
    cil: String,
}

/// Runs the command under the profile `documents`, within the run `id`.
pub(super) fn run(
    request: &RunRequest,
    inherited: &Inherited,
    (id, documents): (&str, &Documents),
) -> anyhow::Result<CommandStatus> {
    let tmp = tempfile::Builder::new().prefix("dewar-inside-").tempdir();
    let tmp = tmp.context("cannot make a temporary directory for the run inside")?;
    let mut variables =
        machine::variables_inside(request.workspace.as_deref(), machine::real(tmp.path()))?;
    variables.fixed.extend(documents.ways().map(std::path::Path::to_owned));
    let compiled = documents.compile(&variables, &mut machine::resolve, &[])?;
    spelling::insist(request, &compiled, &variables.workspace)?;
    let compiled = Links::of(&variables.workspace).guard(compiled, documents, &mut variables)?;
    writable_programs::warn(&compiled);
    let limits = limits(&compiled, id)?;
    let (domain, hides_names) = ask(&compiled).map_err(|why| {
        anyhow::anyhow!(
            "this is inside of run {id} already, which cannot hold `{}` for {} as well: {why}; nothing was started",
            compiled.name,
            variables.workspace.display()
        )
    })?;
    if !request.quiet {
        tell_inside(&compiled, (id, &domain), hides_names);
    }
    for launch::Withheld { fd, why } in inherited.withheld() {
        tell!("dewar: descriptor {fd} is not handed on: {why}");
    }
    let environment = environment(&compiled, id, &domain);
    // It goes with the temporary directory of the run around.
    let _ = tmp.keep();
    let outcome = launch::inside::execute(&request.command, &environment, inherited, &limits);
    if let CommandStatus::NotExecuted(errno) = outcome {
        summary::tell_not_executed(&request.command[0], errno, None);
    }
    Ok(outcome)
}

/// The limits that a process can set for itself and its children.
fn limits(compiled: &Compiled, id: &str) -> anyhow::Result<Limits> {
    let limits = prepare::limits(compiled);
    let lacking = [
        (limits.time.is_some(), "limits.time"),
        (
            limits.processes.is_some() && rustix::process::geteuid().is_root(),
            "limits.processes of root",
        ),
    ];
    if let Some((_, name)) = lacking.into_iter().find(|(is, _)| *is) {
        bail!(
            "this is inside of run {id} already, where `{name}` of {} cannot be held: no cgroup can be made in it; nothing was \
             started. Set it in the profile of the run around it",
            compiled.name
        );
    }
    Ok(limits)
}

fn environment(compiled: &Compiled, id: &str, domain: &str) -> Vec<(OsString, OsString)> {
    let all = compiled.environment.apply(std::env::vars_os()).0.into_iter();
    let is_around = |name: &OsString| name == super::VARIABLE || name == proposing::VARIABLE;
    let mut all: Vec<(OsString, OsString)> = all.filter(|(name, _)| !is_around(name)).collect();
    // Under which policy, nobody has to know: the next run inside asks anew.
    all.push((super::VARIABLE.into(), format!("{id}/{domain}:").into()));
    all
}

/// What a person has to know beside what the profile says.
fn tell_inside(compiled: &Compiled, (id, domain): (&str, &str), hides_names: bool) {
    tell!(
        "dewar: inside of run {id}, as {}: {} holds for the command, within what that run may do",
        visible(domain),
        compiled.name
    );
    if compiled.private_loopback == Some(false) {
        tell!(
            "dewar: no loopback: the profile asks for one of its own, and inside of a run there is none"
        );
    }
    if hides_names {
        return;
    }
    let hidden = compiled.paths.iter().filter(|path| path.rights.iter().any(|it| it.hidden));
    let shown: Vec<_> = hidden
        .filter_map(|path| path.path.as_ref())
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    if let [first, rest @ ..] = &shown[..] {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        tell!(
            "dewar: {}{more} can be seen to exist, never what is in it: the view is that of the run around",
            visible(&first.to_string_lossy())
        );
    }
}

/// Why the run around does not take a policy.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(
        "it does not take policies from inside (it is of an older version, or not everything in it is decided)"
    )]
    Nobody,
    #[error("{0}")]
    Refused(String),
    #[error("it cannot be asked: {0}")]
    System(#[from] io::Error),
}

/// Asks the run around; the domain that the next program will be in, and whether what is hidden
/// does not show by its name.
fn ask(compiled: &Compiled) -> Result<(String, bool), AskError> {
    let inner = Inner {
        name: name_of(&compiled.name),
        strict: compiled.hiding == Hiding::Strict,
        cil: compiled.cil.clone(),
    };
    let mut stream = open()?;
    // An answer may come before all is sent; it says why then.
    let sent = stream.write_all(&serde_json::to_vec(&inner).map_err(io::Error::other)?);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    let read = stream.take(1 << 16).read_to_string(&mut answer);
    match answer.trim_end().split_once(' ') {
        Some(("in", told)) => {
            let (context, shown) = told.split_once(' ').unwrap_or((told, ""));
            Ok((flask::domain_of(context).to_owned(), shown == "hidden"))
        }
        Some(("no", why)) => Err(AskError::Refused(why.to_owned())),
        _ => {
            sent?;
            read?;
            Err(AskError::Refused("it has not answered".into()))
        }
    }
}

fn open() -> Result<UnixStream, AskError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match File::options().read(true).write(true).open(REQUEST) {
            Ok(file) => return Ok(OwnedFd::from(file).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AskError::Nobody),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The policy that a process inside has sent, whom nobody trusts; it takes about `most` bytes at
/// most.
pub(in crate::run) fn compile(bytes: &[u8], most: usize) -> Result<InnerPolicy, InsideError> {
    let inner: Inner =
        serde_json::from_slice(bytes).map_err(|error| InsideError::Policy(error.to_string()))?;
    let files = [(POLICY_NAME, &inner.cil)];
    let wrong = |error: String| {
        InsideError::Policy(format!("the policy does not compile: {}", visible(&error)))
    };
    let policy = cil::compile_within(&files, most).map_err(|error| wrong(error.to_string()))?;
    let bytes = policy.bytes();
    let server = Server::new(policy).map_err(|error| wrong(error.to_string()))?;
    let name = name_of(&inner.name);
    Ok(InnerPolicy { name, server: Arc::new(server), bytes, strict: inner.strict })
}

/// A profile's name in that of a domain: of a path, the file's without its ending.
fn name_of(name: &str) -> String {
    let last = name.rsplit(['/', ' ']).next().unwrap_or(name);
    let last = last.strip_suffix(".toml").unwrap_or(last);
    let kept = last.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let kept: String = kept.take(LONGEST_NAME).collect();
    if kept.is_empty() { "profile".into() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_domain_holds_nothing_that_steers() {
        for (name, want) in [
            ("profile offline", "offline"),
            ("/home/me/strict tool.toml", "tool"),
            ("a\nb:c\u{1b}[2J", "abc2J"),
            ("..", "profile"),
            (&"x".repeat(1000), &"x".repeat(LONGEST_NAME)),
        ] {
            assert_eq!(name_of(name), want);
        }
    }

    #[test]
    fn what_is_no_policy_is_refused_by_name() {
        for bytes in [
            &b""[..],
            b"{}",
            b"[1]",
            br#"{"name":"x","strict":false,"cil":"(allow"}"#,
            br#"{"name":"x","strict":false,"cil":"","more":1}"#,
            b"\xff\xfe",
        ] {
            assert!(compile(bytes, usize::MAX).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_policy_that_stands_for_more_than_it_may_take_is_refused() {
        let list = |name: &str, form: fn(usize) -> String| -> String {
            format!("{name}{}", (0..500).map(form).collect::<String>())
        };
        let classes = list("(class file (read))", |n| format!("(class k{n} (p))"));
        let order = list("(classorder (file", |n| format!(" k{n}")) + "))";
        let map = list("(classmap m (x))", |n| format!("(classmapping m x (k{n} (p)))"));
        let types = list("(typeattribute at)", |n| format!("(type t{n})"));
        let cil = format!(
            "{classes}{order}{map}{types}(typeattributeset at (all))(allow at self (m (x)))
             (sid kernel)(sidorder (kernel))(sidcontext kernel (u r t0))(user u)(role r)(userrole u r)(roletype r t0)"
        );
        let sent = serde_json::to_vec(&Inner { name: "x".into(), strict: false, cil }).unwrap();
        let error = compile(&sent, 16 << 20).err().expect("it is refused").to_string();
        assert!(error.contains("take more memory"), "{error}");
        let taken = compile(&sent, 64 << 20).unwrap();
        assert!(taken.bytes > 16 << 20, "{}", taken.bytes);
    }

    use proptest::prelude::*;

    /// What could stand in a policy, in no order that makes sense.
    fn word() -> impl Strategy<Value = String> {
        let words = [
            "(",
            ")",
            "\"",
            "(block a ",
            "(blockinherit a)",
            "(macro m ((type t)) ",
            "(call m (a))",
            "(in a ",
            "(type t)",
            "(typeattribute b)",
            "(typeattributeset b (all))",
            "(allow t t (file (read)))",
            "(optional o ",
            "(booleanif (b) ",
            "(tunableif x ",
            "(filecon \"/\" any (u r t ((s) (s))))",
            "\u{202e}",
        ];
        prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert!(compile(&bytes, usize::MAX).is_err());
        }

        #[test]
        fn whatever_policy_is_sent_is_answered(
            words in prop::collection::vec(word(), 0..60), name in ".{0,80}", strict in any::<bool>(),
        ) {
            let sent = serde_json::to_vec(&Inner { name, strict, cil: words.concat() }).unwrap();
            // Whether it is one is the compiler's affair.
            if let Err(error) = compile(&sent, usize::MAX) {
                prop_assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'));
            }
        }
    }
}

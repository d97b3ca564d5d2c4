//! What may be why a command failed though nothing was denied: arguments that are there and not in
//! the run, hosts without an address, variables that are kept out, a profile that grants nothing of
//! the system.

mod named;

pub(super) use named::Named;

use super::{Denial, RunRecord};
use crate::{
    control::{ChangeResult, PolicyChange},
    names::asks_for_names,
    shell,
};
use learn::{Judge, Line, Scope};
use monitor::{Action, DeedKind, Record, visible};
use profile::{Compiled, Documents, Domain, Environment, Fate, PathRule, ResolvedHost, Variables};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// How it is told that a change has killed a process.
pub(crate) const WHILE_IT_RAN: &str = " while the command ran";

/// What a shell ends with where it finds no such program.
const NOT_FOUND: i32 = 127;

/// What is told of one kind.
const MOST_TOLD: usize = 3;
/// Names that are told of many.
const MOST_NAMES: usize = 4;

/// Where programs and libraries of the system lie.
const SYSTEM: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/etc"];

/// What a command names, and what of it a run did not see.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Unseen {
    path: PathBuf,
    /// The list of a profile that would show it.
    key: String,
}

impl Unseen {
    /// What is said of it, and of how a run sees it.
    pub(crate) fn told(&self, variables: &Variables) -> String {
        told(&self.key, &self.path, variables)
    }

    /// Whether somebody who has written `name` means it.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.path.components().eq(Path::new(name).components())
    }

    /// It, if it is the program that `command` stands for.
    pub(super) fn program(&self, command: &OsStr) -> Option<&Path> {
        let is_it = self.path.file_name() == Path::new(command).file_name();
        (is_it && self.key == "files.exec").then_some(&self.path)
    }

    /// As the denial that it would have been, had `command` seen it. What lies where the run has a
    /// directory of its own is no other file's denial.
    pub(crate) fn denial(&self, command: &[String]) -> Option<Denial> {
        if confine::PRIVATE.iter().any(|top| self.path.starts_with(top)) {
            return None;
        }
        let program = command.first().map_or("", String::as_str);
        let permissions: &[&str] =
            if self.key == "files.exec" { &["execute", "read"] } else { &["read", "open"] };
        let requested: Vec<String> = permissions.iter().map(|name| (*name).to_owned()).collect();
        let record = Record {
            comm: program.rsplit('/').next().unwrap_or_default().to_owned(),
            object: self.path.to_string_lossy().into_owned(),
            tclass: "file".into(),
            scontext: "dewar_u:dewar_r:main_t".into(),
            missing: requested.clone(),
            requested,
            ..Record::default()
        };
        Some(Denial { record, profile_rules: Vec::new() })
    }
}

/// That `path` is there, but not in the run, and which line of a profile changes that.
fn told(key: &str, path: &Path, variables: &Variables) -> String {
    let shown = visible(&path.to_string_lossy());
    let mut private = confine::PRIVATE.iter();
    if let Some(top) = private.find(|top| path.starts_with(top)) {
        return format!(
            "{shown} is there, but a run has a {top} of its own: move it, or copy it to the workspace"
        );
    }
    let scope = scope(variables);
    let is_kept = scope.is_wide(path) || scope.secrets.is_one(path);
    let line = Line { key: key.into(), value: scope.text(path), ..Line::default() }.alone();
    let line = if is_kept { String::new() } else { format!(": {}", visible(&line)) };
    format!("{shown} is there, but not in this run{line}")
}

/// What the profile's own file lets be written and is not there, in a directory of which the run
/// sees nothing: the kernel lets nobody make it.
fn unmade(compiled: &Compiled, variables: &Variables) -> Vec<String> {
    let is_own = |rule: &&PathRule| {
        let shown = |domain: &Domain| compiled.shown(&domain.type_name, &rule.type_name);
        let mut places = compiled.domains.iter().filter_map(shown);
        rule.rights.iter().any(|rights| rights.write)
            && places.any(|place| !place.file.starts_with("profile "))
    };
    let paths = compiled.paths.iter().filter(is_own).filter_map(|rule| rule.path.as_deref());
    let mut missing = paths.filter(|path| path.symlink_metadata().is_err()).peekable();
    let Some(judge) = missing.peek().and_then(|_| Judge::new(compiled).ok()) else {
        return Vec::new();
    };
    let scope = scope(variables);
    let line = |path: &Path| Line {
        key: "files.write".into(),
        value: scope.text(path),
        ..Line::default()
    };
    let shut_in = missing.filter(|path| line(path).is_shut_in(&judge, &scope));
    let told = |path: &Path| {
        let shown = visible(&path.to_string_lossy());
        format!(
            "{shown} is not there, and the run sees nothing of its directory: make it before the run"
        )
    };
    shut_in.map(told).take(MOST_TOLD).collect()
}

fn scope(variables: &Variables) -> Scope {
    Scope {
        workspace: variables.workspace.clone(),
        home: variables.home.clone(),
        tmp: variables.tmp.clone(),
        ..Scope::default()
    }
}

/// What is said of a run that failed beside its denials.
pub(super) fn remarks(
    record: &RunRecord,
    (compiled, documents): (&Compiled, &Documents),
    variables: &Variables,
) -> Vec<String> {
    let mut told = Vec::new();
    if record.status == 0 {
        return told;
    }
    let denied = record.denials.iter().map(|denial| denial.record.object.as_str());
    let is_system = |object: &str| SYSTEM.iter().any(|top| Path::new(object).starts_with(top));
    if extends_none(documents) && denied.into_iter().any(is_system) {
        let what = "grants nothing of the system: `extends = \"workspace\"` at its top does";
        told.push(format!("the profile extends none, so it {what}"));
    }
    told.extend(killed(record));
    told.extend(own_profile(record, documents));
    told.extend(file_limit(record, compiled));
    if record.likeliest().is_none() {
        told.extend(record.unseen.iter().map(|it| it.told(variables)));
        told.extend(unmade(compiled, variables));
    }
    if record.status == NOT_FOUND && record.unseen.is_empty() {
        told.extend(path_unseen(record));
    }
    told.extend(not_found(record, compiled));
    if record.likeliest().is_none() {
        told.extend(without_sources(record, &compiled.environment));
    }
    told
}

/// That a change while it ran killed processes.
fn killed(record: &RunRecord) -> Option<String> {
    let killed = |change: &PolicyChange| {
        let ChangeResult::Receipt(receipt) = &change.outcome else { return None };
        let killed = receipt.holders.iter().filter(|it| it.action == Action::Killed);
        let killed: BTreeSet<_> = killed.map(|it| (it.pid, visible(&it.comm))).collect();
        let (_, first) = killed.first()?;
        let more = killed.len() - 1;
        let whom = if more > 0 { format!("{first} and {more} more") } else { first.clone() };
        Some(format!("`{}` killed {whom}{WHILE_IT_RAN}", visible(&change.what)))
    };
    record.changes.iter().find_map(killed)
}

/// Programs with a shipped profile of their own, which reaches what they need.
const WITH_PROFILES: [&str; 7] = ["cargo", "git", "go", "npm", "pip", "pnpm", "uv"];

/// That a program which the network was denied has a shipped profile, where the run is under
/// another.
fn own_profile(record: &RunRecord, documents: &Documents) -> Option<String> {
    // No such profile reaches hosts by SSH, or has keys for them.
    let is_network = |it: &&Denial| {
        let class = it.record.tclass.as_str();
        ["endpoint", "tcp_socket", "udp_socket"].contains(&class)
            && !it.record.program.ends_with("/ssh")
    };
    let denied = record.denials.iter().filter(is_network);
    let name = denied.filter_map(|it| with_profile(&it.record, &record.command)).next()?;
    let own = format!("profile {name}");
    let command = visible(&shell::command(&record.command));
    let is_other = !documents.texts().iter().any(|(text, _)| *text == own);
    is_other.then(|| {
        format!(
            "{name} has a profile that reaches what it needs: `dewar run -p {name} -- {command}`"
        )
    })
}

/// Which of the programs with profiles was denied something: by its name, that of its script, or
/// the command.
fn with_profile(record: &Record, command: &[String]) -> Option<&'static str> {
    let module = command.iter().skip_while(|word| *word != "-m").nth(1);
    let first = command.first().into_iter().chain(module).map(String::as_str);
    let comm = record.comm.split(' ').next();
    let names = [record.program.as_str()].into_iter().chain(comm).chain(first);
    let mut names = names.map(|name| name.rsplit('/').next().unwrap_or_default());
    names.find_map(|name| {
        // `pip3.11`, `git-remote-https`
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let plain = if plain.starts_with("git-") { "git" } else { plain };
        WITH_PROFILES.into_iter().find(|known| *known == plain)
    })
}

/// That a file got as long as the profile lets it get, as far as the status tells.
fn file_limit(record: &RunRecord, compiled: &Compiled) -> Option<String> {
    const STATUS: i32 = 128 + rustix::process::Signal::XFSZ.as_raw();
    (record.status == STATUS && compiled.limits.file_size_bytes.is_some()).then(|| {
        format!(
            "exit status {STATUS} is SIGXFSZ: a file was to get longer than `limits.file_size` of {} lets it",
            compiled.name
        )
    })
}

/// Whether a profile is a file that extends none.
fn extends_none(documents: &Documents) -> bool {
    documents.ways().next().is_some() && documents.texts().len() == 1
}

/// The hosts that a profile names and that had no address, each with a domain that was to reach it.
pub(super) fn unfound(compiled: &Compiled) -> BTreeSet<(String, String)> {
    let of = |domain: &Domain| {
        let hosts = domain.connect.iter().map(|rule| &compiled.hosts[rule.host]);
        let missing = hosts.filter(|host| host.error.is_some());
        let named = missing.map(|host| (domain.name.clone(), host.host.to_string()));
        named.collect::<Vec<_>>()
    };
    compiled.domains.iter().flat_map(of).collect()
}

/// The hosts of shipped profiles without an address, where the run asked a name server. Those that
/// a file names are told at the start.
fn not_found(record: &RunRecord, compiled: &Compiled) -> Option<String> {
    let asks = |object: &str| object.trim_end_matches("/udp").ends_with(":53");
    let has_asked = record.denials.iter().any(|denial| asks_for_names(&denial.record))
        || record.deeds.iter().any(|deed| deed.kind == DeedKind::Contacted && asks(&deed.object));
    let is_missing = |host: &&ResolvedHost| host.error.is_some() && host.file.is_none();
    let missing: Vec<String> =
        compiled.hosts.iter().filter(is_missing).map(|host| host.host.to_string()).collect();
    (has_asked && !missing.is_empty())
        .then(|| format!("not found at the start, so not reached: {}", some_of(&missing)))
}

/// That the profile has pip take no sources, where pip was run: it does not say so itself.
fn without_sources(record: &RunRecord, environment: &Environment) -> Option<String> {
    let is_pip = |word: &String| {
        Path::new(word).file_name().is_some_and(|it| it.as_bytes().starts_with(b"pip"))
    };
    let is_set = environment.set.get("PIP_ONLY_BINARY").is_some_and(|it| !it.is_empty());
    (is_set && record.command.iter().any(is_pip)).then(|| {
        "the profile has pip take wheels only (PIP_ONLY_BINARY): of a package without one, \"no matching distribution\" is \
         found; `pip install --no-binary NAME` builds it, and what that runs reaches the indexes, too"
            .to_owned()
    })
}

/// The variables that the profile keeps out by name or for what they hold.
pub(super) fn variables_kept_out(environment: &Environment) -> Vec<String> {
    let is_kept = |fate: &Fate| matches!(fate, Fate::Dropped(_) | Fate::Secret(_));
    let fates = crate::environment::fates(environment).into_iter();
    fates.filter(|(_, fate)| is_kept(fate)).map(|(name, _)| name).collect()
}

/// That the command is one file outside, which the run does not see, and another was run.
pub(super) fn another((outside, inside): (&Path, &Path)) -> String {
    let [outside, inside] = [outside, inside].map(|path| visible(&path.to_string_lossy()));
    format!(
        "{inside} was run: {outside}, which PATH has before it, is not in this run, unless `files.exec` names it"
    )
}

/// The variables that a run's profile kept out: a program that misses one leaves no denial.
pub(crate) fn kept_out(record: &RunRecord) -> Option<String> {
    let how = "`dewar run --show-env` shows all, and `env.pass` lets them in by name";
    let names = &record.kept_out;
    (!names.is_empty()).then(|| format!("variables kept out: {}; {how}", some_of(names)))
}

/// The directories of `PATH` that a run did not see: a program of one is not found.
pub(crate) fn path_unseen(record: &RunRecord) -> Option<String> {
    let places = record.path_unseen.iter().map(|place| place.to_string_lossy().into_owned());
    let places: Vec<String> = places.collect();
    let what = "directories of PATH that are not in this run, unless `files.exec` names them";
    (!places.is_empty()).then(|| format!("{what}: {}", some_of(&places)))
}

/// The first of several names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).map(|name| visible(name)).collect::<Vec<_>>();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_view_is_told_with_the_line_that_grants_it() {
        let variables = Variables {
            workspace: "/home/me/work".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            ..Variables::default()
        };
        for (path, want) in [
            ("/home/me/wheels", "but not in this run: files.read = [\"${home}/wheels\"]"),
            ("/tmp/x.py", "but a run has a /tmp of its own"),
            ("/home/me/.ssh/id_rsa", "but not in this run"),
            ("/home/me", "but not in this run"),
        ] {
            let said = told("files.read", Path::new(path), &variables);
            assert!(said.starts_with(path) && said.contains(want), "{said}");
            assert_eq!(said.contains("files.read"), want.contains("files.read"), "{said}");
        }
    }

    #[test]
    fn a_program_with_a_profile_of_its_own_is_known_by_its_name_its_script_or_the_command() {
        for (program, comm, command, want) in [
            ("/usr/bin/cargo", "cargo", "make", Some("cargo")),
            ("/usr/bin/node", "npm ci", "sh -c npm", Some("npm")),
            ("/usr/bin/python3.11", "pip3.11", "make", Some("pip")),
            ("/usr/bin/python3.11", "python3", "python3 -m pip install x", Some("pip")),
            ("/usr/lib/git-core/git-remote-http", "git-remote-http", "make", Some("git")),
            ("/usr/bin/curl", "curl", "curl go", None),
        ] {
            let record = Record { program: program.into(), comm: comm.into(), ..Record::default() };
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(with_profile(&record, &command), want, "{program} {comm}");
        }
    }

    #[test]
    fn that_pip_takes_no_sources_is_told_where_pip_was_run() {
        let mut environment = Environment::default();
        let mut record = RunRecord::default();
        for (set, command, want) in [
            (":all:", &["/w/.venv/bin/pip3", "install", "x"][..], true),
            (":all:", &["python3", "-m", "pip", "install", "x"], true),
            (":all:", &["make"], false),
            ("", &["pip", "install", "x"], false),
        ] {
            environment.set.insert("PIP_ONLY_BINARY".into(), set.into());
            record.command = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(without_sources(&record, &environment).is_some(), want, "{set} {command:?}");
        }
    }
}

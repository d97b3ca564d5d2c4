//! `dewar trust`, and the profile that a project brings along: found, read once, and used only if
//! the user has said so.
//!
//! A repository's `dewar.toml` is the word of whoever wrote it. So it is used by itself only after
//! the user has seen what it grants. What is trusted is the text, of all files that it is made of:
//! another text has to be trusted anew.

mod beside;
mod find;
mod lines;
mod store;
mod words;

pub(crate) use find::{NAME, Project, directories, find, untrusted};
pub(crate) use store::{Hash, Store};

use crate::{
    failure::{Failed, Usage},
    machine, output, writable_programs,
};
use anyhow::{Context as _, bail};
use clap::Args;
use flask::visible_name;
use profile::{Compiled, Documents, Source, Variables};
use std::{
    fmt::Write as _,
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};
use words::Words;

const EXAMPLES: &str = "\
Examples:
  dewar trust                    shows what the project's dewar.toml grants, and asks
  dewar trust --yes              trusts it without asking
  dewar trust --list             what is trusted, and whether it still is what it was
  dewar trust --revoke           takes it back

Without -p, `dewar run` uses the dewar.toml of the project: that of the workspace, or of a
directory above it up to the top of its repository. It must be trusted as it is, with what
it extends; when one of these files is changed, it has to be trusted again.

Exit status: 0; 1 if it was not trusted; 2 for wrong use.";

/// Trust the profile that a project brings along.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustArgs {
    /// The dewar.toml, or a directory of its project [default: the working directory]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,

    /// Trust it without asking
    #[arg(short, long)]
    yes: bool,

    /// List what is trusted
    #[arg(long, conflicts_with_all = ["path", "yes", "revoke"])]
    list: bool,

    /// Trust it no more
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
}

/// Carries out `dewar trust`.
pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<()> {
    let store = Store::open()?;
    if args.list {
        return list(&store);
    }
    let place = args.path.as_deref().unwrap_or(Path::new("."));
    if args.revoke {
        return revoke(&store, place);
    }
    let (project, workspace) = project(&store, place)?;
    if store.trusts(&project.path, &project.hash)?.is_some() {
        let said = format!("{} is trusted already\n", project.shown());
        return Ok(output::print(said.as_bytes())?);
    }
    let variables = machine::variables(Some(&workspace), "/tmp".into())?;
    let compiled = project.documents.compile(&variables, &mut profile::unresolved, &[])?;
    let told = told(&project.documents, &compiled, &variables)?;
    output::print(format!("{}\n{told}", project.shown()).as_bytes())?;
    writable_programs::warn(&compiled);
    writable_programs::warn_unentered(&compiled, &project.documents);
    if !args.yes && !ask()? {
        bail!(Failed("nothing was trusted; `dewar trust --yes` trusts it".into()));
    }
    store.add(&project.path, &project.hash)?;
    Ok(output::print(format!("trusted {}\n", project.shown()).as_bytes())?)
}

/// All that a profile says, in words, the worst last: a screen shows the end.
fn told(
    documents: &Documents,
    compiled: &Compiled,
    variables: &Variables,
) -> anyhow::Result<String> {
    let mut text = String::new();
    if let Some(description) = &compiled.description {
        writeln!(text, "  says of itself: {}", visible_name(description))?;
    }
    for (name, _) in documents.texts().iter().skip(1) {
        if name != "profile workspace" {
            writeln!(text, "  extends {}", visible_name(name))?;
        }
    }
    let own = words::compared(compiled, variables)?;
    let proposed = proposals(documents, compiled, variables)?;
    text.extend([own.text, proposed.text, proposed.worst, own.worst]);
    words::readable(text)
}

/// What programs inside can get that the profile does not grant; empty if nothing.
fn proposals(
    documents: &Documents,
    compiled: &Compiled,
    variables: &Variables,
) -> anyhow::Result<Words> {
    let said = |text: &str| Words { text: text.into(), worst: String::new() };
    if !compiled.proposes {
        return Ok(said(""));
    }
    let Some(bound) = documents.bound() else {
        return Ok(said("  lets programs inside propose more, about which you are asked\n"));
    };
    let within = bound.compile(variables, &mut profile::unresolved, &[])?;
    let name = visible_name(bound.name());
    let granted = words::compared(&within, variables)?;
    let text = format!(
        "  lets programs inside propose more. About what they get you are asked, but not within\n  {name}, which\n{}",
        indented(&granted.text)
    );
    let worst = match granted.worst.is_empty() {
        true => String::new(),
        false => format!("  {name}, within which nobody is asked,\n{}", indented(&granted.worst)),
    };
    Ok(Words { text, worst })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// The project's profile, and the workspace that it is for.
fn project(store: &Store, place: &Path) -> anyhow::Result<(Project, PathBuf)> {
    let shown = place.display();
    let real = place
        .canonicalize()
        .map_err(|error| Usage(format!("cannot look at `{shown}`: {error}")))?;
    let directory = match real.is_dir() {
        true => real,
        false if real.file_name().is_some_and(|name| name == find::NAME) => {
            real.parent().context("a file lies in a directory")?.to_owned()
        }
        false => bail!(Usage(format!(
            "`{shown}` is no dewar.toml: only the profile that a project brings along has to be trusted; any other is used \
             by `dewar run -p`"
        ))),
    };
    match find(&directory, Some(store))? {
        Some(project) => Ok((project, directory)),
        None => bail!(Usage(format!(
            "no dewar.toml in {}, nor above it up to the top of its repository; `dewar init` writes one",
            directory.display()
        ))),
    }
}

/// A profile that was trusted before Dewar itself changed it as the user has asked.
pub(crate) struct Kept(Option<(Store, PathBuf, Documents)>);

/// Looks whether the profile at `path` is trusted as it was read: the file held `text`. What it
/// may hold by now says nothing about that text.
pub(crate) fn keep(path: &Path, text: Option<&str>) -> Kept {
    let trusted = || {
        let store = Store::open().ok()?;
        let documents = find::documents_of(path)?;
        let (_, held) = documents.file_texts().next()?;
        (Some(held) == text).then_some(())?;
        store.trusts(path, &Hash::of(&documents)).ok()??;
        Some((store, path.to_owned(), documents))
    };
    Kept(trusted())
}

/// Whether the profile at `path` is trusted as it was read.
pub(crate) fn is_trusted(path: &Path, text: Option<&str>) -> bool {
    keep(path, text).0.is_some()
}

impl Kept {
    /// Trusts it with what Dewar has written, if it was trusted.
    pub(crate) fn again(&self, written: &str) -> anyhow::Result<()> {
        match &self.0 {
            Some((store, path, before)) => {
                trust_as(store, path, written, &before.file_texts().skip(1).collect::<Vec<_>>())
            }
            None => Ok(()),
        }
    }

    /// Trusts it no more, now that Dewar has removed it.
    pub(crate) fn no_more(&self) -> anyhow::Result<()> {
        match &self.0 {
            Some((store, path, _)) => store.remove(path).map(drop),
            None => Ok(()),
        }
    }
}

/// Trusts the profile at `path`, into which Dewar has just written `text`, which extends no file:
/// that text, and nobody else's.
pub(crate) fn trust_written(store: &Store, path: &Path, text: &str) -> anyhow::Result<()> {
    trust_as(store, path, text, &[])
}

/// Trusts the profile at `path` if it is `text`, and extends the very files `others`.
fn trust_as(
    store: &Store,
    path: &Path,
    text: &str,
    others: &[(&Path, &str)],
) -> anyhow::Result<()> {
    let documents = Documents::read(&Source::File(path.to_owned()))?;
    let mut read = documents.file_texts();
    let is_own = read.next().is_some_and(|(_, read)| read == text);
    if !is_own || !read.eq(others.iter().copied()) {
        bail!(
            "`{}`, or what it extends, was changed meanwhile, and is not trusted: `dewar trust` shows it",
            path.display()
        );
    }
    store.add(path, &Hash::of(&documents))
}

fn ask() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    // What was typed before is no answer to this.
    rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    output::print(b"trust it? [y/N] ")?;
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn list(store: &Store) -> anyhow::Result<()> {
    let mut text = String::new();
    let entries = store.entries()?;
    if entries.is_empty() {
        text.push_str("no profile of a project is trusted\n");
    }
    for entry in entries {
        let now = find::hash_of(&entry.path);
        let state = match now {
            Some(now) if now == entry.hash => "",
            Some(_) => "  (changed since: not used)",
            None => "  (not there)",
        };
        let when = humantime::format_rfc3339_seconds(entry.when).to_string();
        writeln!(
            text,
            "{}  {}{state}",
            &when[..10],
            visible_name(&entry.path.display().to_string())
        )?;
    }
    Ok(output::print(text.as_bytes())?)
}

fn revoke(store: &Store, place: &Path) -> anyhow::Result<()> {
    let real = machine::real(place);
    let path = if real.ends_with(find::NAME) { real } else { real.join(find::NAME) };
    if !store.remove(&path)? {
        bail!(Usage(format!(
            "{} is not trusted; `dewar trust --list` lists what is",
            visible_name(&path.display().to_string())
        )));
    }
    let said = format!("trusted no more: {}\n", visible_name(&path.display().to_string()));
    Ok(output::print(said.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What each key of a profile has people told, with the lines that set it.
    const SAID: [(&str, &str, &str); 38] = [
        ("description", "description = 'mine'", "says of itself: mine"),
        ("extends", "extends = 'agent'", "extends profile agent"),
        ("mode", "mode = 'fast'", "leaves reading to the kernel"),
        ("hiding", "hiding = 'strict'", "hides names, too"),
        ("propose.within", "propose.within = 'agent'", "not within\n  profile agent"),
        ("capabilities", "capabilities = ['chown']", "keeps the capability chown"),
        ("exec", "exec = ['/usr/bin/git']", "stays in its domain by executing /usr/bin/git"),
        ("files.list", "files.list = ['/home/me/a']", "may also list ~/a"),
        ("files.read", "files.read = ['/home/me/a']", "may also read ~/a"),
        ("files.write", "files.write = ['/home/me/a/']", "makes ~/a, if it is not there"),
        ("files.exec", "files.exec = ['/home/me/a']", "may also read and execute ~/a"),
        ("files.readonly", "files.readonly = ['/w/a']", "may not write /w/a"),
        ("files.deny", "files.deny = ['/w/a']", "may not write and execute /w/a"),
        ("files.hide", "files.hide = ['/w/a']", "may not write and execute /w/a"),
        ("files.guard", GUARD, "may not change names that programs outside trust"),
        (
            "files.guard_action",
            "files.guard = 'host-trusted'\nfiles.guard_action = 'report'",
            "may change, and Dewar tells of, names that programs outside trust",
        ),
        ("files.unguarded", "files.unguarded = ['/w/a']", "may change such names in /w/a"),
        ("network.connect", "network.connect = ['unix:/srv/x']", "may reach unix:/srv/x"),
        ("network.bind", "network.bind = ['unix:@x*']", "may listen at unix:@x*"),
        ("network.registries", "network.registries = ['npm']", "may reach mirror.example:443"),
        ("network.netlink", "network.netlink = ['xfrm']", "may ask the kernel by netlink xfrm"),
        ("network.loopback", "network.loopback = 'machine'", "may reach 127.0.0.0/8:*"),
        ("network.inherit", "network.inherit = false", "may not ask for interfaces and routes"),
        ("env.pass", "env.pass = ['A_TOKEN']", "sees variables called A_TOKEN"),
        ("env.drop", "env.drop = ['LANG']", "does not see variables called LANG"),
        ("env.set", "env.set = { A = 'b' }", "sets A=b"),
        ("limits.memory", "limits.memory = '4G'", "may use at most 4096 MiB of memory"),
        ("limits.processes", "limits.processes = 9", "may use at most 9 processes"),
        ("limits.cpu", "limits.cpu = '200%'", "may use at most 200 % of one processor"),
        ("limits.time", "limits.time = '90s'", "may use at most 1m 30s of time"),
        ("limits.files", "limits.files = 9", "may use at most 9 open files"),
        ("limits.file_size", "limits.file_size = '4M'", "may use at most 4 MiB for one file"),
        ("domains.NAME.exec", GIT, "is entered by executing (domain git) /usr/bin/git"),
        ("domains.NAME.from", GIT, "/usr/bin/git, in main"),
        ("domains.NAME.noatsecure", GIT, "believes the environment of (domain git) main"),
        ("domains.NAME.serves", GIT, "serves at ports of its own (domain git) main"),
        ("domains.NAME.inherit", GIT, "has (domain git) none of the files"),
        ("domains.NAME.capabilities", CHOWN, "keeps (domain git) the capability chown"),
    ];
    const GUARD: &str = "files.guard = 'host-trusted'";
    const GIT: &str = "[domains.git]\nexec = ['/usr/bin/git']\nfrom = ['main']\nnoatsecure = ['main']\nserves = ['main']\ninherit = false";
    const CHOWN: &str = "capabilities = ['chown']\n[domains.git]\nexec = ['/usr/bin/git']\ncapabilities = ['chown']";

    /// What is said of a profile, which extends `workspace` if it names no other.
    fn said(text: &str) -> String {
        let extends = if text.starts_with("extends") { "" } else { "extends = 'workspace'\n" };
        said_by(&format!("{extends}{text}"))
    }

    fn said_by(text: &str) -> String {
        let npm = profile::Registries {
            endpoints: vec!["mirror.example:443".into()],
            ..profile::Registries::default()
        };
        let variables = Variables {
            workspace: "/w".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            registries: BTreeMap::from([("npm".into(), npm)]),
            private_network: true,
            ..Variables::default()
        };
        let (name, text) = ("/w/dewar.toml".into(), text.to_owned());
        let documents = Documents::read(&Source::Text { name, text, directory: "/w".into() });
        let documents = documents.unwrap();
        let compiled = documents.compile(&variables, &mut profile::unresolved, &[]).unwrap();
        told(&documents, &compiled, &variables).unwrap()
    }

    #[test]
    fn every_key_of_a_profile_is_told_in_words() {
        assert_eq!(SAID.map(|(key, ..)| key), profile::keys(), "a key has no words");
        let default = said("");
        for (key, text, words) in SAID {
            let said = said(text);
            assert!(said.contains(words), "{key}: `{words}` is not in\n{said}");
            assert!(!default.contains(words), "{key}: {default}");
        }
    }

    #[test]
    fn what_a_profile_without_a_base_takes_is_counted() {
        let said = said_by("files.read = ['/usr']");
        assert_eq!(said.matches("  may not use ").count(), 1, "{said}");
        assert!(!said.contains("may not execute") && !said.contains("may not read"), "{said}");
    }

    #[test]
    fn what_is_kept_back_otherwise_stands_last_where_a_screen_shows_it() {
        let many: String = (0..120).map(|at| format!("'/home/me/.cache/part-{at}', ")).collect();
        let power = "network.connect = ['unix:/run/docker.sock', 'unix:/srv/x']\n";
        let said = said(&format!(
            "{power}env.set = {{ A = 'b' }}\nfiles.read = ['/home/me/.ssh/id_rsa', {many}]"
        ));
        let last: Vec<&str> = said.lines().rev().take(2).collect();
        assert!(last[0].contains("GIVES"), "{last:?}");
        assert_eq!(last[1], "  may also read ~/.ssh/id_rsa, kept back otherwise");
    }
}

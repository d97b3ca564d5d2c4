//! Programs whose needs stand out: of all that ran, they alone reach the network. A domain of its
//! own lets such a program do that, and nothing else.

use crate::{Access, Judge, Line, Scope, What, need};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// More domains nobody reads.
const MOST: usize = 3;
/// Longest name of one.
const MOST_LETTERS: usize = 30;

/// A program that is to have a domain of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnDomain {
    /// What the domain is called.
    pub name: String,
    /// What enters it.
    pub program: PathBuf,
}

impl OwnDomain {
    /// The line that makes it.
    #[must_use]
    pub fn line(&self, scope: &Scope) -> Line {
        Line {
            domain: Some(self.name.clone()),
            key: "exec".into(),
            value: scope.text(&self.program),
            comment: "alone it reaches the network".into(),
        }
    }
}

/// The programs that alone reach the network, where `judge` judges by the profile that is learned
/// above; none, where it is not clear who does. A program that is the command itself does not
/// count, as everything would run in its domain; nor one that the run could have written.
#[must_use]
pub fn standing_out(accesses: &BTreeMap<Access, u64>, judge: &Judge) -> Vec<OwnDomain> {
    if accesses.keys().any(|access| access.domain().is_some()) {
        return Vec::new();
    }
    let executed: BTreeSet<&str> =
        accesses.keys().filter_map(|access| executes(access)?.to_str()).collect();
    let reaching: BTreeSet<&str> = accesses
        .keys()
        .filter(|access| reaches(access, judge))
        .map(|access| access.program.as_str())
        .collect();
    // Who was started by a program of the run, and not as its command.
    let is_started = |program: &&&str| {
        accesses.keys().any(|access| {
            let starts = executes(access).is_some_and(|object| object == Path::new(program));
            starts && access.program != ***program && executed.contains(&*access.program)
        })
    };
    let fits = |program: &&&str| is_started(program) && !judge.is_writable(Path::new(program));
    let is_clear = reaching.len() <= MOST
        && reaching.iter().all(|program| fits(&program))
        && executed.iter().any(|program| !reaching.contains(program));
    if !is_clear {
        return Vec::new();
    }
    let mut taken = BTreeSet::from(profile::RESERVED.map(str::to_owned));
    reaching.iter().map(|program| own_domain(program, &mut taken)).collect()
}

fn own_domain(program: &str, taken: &mut BTreeSet<String>) -> OwnDomain {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = name.chars().map(plain).take(MOST_LETTERS).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_lowercase());
    let stem = if name.is_empty() { "program" } else { name };
    let numbered = (2..).map(|number| format!("{stem}{number}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    let name = names.find(|name| taken.insert(name.clone())).unwrap_or_default();
    OwnDomain { name, program: program.into() }
}

/// What `accesses` would have been with the domains: what their programs did is theirs, and that
/// they were started takes no line.
#[must_use]
pub fn as_in(accesses: &BTreeMap<Access, u64>, domains: &[OwnDomain]) -> BTreeMap<Access, u64> {
    let own = |access: &Access| domains.iter().find(|it| it.program == Path::new(&access.program));
    let starts = |access: &Access| {
        executes(access).is_some_and(|object| domains.iter().any(|it| it.program == object))
    };
    let moved = accesses.iter().filter(|(access, _)| !starts(access)).map(|(access, count)| {
        let mut access = access.clone();
        if let Some(domain) = own(&access) {
            let type_name = format!("{}_t", domain.name);
            access.scontext = access.scontext.replace("main_t", &type_name);
            access.tcontext = access.tcontext.replace("main_t", &type_name);
        }
        (access, *count)
    });
    moved.collect()
}

/// The program that an access executes.
fn executes(access: &Access) -> Option<&Path> {
    access.path().filter(|_| access.tclass == "file" && access.wants("execute"))
}

/// Whether it takes a line for the network.
fn reaches(access: &Access, judge: &Judge) -> bool {
    let what = need(access, &judge.missing(access)).map(|need| need.what);
    matches!(what, Some(What::Connect(..) | What::Bind(..) | What::Unix(..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(program: &str, call: &str, tclass: &str, object: &str, wants: &str) -> Access {
        Access {
            granted: true,
            program: program.into(),
            call: call.into(),
            object: object.into(),
            scontext: "dewar_u:dewar_r:main_t".into(),
            tcontext: "dewar_u:object_r:default_t".into(),
            tclass: tclass.into(),
            requested: vec![wants.into()],
            ..Access::default()
        }
    }

    fn started(by: &str, program: &str) -> Access {
        access(by, "execve", "file", program, "execute")
    }

    fn connected(program: &str) -> Access {
        access(program, "connect", "endpoint", "192.0.2.1:443", "name_connect")
    }

    fn found(accesses: &[Access]) -> Vec<String> {
        let text = "[files]\nexec = ['/usr', '/srv/own']\nwrite = ['/srv/own']\n".to_owned();
        let source = profile::Source::Text { name: "base".into(), text, directory: "/".into() };
        let variables = profile::Variables {
            workspace: "/srv/own".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            user: "me".into(),
            ..profile::Variables::default()
        };
        let compiled = profile::load(&source, &variables, &mut profile::unresolved).unwrap();
        let judge = Judge::new(&compiled).unwrap();
        let accesses = accesses.iter().map(|access| (access.clone(), 1)).collect();
        standing_out(&accesses, &judge).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_program_that_alone_reaches_the_network_stands_out_where_that_is_clear() {
        let run = started("/usr/bin/dewar", "/usr/bin/sh");
        let curl = started("/usr/bin/sh", "/usr/bin/curl");
        let (sh, used) = ("/usr/bin/sh", connected("/usr/bin/curl"));
        let remote = "/usr/lib/git-core/git-remote-https";
        let git = [started("/usr/bin/sh", "/usr/bin/git"), started("/usr/bin/git", remote)];
        for (accesses, want) in [
            (vec![run.clone(), curl.clone(), used.clone()], vec!["curl"]),
            (
                [vec![run.clone(), connected(remote)], git.to_vec()].concat(),
                vec!["git_remote_https"],
            ),
            // Nobody; the shell, too; the command itself; what the run could have written.
            (vec![run.clone(), curl.clone()], vec![]),
            (vec![run.clone(), curl.clone(), used.clone(), connected(sh)], vec![]),
            (vec![started("/usr/bin/dewar", "/usr/bin/curl"), used.clone()], vec![]),
            (vec![run.clone(), started(sh, "/srv/own/x"), connected("/srv/own/x")], vec![]),
            // Started by nobody that is known: an interpreter.
            (vec![run, started(sh, "/usr/bin/script"), used], vec![]),
        ] {
            assert_eq!(found(&accesses), want, "{accesses:?}");
        }
    }
}

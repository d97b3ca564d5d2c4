//! Amendments: what was taken from a run, or given to it, after it had started.
//!
//! A profile says what a run starts with; its amendments, in the order in which they were made, say
//! what became of that. A revocation takes from everything that the profile grants, also by more
//! specific patterns. A grant takes revocations back where there were some; elsewhere it gives what
//! the profile neither grants nor denies nor hides.

use crate::error::{Problem, Reporter, closest};
use crate::hosts::{self, ResolvedHost};
use crate::merged::Profile;
use crate::mounted::Mounted;
use crate::network::{self, AbstractName, Endpoints, Host, NetworkObject};
use crate::pattern::{self, Pattern};
use crate::source::TextSpan;
use crate::variables::Variables;
use realpath::RealPaths;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

/// One change to what a run may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amendment {
    /// When it was made.
    pub when: SystemTime,
    /// Takes or gives.
    pub kind: AmendmentKind,
    /// The domain that it is about, as the profile names it; `None` for all.
    pub domain: Option<String>,
    /// What is taken or given.
    pub object: AmendedObject,
    /// Of a pattern for files that led through symbolic links when the amendment was made: its path
    /// before the first glob, and where that lay. The amendment is about both.
    #[serde(default)]
    pub led: Vec<(PathBuf, PathBuf)>,
    /// Who proposed it inside of the run, and by whom it was granted.
    #[serde(default)]
    pub proposed: Option<String>,
}

/// Whether an amendment takes or gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AmendmentKind {
    /// Takes.
    Revoke,
    /// Gives back, or gives.
    Grant,
}

/// What an amendment is about. Patterns are those of profiles, and take what lies below, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AmendedObject {
    /// Files: taking them takes everything, giving them gives reading.
    Files(String),
    /// Writing files.
    Write(String),
    /// Executing files. Only what was taken can be given.
    Exec(String),
    /// `HOST[:PORT[/PROTOCOL]]`; without a protocol, both TCP and UDP.
    Network {
        /// The endpoint.
        endpoint: String,
        /// For a name, what it resolved to when the amendment was made. Addresses that the run knew
        /// by that name are meant, too.
        addresses: Vec<IpAddr>,
    },
    /// Connecting to a unix socket: a pattern, or `@NAME` for abstract ones.
    Unix(String),
    /// Everything: nothing is granted any more but to signal processes of the same domain, so that
    /// a process can end itself and its children. Given, it takes every revocation back.
    All,
}

impl Amendment {
    /// An amendment of now, which no link leads anywhere.
    #[must_use]
    pub fn new(kind: AmendmentKind, domain: Option<String>, object: AmendedObject) -> Self {
        let (led, proposed) = (Vec::new(), None);
        Self { when: SystemTime::now(), kind, domain, object, led, proposed }
    }

    /// Where symbolic links lead its patterns for files now, for [`Amendment::led`]. What `/proc`
    /// leads elsewhere for each process is left out.
    #[must_use]
    pub fn links(&self, variables: &Variables) -> Vec<(PathBuf, PathBuf)> {
        use AmendedObject::{Exec, Files, Unix, Write};
        let (Files(text) | Write(text) | Exec(text) | Unix(text)) = &self.object else {
            return Vec::new();
        };
        let patterns = pattern::parse(text, variables).unwrap_or_default();
        let tops = patterns.iter().map(|pattern| PathBuf::from(pattern.literal_start()));
        let paths = RealPaths::new();
        let pairs = tops.map(|top| (paths.existing_part(&top), top));
        let is_link = |(real, top): &(PathBuf, PathBuf)| {
            real != top && ![real, top].iter().any(|path| path.starts_with("/proc"))
        };
        pairs.filter(is_link).map(|(real, top)| (top, real)).collect()
    }

    /// The host name that it speaks about, if it is one that has to be resolved.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let AmendedObject::Network { endpoint, .. } = &self.object else { return None };
        let name = |endpoints: &Endpoints| match &endpoints.host {
            Host::Name(name) if name != "localhost" => Some(name.clone()),
            _ => None,
        };
        parse_endpoints(endpoint).ok()?.first().and_then(name)
    }

    /// Regular expressions over the paths of the files that it is about.
    #[must_use]
    pub fn named_files(&self, variables: &Variables) -> Vec<String> {
        use AmendedObject::{Exec, Files, Write};
        let (Files(text) | Write(text) | Exec(text)) = &self.object else { return Vec::new() };
        let patterns = self.paths(text, variables).unwrap_or_default();
        patterns.iter().map(|pattern| pattern.regex().to_owned()).collect()
    }

    /// The patterns that `text` stands for in it.
    fn paths(&self, text: &str, variables: &Variables) -> Result<Vec<Pattern>, Problem> {
        let patterns = pattern::parse(text, variables)?;
        let mut all: Vec<Pattern> =
            patterns.into_iter().map(Pattern::with_everything_below).collect();
        for places in [Mounted::new(&self.led), Mounted::new(&variables.mounted)] {
            let elsewhere = |pattern| match self.kind {
                AmendmentKind::Revoke => places.elsewhere(pattern),
                AmendmentKind::Grant => places.certainly_elsewhere(pattern),
            };
            let elsewhere: Vec<Pattern> = all.iter().flat_map(elsewhere).collect();
            all.extend(elsewhere);
        }
        Ok(all)
    }

    /// What stands in it for a person to get wrong.
    fn text(&self) -> &str {
        match &self.object {
            AmendedObject::Files(text)
            | AmendedObject::Write(text)
            | AmendedObject::Exec(text)
            | AmendedObject::Unix(text)
            | AmendedObject::Network { endpoint: text, .. } => text,
            AmendedObject::All => "--all",
        }
    }
}

impl fmt::Display for Amendment {
    /// As a command: `dewar revoke --file /srv`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            AmendmentKind::Revoke => "dewar revoke",
            AmendmentKind::Grant => "dewar grant",
        })?;
        if let Some(domain) = &self.domain {
            write!(f, " --domain {domain}")?;
        }
        match &self.object {
            AmendedObject::Files(pattern) => write!(f, " --file {}", quoted(pattern)),
            AmendedObject::Write(pattern) => write!(f, " --file {} --write", quoted(pattern)),
            AmendedObject::Exec(pattern) => write!(f, " --exec {}", quoted(pattern)),
            AmendedObject::Network { endpoint, .. } => write!(f, " --net {}", quoted(endpoint)),
            AmendedObject::Unix(name) => write!(f, " --unix {}", quoted(name)),
            AmendedObject::All => f.write_str(" --all"),
        }
    }
}

/// `text` as a shell takes it for itself.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:@+,%=".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// An amendment, read.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) kind: AmendmentKind,
    /// Index of the domain; `None` for all.
    domain: Option<usize>,
    pub(crate) place: TextSpan,
    pub(crate) object: ClauseObject,
}

/// What a clause is about.
#[derive(Clone, Debug)]
pub(crate) enum ClauseObject {
    Paths(PathUse, Vec<Pattern>),
    /// The hosts of all of them are that of the clause.
    Endpoints(ResolvedHost, Vec<Endpoints>),
    /// `None` for all abstract names.
    Abstract(Option<AbstractName>),
    All,
}

/// Which use of files is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathUse {
    Everything,
    Write,
    Exec,
    Connect,
}

impl Clause {
    /// Whether it revokes every use of some files.
    pub(crate) fn takes_everything(&self) -> bool {
        self.kind == AmendmentKind::Revoke
            && matches!(self.object, ClauseObject::Paths(PathUse::Everything, _))
    }

    /// Whether both are about some domain.
    pub(crate) fn shares_domain(&self, other: &Self) -> bool {
        self.domain.is_none() || other.domain.is_none() || self.domain == other.domain
    }

    /// Whether it is about that domain.
    pub(crate) fn is_about(&self, domain: usize) -> bool {
        self.domain.is_none_or(|this| this == domain)
    }
}

/// Whether everything was taken from a domain, and where that was said.
pub(crate) fn everything(clauses: &[Clause], domain: usize) -> Option<TextSpan> {
    let last =
        clauses.iter().rfind(|c| matches!(c.object, ClauseObject::All) && c.is_about(domain));
    last.filter(|clause| clause.kind == AmendmentKind::Revoke).map(|clause| clause.place)
}

/// Reads `amendments` to `profile`. What is wrong goes to `reporter`; `known` are the hosts of the
/// profile.
pub(crate) fn read(
    amendments: &[Amendment],
    profile: &Profile,
    known: &[ResolvedHost],
    variables: &Variables,
    reporter: &mut Reporter,
) -> Vec<Clause> {
    let mut clauses = Vec::new();
    for amendment in amendments {
        let place = reporter.sources.add_amendment(title(amendment), amendment.text());
        let read = clause(amendment, profile, known, variables, place);
        clauses.extend(reporter.take(read, place));
    }
    clauses
}

fn title(amendment: &Amendment) -> String {
    let done = match amendment.kind {
        AmendmentKind::Revoke => "revoked",
        AmendmentKind::Grant => "granted",
    };
    let when = humantime::format_rfc3339_seconds(amendment.when);
    let by = amendment.proposed.as_ref().map_or(String::new(), |who| format!(", {who},"));
    format!("{done} by `{amendment}`{by} at {when}")
}

fn clause(
    amendment: &Amendment,
    profile: &Profile,
    known: &[ResolvedHost],
    variables: &Variables,
    place: TextSpan,
) -> Result<Clause, Problem> {
    let names: Vec<&str> = profile.domains.iter().map(|domain| domain.name.as_str()).collect();
    let index = |name: &String| {
        let unknown = || Problem::bad(name, "a domain of this run", domains(name, &names));
        names.iter().position(|known| known == name).ok_or_else(unknown)
    };
    let domain = amendment.domain.as_ref().map(index).transpose()?;
    let paths = |text: &str| amendment.paths(text, variables);
    let object = match &amendment.object {
        AmendedObject::Files(text) => ClauseObject::Paths(PathUse::Everything, paths(text)?),
        AmendedObject::Write(text) => ClauseObject::Paths(PathUse::Write, paths(text)?),
        AmendedObject::Exec(text) => ClauseObject::Paths(PathUse::Exec, paths(text)?),
        AmendedObject::Unix(text) => match network::parse(&format!("unix:{text}"), variables)? {
            NetworkObject::Abstract(_, name) => ClauseObject::Abstract(name),
            _ => ClauseObject::Paths(PathUse::Connect, paths(text)?),
        },
        AmendedObject::Network { endpoint, addresses } => {
            let endpoints = parse_endpoints(endpoint)?;
            let host = resolve(&endpoints[0].host, addresses, known, variables);
            ClauseObject::Endpoints(host, endpoints)
        }
        AmendedObject::All => ClauseObject::All,
    };
    Ok(Clause { kind: amendment.kind, domain, place, object })
}

fn domains(name: &str, names: &[&str]) -> String {
    let meant = closest(name, names.iter().copied());
    let meant = meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
    format!("{meant}domains here are {}", names.join(", "))
}

/// The endpoints that `HOST[:PORT[/PROTOCOL]]` stands for, at least one, all of one host.
fn parse_endpoints(text: &str) -> Result<Vec<Endpoints>, Problem> {
    let behind = text.rfind(']').map_or(text, |end| &text[end..]);
    let mut texts = vec![text.to_owned()];
    if behind.matches(':').count() == 0 {
        texts[0].push_str(":*");
    }
    if !["/tcp", "/udp"].iter().any(|protocol| text.ends_with(protocol)) {
        texts = ["tcp", "udp"].map(|protocol| format!("{}/{protocol}", texts[0])).to_vec();
    }
    texts.iter().map(|text| network::parse_endpoints(text)).collect()
}

/// The addresses of `host`: for a name, those that the run knows and those that the amendment
/// brings.
fn resolve(
    host: &Host,
    addresses: &[IpAddr],
    known: &[ResolvedHost],
    variables: &Variables,
) -> ResolvedHost {
    let known = known.iter().find(|known| known.host == *host);
    let known = known.into_iter().flat_map(|known| &known.networks).map(|(address, _)| *address);
    let all: Vec<IpAddr> = addresses.iter().copied().chain(known).collect();
    hosts::resolve_one(host.clone(), variables, &mut || Ok(all.clone()))
}

//! Lines of a profile: one entry of one list, with who needed it.

use crate::{Detail, Judge, Need, Scope, What, executed::holds_trusted, literal};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

/// One entry of one list of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The domain whose list it is; `None` for the base domain.
    pub domain: Option<String>,
    /// The list: `files.read`, `network.connect`, … `network.netlink` has no entries: it is set.
    pub key: String,
    /// The entry.
    pub value: String,
    /// Who needed it, and how often.
    pub comment: String,
}

impl Line {
    /// As it stands in a profile by itself.
    #[must_use]
    pub fn alone(&self) -> String {
        let prefix = self.domain.as_ref().map(|name| format!("domains.{name}."));
        let prefix = prefix.unwrap_or_default();
        match self.key.as_str() {
            "network.netlink" => format!("{prefix}{} = {}", self.key, self.value),
            key => format!("{prefix}{key} = [{}]", quoted(&self.value)),
        }
    }

    /// Whether it grants writing of something below the home whose directory `judge` lets nobody
    /// see: what is not there cannot be made by the run.
    #[must_use]
    pub fn is_shut_in(&self, judge: &Judge, scope: &Scope) -> bool {
        let path = scope.path(&self.value).filter(|_| self.key == "files.write");
        let directory = path.as_deref().and_then(Path::parent);
        directory.is_some_and(|directory| {
            let sees = judge.rights(directory, self.domain.as_deref());
            !sees.list && !sees.read && !sees.write && directory.starts_with(&scope.home)
        })
    }

    /// What whoever has it gets outside of the sandbox, if it names a service that acts for
    /// everybody; see [`profile::power`].
    #[must_use]
    pub fn gives(&self, scope: &Scope) -> Option<&'static str> {
        let address = profile::plain(&self.value);
        let path = scope.path(address).filter(|_| address.starts_with(['/', '$']));
        match path {
            Some(path) => profile::power(path.to_str()?),
            None => profile::power(address),
        }
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// What addresses are called.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Names by address, the likeliest first.
    pub names: Vec<(IpAddr, String)>,
    /// The servers that answer name queries on this machine.
    pub nameservers: Vec<IpAddr>,
}

impl Addresses {
    fn connect(&self, address: SocketAddr, is_udp: bool, detail: Detail) -> String {
        let protocol = if is_udp { "/udp" } else { "" };
        let ip = address.ip().to_canonical();
        let name = self.names.iter().find(|(known, _)| *known == ip).map(|(_, name)| name.as_str());
        let host = match name {
            _ if self.nameservers.contains(&ip) && address.port() == 53 => "${nameserver}".into(),
            Some(name) => name.to_owned(),
            None => host(ip),
        };
        // What listens there has asked for whichever port is free.
        let is_any = ip.is_loopback() && address.port() >= EPHEMERAL && detail == Detail::Kind;
        let port = if is_any { "*".to_owned() } else { address.port().to_string() };
        format!("{host}:{port}{protocol}")
    }
}

/// Where Linux takes ports from that nobody has named.
pub(crate) const EPHEMERAL: u16 = 32_768;

/// More lines than this are taken together further.
const MOST_LINES: usize = 40;

/// How many entries of one directory make it the directory.
const MANY: usize = 4;

impl Addresses {
    /// `lines`, and the same for every other name of their addresses: a run knows by its address
    /// only what its profile names, so each name that is asked for has to stand there.
    #[must_use]
    pub fn with_all_names(&self, lines: Vec<Line>) -> Vec<Line> {
        let mut all = lines;
        let hosts: Vec<Line> =
            all.iter().filter(|line| line.key == "network.connect").cloned().collect();
        for line in &hosts {
            let Some((host, port)) = line.value.split_once(':') else { continue };
            let own = self.names.iter().filter(|(_, name)| name == host);
            let ips: Vec<IpAddr> = own.map(|(ip, _)| *ip).collect();
            for (_, name) in self.names.iter().filter(|(ip, _)| ips.contains(ip)) {
                let comment = format!("the address of {host}");
                all.push(Line { value: format!("{name}:{port}"), comment, ..line.clone() });
            }
        }
        // Stable: what was learned comes before what only shares its address.
        all.sort_by(|a, b| (&a.domain, &a.key, &a.value).cmp(&(&b.domain, &b.key, &b.value)));
        all.dedup_by(|a, b| (&a.domain, &a.key, &a.value) == (&b.domain, &b.key, &b.value));
        all
    }
}

fn host(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

/// The lines for `needs`, each with who needs it how often; and the needs that no line may grant,
/// because they are secrets.
#[must_use]
pub fn lines(
    needs: &BTreeMap<Need, BTreeMap<String, u64>>,
    (scope, detail): (&Scope, Detail),
    addresses: &Addresses,
) -> (Vec<Line>, Vec<Need>) {
    let mut found: BTreeMap<Line, BTreeMap<String, u64>> = BTreeMap::new();
    let mut refused = Vec::new();
    for (need, who) in needs {
        if detail == Detail::Kind && need.what.path().is_some_and(|path| scope.is_shelf(path)) {
            continue;
        }
        let Some((key, value)) = entry(&need.what, (scope, detail), addresses, needs) else {
            refused.push(need.clone());
            continue;
        };
        let domain = need.domain.clone();
        let line = Line { domain, key: key.into(), value, comment: String::new() };
        let all = found.entry(line).or_default();
        who.iter().for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
    }
    if detail == Detail::Kind {
        // A great many are told by where they lie: the policy, and who reads it, can take so many.
        loop {
            let before = found.len();
            found = collapse(found, scope);
            if found.len() <= MOST_LINES || found.len() == before {
                break;
            }
        }
    }
    let lines = found.into_iter().map(|(line, who)| Line { comment: told(&who), ..line });
    (lines.collect(), refused)
}

fn entry(
    what: &What,
    (scope, detail): (&Scope, Detail),
    addresses: &Addresses,
    needs: &BTreeMap<Need, BTreeMap<String, u64>>,
) -> Option<(&'static str, String)> {
    if what.address().is_some_and(|address| scope.secrets.power(&address).is_some()) {
        return None;
    }
    let value = match what {
        // A list is about the directory alone, so nothing below it is granted.
        What::List(path) if !scope.secrets.is_one(path) => {
            let own = scope.pattern(path, detail).filter(|_| detail == Detail::Kind);
            if let Some(own) =
                own.filter(|own| *own != scope.text(path) && !own.contains(['*', '?']))
            {
                return Some(("files.read", own));
            }
            scope.pattern(path, Detail::Exact)?
        }
        What::List(_) => return None,
        What::Read(path) | What::Write(path) | What::Exec(path) => {
            let is_alone = matches!(what, What::Write(_)) && scope.is_executed(path);
            if is_alone && path.is_dir() && !scope.secrets.is_named() {
                return None;
            }
            let detail = if is_alone { Detail::Exact } else { detail };
            scope.pattern(path, detail).filter(|_| !holds_too_much(path, scope))?
        }
        What::Connect(address, is_udp) => addresses.connect(*address, *is_udp, detail),
        What::Bind(address, is_udp) => {
            let protocol = if *is_udp { "/udp" } else { "" };
            format!("{}:{}{protocol}", host(address.ip()), address.port())
        }
        What::Unix(scheme, name) => match name.strip_prefix('@') {
            // A program chose it: `@*` would be every name, and others no rule can hold.
            Some(plain) => is_plain(plain).then(|| format!("{scheme}:{name}"))?,
            None => {
                let path = Path::new(name);
                let is_odd = name.contains(|c: char| !flask::is_quotable(c));
                let is_kept = is_odd || scope.secrets.is_one(path);
                (!is_kept).then(|| format!("{scheme}:{}", scope.text(path)))?
            }
        },
        What::Capability(name) => name.clone(),
        What::Netlink => return Some(("network.netlink", "true".into())),
        // Brought by a rule about an address, if there is one; else names are looked up.
        What::Sockets(is_udp) => {
            let brings = |need: &Need| match need.what {
                What::Connect(_, udp) | What::Bind(_, udp) => udp == *is_udp,
                _ => false,
            };
            if needs.keys().any(brings) || !is_udp {
                return None;
            }
            return Some(("network.connect", "${nameserver}:53/udp".into()));
        }
    };
    Some((what.key()?, value))
}

/// Whether an abstract name stands for itself in a rule.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// Whether a path is a directory that may not be granted with all that is in it.
fn holds_too_much(path: &Path, scope: &Scope) -> bool {
    !path.is_file() && (scope.is_wide(path) || scope.secrets.below(path).is_some())
}

/// Many entries of one directory become the directory, where that is one of a program or a project.
fn collapse(
    found: BTreeMap<Line, BTreeMap<String, u64>>,
    scope: &Scope,
) -> BTreeMap<Line, BTreeMap<String, u64>> {
    let parent = |line: &Line| -> Option<String> {
        let is_tree = ["files.read", "files.write", "files.exec"].contains(&line.key.as_str());
        let parent = line.value.rsplit_once('/').filter(|_| is_tree)?.0;
        let directory = scope.path(parent)?;
        let is_executed = line.key == "files.write"
            && (scope.is_executed(&directory) || holds_trusted(&directory));
        let is_whole = scope.is_wide(&directory) || directory.starts_with(&scope.workspace);
        (!is_whole && !is_executed).then(|| parent.to_owned())
    };
    let mut children: BTreeMap<(Option<String>, String, String), usize> = BTreeMap::new();
    for line in found.keys() {
        if let Some(parent) = parent(line) {
            *children.entry((line.domain.clone(), line.key.clone(), parent)).or_default() += 1;
        }
    }
    children.retain(|(_, _, parent), count| {
        *count >= MANY
            && scope.path(parent).is_some_and(|path| scope.secrets.below(&path).is_none())
    });
    let mut out: BTreeMap<Line, BTreeMap<String, u64>> = BTreeMap::new();
    for (line, who) in found {
        let whole = parent(&line)
            .filter(|parent| {
                let key = (line.domain.clone(), line.key.clone(), parent.clone());
                children.contains_key(&key)
            })
            .map(|value| Line { value, ..line.clone() });
        let all = out.entry(whole.unwrap_or(line)).or_default();
        who.into_iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
    }
    out
}

impl Scope {
    /// Whether a line may let all of a directory be changed for one entry of it.
    #[must_use]
    pub fn may_be_changed(&self, directory: &Path) -> bool {
        directory.is_dir()
            && !self.is_executed(directory)
            && !holds_trusted(directory)
            && !holds_too_much(directory, self)
    }

    /// The path that a pattern without globs stands for.
    #[must_use]
    pub fn path(&self, pattern: &str) -> Option<PathBuf> {
        let known =
            [("${workspace}", &self.workspace), ("${home}", &self.home), ("${tmp}", &self.tmp)];
        let (start, rest) = known
            .iter()
            .find_map(|(name, path)| Some(((*path).clone(), pattern.strip_prefix(name)?)))
            .unwrap_or((PathBuf::from("/"), pattern));
        let rest = rest.trim_start_matches('/');
        let plain = rest.replace('\\', "");
        if literal(&plain) != rest {
            return None;
        }
        Some(if plain.is_empty() { start } else { start.join(plain) })
    }
}

/// Who needed it, and about how often: no exact numbers, which are others in each run.
fn told(who: &BTreeMap<String, u64>) -> String {
    let names: BTreeSet<&str> = who.keys().map(String::as_str).collect();
    let mut names: Vec<String> = names.into_iter().map(plain).collect();
    if names.len() > 3 {
        let more = names.len() - 3;
        names.truncate(3);
        names.push(format!("{more} more"));
    }
    let often = match who.values().sum::<u64>() {
        0 | 1 => "once",
        2..=9 => "a few times",
        10..=99 => "dozens of times",
        100..=999 => "hundreds of times",
        _ => "thousands of times",
    };
    if names.is_empty() {
        return "made".into();
    }
    format!("{}: {often}", names.join(", "))
}

/// A name that a comment can hold.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

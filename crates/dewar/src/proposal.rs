//! The lines of a profile that would allow what a run was denied.

use crate::{
    entries::placed,
    failure::Usage,
    fitting::{Fitting, access, file_of},
    guarded::{Guarded, UNGUARDED, kept, links_to},
    learn::hosts::endpoints,
    misplaced,
    names::{asks_for_names, is_name_of},
    run::{Denial, RunRecord},
};
use anyhow::bail;
use learn::{
    Access, Addresses, Detail, Judge, Line, Need, Scope, Secrets, What, Widening, lines, needs,
};
use monitor::{Record, visible};
use profile::{Compiled, Host, Kept, Variables};
use std::{
    collections::BTreeSet,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Begins the reason why a denial stays that the profile's own file wants.
pub(crate) const KEPT_BACK: &str = "the profile itself keeps it back";

/// A denial, and the lines that would allow it.
type DenialLines<'a> = (&'a Denial, Vec<Line>);

/// Lines, and what is not among them.
pub(crate) struct Proposal<'a> {
    pub(crate) lines: Vec<Line>,
    /// What stays denied, and why.
    pub(crate) left: Vec<(&'a Denial, String)>,
    /// A run of the profile has no network that it could be given a host of.
    pub(crate) is_offline: bool,
    addresses: Addresses,
    /// The lines by denial.
    found: Vec<DenialLines<'a>>,
}

/// What is said of what the permissions of files refuse, whatever a profile grants.
pub(crate) const NATIVELY: &str =
    "you may not either: the permissions of the file system refuse it without Dewar, too";

/// What to do where a program was denied a socket, before it said for what.
pub(crate) const NAME_A_HOST: &str = "name what it is to reach, a host and its port, as in network.connect = \
     [\"example.org:443\"]; network.loopback = \"own\" is for servers of the run itself";

/// What is said of a socket for messages that was to be made: to whom they would have gone, it has
/// not said.
pub(crate) const NAME_A_SOCKET: &str = "network.connect = [\"unixgram:${workspace}\"], or for the log \
     network.connect = [\"unixgram:/dev/log\"]";

/// The profile of a run, as it was.
pub(crate) fn of_file(record: &RunRecord) -> anyhow::Result<Fitting> {
    let Some(variables) = record.variables.clone() else {
        bail!(Usage("this run was recorded by an older Dewar; run the command again".into()));
    };
    let fitting = of_profile(&record.argument, &record.directory, variables)?;
    Ok(fitting.naming(named_hosts(&record.command), &record.unfound))
}

/// The profile that was named so in `directory`.
pub(crate) fn of_profile(
    argument: &str,
    directory: &Path,
    variables: Variables,
) -> anyhow::Result<Fitting> {
    match file_of(argument, directory) {
        Some(file) => Fitting::of_file(&file, variables),
        None => Fitting::extending(argument, directory, variables),
    }
}

impl<'a> Proposal<'a> {
    /// For `denials`, on top of a profile. Of secrets, those in `named` alone.
    pub(crate) fn of(
        fitting: &Fitting,
        denials: &[&'a Denial],
        named: &[PathBuf],
    ) -> anyhow::Result<Self> {
        let compiled = fitting.compile(&[])?;
        let judge = Judge::new(&compiled)?;
        let names = compiled.hosts.iter().filter_map(|host| match &host.host {
            Host::Name(name) => Some(host.networks.iter().map(|(ip, _)| (*ip, name.clone()))),
            _ => None,
        });
        let nameservers = fitting.variables.nameservers.clone();
        let addresses = Addresses { names: names.flatten().collect(), nameservers };
        let is_offline = compiled.domains.iter().all(profile::Domain::is_offline);
        let (lines, left, found) = (Vec::new(), Vec::new(), Vec::new());
        let mut proposal = Self { lines, left, is_offline, addresses, found };
        let all: Vec<Access> = denials.iter().map(|denial| access(&denial.record)).collect();
        let mut found = Vec::new();
        for (denial, access) in denials.iter().zip(&all) {
            match proposal.line((fitting, &compiled, &judge), (denial, access), &all, named) {
                Ok(lines) => found.push((*denial, lines)),
                Err(why) => proposal.left.push((denial, why)),
            }
        }
        let found = proposal.nameable(fitting, found);
        let found = proposal.helpful(fitting, found, denials.iter().copied().zip(&all));
        proposal.lines = together(&found);
        proposal.lines.sort();
        proposal
            .lines
            .dedup_by(|a, b| (&a.domain, &a.key, &a.value) == (&b.domain, &b.key, &b.value));
        proposal.found = found;
        Ok(proposal)
    }

    /// The lines that were found for denials, but for those that no policy can hold: a program
    /// chooses names.
    fn nameable(&mut self, fitting: &Fitting, found: Vec<DenialLines<'a>>) -> Vec<DenialLines<'a>> {
        if fitting.judge(&together(&found)).is_ok() {
            return found;
        }
        let mut good = Vec::new();
        for (denial, lines) in found {
            match fitting.judge(&lines) {
                Ok(_) => good.push((denial, lines)),
                Err(error) => {
                    let why = format!("no profile can name it: {error:#}; give it another name");
                    self.left.push((denial, why));
                }
            }
        }
        good
    }

    /// The same without the lines that do not help: what the profile itself hides stays so
    /// whatever is added to the same file.
    fn helpful<'b>(
        &mut self,
        fitting: &Fitting,
        mut found: Vec<DenialLines<'a>>,
        all: impl Iterator<Item = (&'a Denial, &'b Access)>,
    ) -> Vec<DenialLines<'a>> {
        let Ok(after) = fitting.judge(&together(&found)) else { return found };
        for (denial, access) in all {
            let is_it = |other: &Denial| std::ptr::eq(other, denial);
            let is_new = access.wants("add_name") || access.tclass.ends_with("_socket");
            let enters =
                |(of, lines): &DenialLines<'_>| is_it(of) && lines.iter().any(misplaced::is_entry);
            if is_new
                || found.iter().any(enters)
                || asks_for_names(&denial.record) && !fitting.named_hosts.is_empty()
                || self.left.iter().any(|(left, _)| is_it(left))
                || after.missing(access).is_empty()
                || Guarded::by_guard(&denial.record).is_some()
            {
                continue;
            }
            let place = denial.profile_rules.first().cloned().unwrap_or_default();
            let why = format!("{KEPT_BACK} ({place}): change that line");
            self.left.push((denial, why));
            found.retain(|(other, _)| !is_it(other));
        }
        found
    }

    /// Why a denial stays.
    pub(crate) fn left_for(&self, denial: &Denial) -> Option<&str> {
        let (_, why) = self.left.iter().find(|(left, _)| std::ptr::eq(*left, denial))?;
        Some(why)
    }

    /// The lines that allow a denial.
    pub(crate) fn lines_for(&self, denial: &Denial) -> &[Line] {
        let found = self.found.iter().find(|(found, _)| std::ptr::eq(*found, denial));
        found.map_or(&[], |(_, lines)| lines)
    }

    /// The addresses that an endpoint's name stands for.
    pub(crate) fn addresses(&self, endpoint: &str) -> Vec<IpAddr> {
        let named = self.addresses.names.iter();
        let named = named.filter(|(_, name)| endpoint.starts_with(&format!("{name}:")));
        named.map(|(ip, _)| *ip).collect()
    }

    fn line(
        &self,
        (fitting, compiled, judge): (&Fitting, &Compiled, &Judge),
        (denial, access): (&Denial, &Access),
        all: &[Access],
        named: &[PathBuf],
    ) -> Result<Vec<Line>, String> {
        let record = &denial.record;
        if !record.refused_by.is_empty() {
            return Err(format!("{} refuses it: {}", record.refused_by, record.reason));
        }
        if record.natively && !named.iter().any(|named| is_name_of(named, &record.object)) {
            return Err(NATIVELY.into());
        }
        if denial.profile_rules.iter().any(|rule| rule.starts_with("revoked by ")) {
            return Err("it was revoked while it ran, and is granted by the profile".into());
        }
        let comment = format!("{}: allowed", access.who());
        let own = |line| Line { comment: comment.clone(), ..line };
        let is_named = named.iter().any(|named| is_name_of(named, &record.object));
        if let Some(guarded) = Guarded::by_guard(record) {
            if !is_named {
                return Err(guarded.unnamed(&fitting.scope.workspace));
            }
            return Ok(guarded.lines(fitting, access.domain())?.into_iter().map(own).collect());
        }
        if missing(access, judge).is_empty() {
            return Ok(Vec::new());
        }
        if let Some(why) = not_found(record, &fitting.named_hosts, &fitting.unfound) {
            return Err(why);
        }
        if let Some(line) = misplaced::entry((record, access), (fitting, compiled, judge)) {
            return Ok(vec![own(line)]);
        }
        if asks_for_names(record) && !fitting.named_hosts.is_empty() {
            let (domain, key) = (access.domain().map(str::to_owned), "network.connect".to_owned());
            let line = |value: &String| Line {
                domain: domain.clone(),
                key: key.clone(),
                value: value.clone(),
                comment: comment.clone(),
            };
            return Ok(fitting.named_hosts.iter().map(line).collect());
        }
        if let Some((kept, place)) = kept(denial).filter(|(_, place)| *place == record.object) {
            if kept != Kept::Led {
                return Err(format!("{}; change it outside of the run", kept.why()));
            }
            if !named.iter().any(|path| path == Path::new(place)) {
                return Err(format!("{}; to allow it, name it in full", kept.why()));
            }
            let key = UNGUARDED.to_owned();
            let line =
                |value| Line { domain: None, key: key.clone(), value, comment: comment.clone() };
            return Ok(links_to(place, Some(&fitting.variables)).into_iter().map(line).collect());
        }
        if let Some(guarded) = Guarded::otherwise(denial, &fitting.scope).filter(|_| !is_named) {
            return Err(guarded.unnamed(&fitting.scope.workspace));
        }
        let scope = match is_named {
            true => Scope { secrets: Secrets::none(), ..fitting.scope.clone() },
            false => fitting.scope.clone(),
        };
        // Others of the same run tell whether a socket is for an address that is allowed, too.
        let mut needs = needs(all.iter().map(|access| (access, 1)), judge);
        let of_this = self::needs_of(access, judge);
        let Some(need) = of_this else { return Err(unsayable(record)) };
        needs.entry(need.clone()).or_default();
        let wanted = needs.into_iter().filter(|(other, _)| {
            *other == need || matches!(need.what, What::Sockets(_)) && other.what.path().is_none()
        });
        let wanted = wanted.collect();
        let (found, refused) = lines(&wanted, (&scope, Detail::Exact), &self.addresses);
        if found.is_empty() && refused.contains(&need) && !matches!(need.what, What::Sockets(_)) {
            return Err(refusal(&need, &scope));
        }
        if found.is_empty() {
            return Err(NAME_A_HOST.into());
        }
        let at_place = |line| placed(line, (access, judge), fitting, named);
        found.into_iter().map(own).map(at_place).collect()
    }
}

/// The hosts that a command names, each with its port.
pub(crate) fn named_hosts(command: &[String]) -> BTreeSet<String> {
    command.iter().flat_map(|word| endpoints(word)).collect()
}

/// Why nothing more is granted to who asked for the address of a host that its command names: it
/// was granted that, and there was no address.
pub(crate) fn not_found(
    record: &Record,
    named: &BTreeSet<String>,
    unfound: &BTreeSet<(String, String)>,
) -> Option<String> {
    let domain = flask::domain_of(&record.scontext);
    let is_lost = |endpoint: &&str| {
        let mut lost = unfound.iter().filter(|(of, _)| of == domain);
        lost.any(|(_, host)| endpoint.rsplit_once(':').is_some_and(|(name, _)| name == host))
    };
    let lost: Vec<&str> = named.iter().map(String::as_str).filter(is_lost).collect();
    (asks_for_names(record) && !lost.is_empty()).then(|| {
        let lost = lost.join(" ");
        format!("{lost} is granted, and had no address when the run started; once it has, run the command again")
    })
}

fn together(found: &[DenialLines<'_>]) -> Vec<Line> {
    found.iter().flat_map(|(_, lines)| lines).cloned().collect()
}

fn needs_of(access: &Access, judge: &Judge) -> Option<Need> {
    learn::need(access, &missing(access, judge))
}

/// What of an access the profile does not grant. Whoever was refused to take something out of a
/// directory was not asked further, so what it was has no name.
fn missing(access: &Access, judge: &Judge) -> Vec<String> {
    match access.path().filter(|_| access.tclass == "dir" && access.wants("remove_name")) {
        Some(path) if !judge.rights(path, access.domain()).write => vec!["remove_name".into()],
        _ => judge.missing(access),
    }
}

/// What is said of what looks like a secret, or acts for whoever connects.
pub(crate) fn kept_back(path: &Path) -> String {
    let shown = path.to_string_lossy();
    match profile::power(&shown) {
        Some(gives) => format!("{shown} GIVES {gives}"),
        None => format!("SECRET by its looks: {shown}"),
    }
}

/// What is said of files that a line grants beside those it was made for; `None` without any.
pub(crate) fn beside(also: &Widening) -> Option<String> {
    const MOST: usize = 8;
    let files = match (also.files, also.more) {
        (0, _) => return None,
        (1, false) => "1 file that is".to_owned(),
        (files, false) => format!("{files} files that are"),
        (files, true) => format!("more than {files} files that are"),
    };
    let named = also.secrets.iter().take(MOST).map(|path| visible(&kept_back(path)));
    let mut named: Vec<String> = named.collect();
    match also.secrets.len().saturating_sub(MOST) {
        0 if named.is_empty() => named.push("none of them looks like a secret".into()),
        0 => {}
        more => named.push(format!("and {more} more of them")),
    }
    Some(format!("also {files} there already; {}", named.join("; ")))
}

/// Why no line is proposed for something that a list could hold.
fn refusal(need: &Need, scope: &Scope) -> String {
    let path = || need.what.path().map(|path| path.display().to_string());
    let address = need.what.address().or_else(path).unwrap_or_default();
    if let Some(gives) = scope.secrets.power(&address) {
        let name = profile::plain(&address);
        return format!("whoever connects gets {gives}; to allow it, name it in full: {name}");
    }
    match need.what.path() {
        Some(path) if scope.secrets.is_one(path) => {
            format!(
                "it is a secret, or looks like one; to allow it, name it in full: {}",
                path.display()
            )
        }
        Some(path) => format!(
            "all of {} would be granted; name what is needed of it in a profile",
            path.display()
        ),
        None => "no line of a profile can say it".into(),
    }
}

/// Why no pattern names an object, and what to do; `None` if one does.
pub(crate) fn unnameable(object: &str) -> Option<&'static str> {
    let is_odd = |c: char| !flask::is_quotable(c) || c == char::REPLACEMENT_CHARACTER;
    (object.starts_with('/') && object.contains(is_odd)).then_some(
        "no line names it: its name holds a control character, a double quote or bytes that are not UTF-8; grant the \
         directory, or give it another name",
    )
}

/// The entry that grants sockets of a class, if it is one of netlink.
pub(crate) fn netlink_line(class: &str) -> Option<String> {
    profile::netlink_protocol(class).map(|name| format!("network.netlink = [\"{name}\"]"))
}

fn unsayable(record: &Record) -> String {
    if let Some(why) = unnameable(&record.object) {
        return why.into();
    }
    match record.tclass.as_str() {
        "process" => {
            "no profile grants it: it is about a process outside, or of another domain".into()
        }
        "unix_dgram_socket" => NAME_A_SOCKET.into(),
        class => {
            netlink_line(class).unwrap_or_else(|| format!("no profile grants that on a {class}"))
        }
    }
}

//! The lines of a profile that would allow what a run was denied.

use crate::{
    entries::{directory_of, made_first, placed, seen},
    failure::Usage,
    fitting::{Fitting, access, file_of},
    guarded::{Guarded, UNGUARDED, kept, links_to},
    learn::hosts::endpoints,
    misplaced,
    names::{asks_for_names, is_name_of},
    reasons::{NAME_A_HOST, NATIVELY, not_found, refusal, unsayable},
    run::{Denial, RunRecord},
};
use anyhow::bail;
use learn::{
    Access, Addresses, Detail, Judge, Line, Need, Scope, Secrets, What, Widening, lines, needs,
};
use monitor::visible;
use profile::{Compiled, Host, Kept, Variables};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Begins the reason why a denial stays that the profile's own file wants.
pub(crate) const KEPT_BACK: &str = "the profile itself keeps it back";

/// What a run needs, with who needs it how often.
type Needs = BTreeMap<Need, BTreeMap<String, u64>>;

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

/// The profile of a run, as it was.
pub(crate) fn of_file(record: &RunRecord) -> anyhow::Result<Fitting> {
    let Some(variables) = record.variables.clone() else {
        bail!(Usage("this run was recorded by an older Dewar; run the command again".into()));
    };
    let fitting = of_profile(&record.fitted(), &record.directory, variables)?;
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
        let needs = needs(all.iter().map(|access| (access, 1)), &judge);
        for (denial, access) in denials.iter().zip(&all) {
            match proposal.line((fitting, &compiled, &judge), (denial, access), &needs, named) {
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
        let is_entry = |(_, lines): &&DenialLines<'_>| lines.iter().any(misplaced::is_entry);
        let own_words: HashSet<*const Denial> = found
            .iter()
            .filter(is_entry)
            .map(|(denial, _)| *denial)
            .chain(self.left.iter().map(|(denial, _)| *denial))
            .map(std::ptr::from_ref)
            .collect();
        let mut helpless = HashSet::new();
        for (denial, access) in all {
            let is_new = access.wants("add_name") || access.tclass.ends_with("_socket");
            if is_new
                || own_words.contains(&std::ptr::from_ref(denial))
                || asks_for_names(&denial.record) && !fitting.named_hosts.is_empty()
                || after.missing(access).is_empty()
                || Guarded::by_guard(&denial.record).is_some()
            {
                continue;
            }
            let place = denial.profile_rules.first().cloned().unwrap_or_default();
            let why = format!("{KEPT_BACK} ({place}): change that line");
            self.left.push((denial, why));
            helpless.insert(std::ptr::from_ref(denial));
        }
        found.retain(|(other, _)| !helpless.contains(&std::ptr::from_ref(*other)));
        found
    }

    /// What has to be named in full, beside what is `named`, so that something of what is left is
    /// allowed: of each as much as helps.
    pub(crate) fn unnamed(&self, fitting: &Fitting, named: &[PathBuf]) -> BTreeSet<PathBuf> {
        const MOST: usize = 8;
        let left = self.left.iter().filter(|(denial, _)| !denial.record.natively);
        let mut names = BTreeSet::new();
        for (denial, _) in left.take(MOST) {
            let record = &denial.record;
            let access = access(record);
            let guarded = Guarded::by_guard(record);
            let is_made = |_: &&str| record.object.ends_with("/.git/hooks");
            let whole = guarded.and_then(|it| it.repository(&fitting.scope.workspace));
            let whole = whole.filter(is_made);
            let object = Some(Path::new(&record.object));
            // All of a secret directory nobody is led to.
            let directory = directory_of(&access);
            let directory = directory.filter(|it| !fitting.scope.secrets.is_one(it));
            let helps = |name: &&Path| {
                let named: Vec<PathBuf> =
                    named.iter().cloned().chain([name.to_path_buf()]).collect();
                let found = Self::of(fitting, &[*denial], &named);
                found.is_ok_and(|it| it.left.is_empty() && it.is_enough(fitting))
            };
            let mut names_of_it = [whole.map(Path::new), object, directory].into_iter().flatten();
            names.extend(names_of_it.find(helps).map(Path::to_owned));
        }
        names
    }

    /// Whether there are lines, none of them for something that the run could not make.
    fn is_enough(&self, fitting: &Fitting) -> bool {
        let judge = fitting.judge(&self.lines);
        // A directory is made by Dewar.
        let mut files = self.lines.iter().filter(|line| !line.value.ends_with('/'));
        let mut is_made =
            |judge: Judge| files.all(|line| made_first(line, &judge, &fitting.scope).is_none());
        !self.lines.is_empty() && judge.is_ok_and(&mut is_made)
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
        needs: &Needs,
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
            let whole = guarded.repository(&fitting.scope.workspace);
            if let Some(whole) = whole.filter(|it| named.iter().any(|named| is_name_of(named, it)))
            {
                let value = fitting.scope.text(Path::new(whole));
                return Ok(vec![own(Line { key: UNGUARDED.into(), value, ..Line::default() })]);
            }
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
        // Whoever names the directory of a new entry means that, and what will lie in it.
        let directory = directory_of(access).map(Path::to_string_lossy);
        let is_named = is_named
            || directory.is_some_and(|it| named.iter().any(|named| is_name_of(named, &it)));
        if let Some(guarded) = Guarded::otherwise(denial, &fitting.scope).filter(|_| !is_named) {
            return Err(guarded.unnamed(&fitting.scope.workspace));
        }
        let scope = match is_named {
            true => Scope { secrets: Secrets::none(), ..fitting.scope.clone() },
            false => fitting.scope.clone(),
        };
        let Some(need) = needs_of(access, judge) else { return Err(unsayable(record)) };
        // Others of the same run tell whether a socket is for an address that is allowed, too.
        let is_socket = matches!(need.what, What::Sockets(_));
        let beside = needs.iter().filter(|(other, _)| is_socket && other.what.path().is_none());
        let mut wanted: Needs = beside.map(|(other, who)| (other.clone(), who.clone())).collect();
        wanted.insert(need.clone(), needs.get(&need).cloned().unwrap_or_default());
        let (found, refused) = lines(&wanted, (&scope, Detail::Exact), &self.addresses);
        if found.is_empty() && refused.contains(&need) && !matches!(need.what, What::Sockets(_)) {
            return Err(refusal(&need, &scope));
        }
        if found.is_empty() {
            return Err(NAME_A_HOST.into());
        }
        let at_place = |line| placed(line, (access, judge), fitting, named);
        let mut found: Vec<Line> =
            found.into_iter().map(own).map(at_place).collect::<Result<_, _>>()?;
        let seen = found.iter().filter_map(|line| seen(line, (access, judge), &fitting.scope));
        found.extend(seen.collect::<Vec<_>>());
        Ok(found)
    }
}

/// The hosts that a command names, each with its port.
pub(crate) fn named_hosts(command: &[String]) -> BTreeSet<String> {
    command.iter().flat_map(|word| endpoints(word)).collect()
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

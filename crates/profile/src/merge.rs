//! From documents to one profile: strings become patterns, endpoints and numbers; what extends is
//! added to what is extended.

use crate::classes::{check_capability, netlink_class};
use crate::document::{Document, DomainLists, FileLists, NetworkLists};
use crate::error::{Problem, Reporter};
use crate::guarded;
use crate::loopback;
use crate::merged::{ALL_ELSE, Direction, Domain, Hiding, Loopback, Mode, NetworkRule, Profile};
use crate::mounted::Mounted;
use crate::network::{self, NetworkObject};
use crate::pattern::{self, Pattern, Steps};
use crate::registry;
use crate::rights::{Entries, List, ListedPattern, Standing};
use crate::source::{Located, TextSpan};
use crate::variables::Variables;
use std::collections::HashSet;

/// Added to the layer of what a domain says on top of the base domain.
const DOMAIN_LAYER: usize = 1 << 16;

/// What the base domain is called.
const MAIN: &str = "main";

/// Names that no domain can have: types of the policy carry them.
pub const RESERVED: [&str; 9] =
    [MAIN, "kernel", "security", "unlabeled", "default", "init", "port", "node", "any_socket"];

/// Domains of a profile, the base domain aside: each is compared with each.
const MOST_DOMAINS: usize = 64;

/// Merges `documents`, the most basic first.
pub(crate) fn merge(
    documents: &[Document],
    variables: &Variables,
    reporter: &mut Reporter,
) -> Profile {
    let mut merger = Merger { variables, reporter, layer: 0 };
    let tmp = variables.tmp.to_string_lossy().into_owned();
    // Nothing enters the base domain.
    let domains = vec![Domain { from: Some(Vec::new()), ..Domain::new(MAIN, None) }];
    let (temporary, shares_temporary) = (variables.temporary(), variables.shares_temporary);
    let mut profile = Profile { domains, tmp, temporary, shares_temporary, ..Profile::default() };
    for (layer, document) in documents.iter().enumerate() {
        // Between two, there is room for what the base domain has alone.
        merger.layer = 2 * layer;
        merger.add(&mut profile, document);
    }
    profile.description =
        documents.last().and_then(|d| d.description.as_ref()).map(|d| d.value.clone());
    merger.check_domains(&profile);
    if let Some((loopback, place)) = profile.loopback {
        loopback::open(&mut profile, (loopback, place), variables.private_network, reporter);
    }
    registry::tell(&mut profile, variables);
    let mounted = Mounted::new(&variables.mounted);
    guarded::guard(&mut profile, (variables, &mounted), reporter);
    let confidential = guarded::confidential(variables, reporter);
    finish_domains(&mut profile.domains, &confidential, &mounted, reporter);
    profile
}

/// Gives each domain its entries and what it takes from the base domain. What is `confidential` it
/// has only by name; what it is denied, also where that is mounted a second time.
fn finish_domains(
    domains: &mut [Domain],
    confidential: &[(Pattern, TextSpan)],
    mounted: &Mounted,
    reporter: &mut Reporter,
) {
    let mut steps = Steps::of_a_profile();
    let mut entries = |mut all: Vec<ListedPattern>| {
        guarded::withhold(&mut all, confidential);
        mounted.take(&mut all, confidential);
        let report = |(problem, place)| reporter.report(problem, Some(place));
        Entries::new(all, &mut steps).map_err(report).unwrap_or_default()
    };
    let Some((main, others)) = domains.split_first_mut() else { return };
    for domain in others {
        let inherited = main.own.iter().filter(|entry| domain.inherit && !entry.alone).cloned();
        let own = std::mem::take(&mut domain.own);
        domain.entries = entries(inherited.chain(own).collect());
        if domain.inherit {
            domain.guard.inherit(&main.guard);
        }
        if domain.netlink.is_none() {
            domain.netlink.clone_from(&main.netlink);
        }
    }
    main.entries = entries(std::mem::take(&mut main.own));
    if let Err((problem, place)) = hold_below_each_other(domains, &mut steps) {
        reporter.report(problem, Some(place));
    }
}

/// Lets the globs of each domain hold below what others name, and what enters one, or is connected
/// to, in which files have a label of their own for all.
fn hold_below_each_other(
    domains: &mut [Domain],
    steps: &mut Steps,
) -> Result<(), (Problem, TextSpan)> {
    let mut all: Vec<(Pattern, bool)> = domains.iter().flat_map(Domain::patterns).collect();
    // What domains inherit, each names again.
    let mut known = HashSet::new();
    all.retain(|(pattern, restricts)| known.insert((pattern.regex().to_owned(), *restricts)));
    domains.iter_mut().try_for_each(|domain| domain.entries.hold_below(&all, steps))
}

struct Merger<'a> {
    variables: &'a Variables,
    reporter: &'a mut Reporter,
    layer: usize,
}

impl Merger<'_> {
    fn add(&mut self, profile: &mut Profile, document: &Document) {
        if let Some(mode) = &document.mode {
            profile.mode = self.reporter.take(parse_mode(&mode.value), mode.place).or(profile.mode);
        }
        if let Some(hiding) = &document.hiding {
            let parsed = parse_hiding(&hiding.value);
            profile.hiding = self.reporter.take(parsed, hiding.place).or(profile.hiding);
        }
        profile.proposes |= document.propose.is_some();
        profile.environment.add(&document.env, self.variables, self.reporter);
        profile.limits.apply(&document.limits, self.reporter);
        let network = &document.main.network;
        if network.inherit.as_ref().is_some_and(|inherit| !inherit.value) {
            profile.loopback = None;
            profile.registries.clear();
            profile.domains[1..].iter_mut().for_each(Domain::forget_network);
        }
        if let Some(loopback) = &network.loopback {
            let meant = self.reporter.take(loopback::parse(&loopback.value), loopback.place);
            profile.loopback = meant.flatten().map(|meant| (meant, loopback.place));
        }
        self.add_domain(&mut profile.domains[0], &document.main, self.layer);
        self.add_directories(profile, document);
        let of_domains = document.domains.iter().map(|(_, lists)| lists);
        for lists in of_domains.chain([&document.main]) {
            let tools = lists.network.registries.iter().map(|tool| tool.value.clone());
            profile.registries.extend(tools);
        }
        profile.registries.sort();
        profile.registries.dedup();
        for (name, lists) in &document.domains {
            if name.value == MAIN {
                self.add_alone(&mut profile.domains[0], lists, name.place);
                continue;
            }
            if self.reporter.take(check_name(&name.value), name.place).is_none() {
                continue;
            }
            let known = profile.domains.iter().position(|domain| domain.name == name.value);
            if known.is_none() && profile.domains.len() > MOST_DOMAINS {
                let problem = Problem::TooManyDomains { most: MOST_DOMAINS };
                self.reporter.report(problem, Some(name.place));
                break;
            }
            let index = known.unwrap_or_else(|| {
                profile.domains.push(Domain::new(&name.value, Some(name.place)));
                profile.domains.len() - 1
            });
            self.add_domain(&mut profile.domains[index], lists, self.layer + DOMAIN_LAYER);
        }
        // What is extended gives way: who reaches endpoints outside shares their network.
        let is_private = profile.loopback.is_some_and(|(kind, _)| kind == Loopback::Private);
        if is_private
            && document.main.network.loopback.is_none()
            && loopback::reaches_outside(profile)
        {
            profile.loopback = None;
        }
    }

    fn add_domain(&mut self, domain: &mut Domain, lists: &DomainLists, layer: usize) {
        for program in &lists.exec {
            if program.value == ALL_ELSE && domain.name != MAIN {
                domain.all_else = Some(program.place);
                continue;
            }
            let patterns = self.patterns(program);
            domain.programs.extend(patterns.into_iter().map(|pattern| (pattern, program.place)));
        }
        if let Some(from) = &lists.from {
            domain.from.get_or_insert_default().extend(from.iter().cloned());
        }
        domain.noatsecure.extend(lists.noatsecure.iter().cloned());
        domain.serves.extend(lists.serves.iter().cloned());
        domain.inherit = lists.inherit.as_ref().map_or(domain.inherit, |inherit| inherit.value);
        for capability in &lists.capabilities {
            let good = check_capability(&capability.value);
            if self.reporter.take(good, capability.place).is_some() {
                domain.capabilities.push(capability.clone());
            }
        }
        self.add_files(domain, &lists.files, (layer, false));
        domain.guard.add(&lists.files, self.reporter);
        self.add_network(domain, &lists.network);
    }

    /// What the base domain has, and no domain takes over from it: files alone, as all else is not
    /// taken over.
    fn add_alone(&mut self, main: &mut Domain, lists: &DomainLists, place: TextSpan) {
        let DomainLists { exec, from, noatsecure, serves, .. } = lists;
        let DomainLists { inherit, capabilities, files, network, .. } = lists;
        let lists = [exec, noatsecure, serves, capabilities];
        let says_more = lists.iter().any(|list| !list.is_empty())
            || from.is_some()
            || inherit.is_some()
            || files.guard.is_some()
            || files.guard_action.is_some()
            || says_something(network);
        if says_more {
            let help = "it has lists of files that no other domain takes over; all else of the base domain \
                        stands at the top of the profile";
            let problem = Problem::bad(MAIN, "a domain with `files.…` alone", help.to_owned());
            self.reporter.report(problem, Some(place));
        }
        self.add_files(main, files, (self.layer + 1, true));
    }

    fn patterns(&mut self, text: &Located<String>) -> Vec<Pattern> {
        let parsed = pattern::parse(&text.value, self.variables);
        self.reporter.take(parsed, text.place).unwrap_or_default()
    }

    fn add_files(&mut self, domain: &mut Domain, files: &FileLists, (layer, alone): (usize, bool)) {
        let lists = [
            (List::Unguarded, &files.unguarded),
            (List::Names, &files.list),
            (List::Read, &files.read),
            (List::Write, &files.write),
            (List::Exec, &files.exec),
            (List::Readonly, &files.readonly),
            (List::Deny, &files.deny),
            (List::Hide, &files.hide),
        ];
        let temporary = self.variables.temporary();
        for (list, texts) in lists {
            for text in texts {
                for mut pattern in self.patterns(text) {
                    if list == List::Names {
                        pattern = pattern.with_nothing_below();
                    } else if list.restricts() {
                        pattern = pattern.with_everything_below();
                    }
                    let standing = Standing::of(&pattern, &temporary);
                    domain.own.push(ListedPattern {
                        pattern,
                        list,
                        layer,
                        place: text.place,
                        standing,
                        rank: None,
                        beside: false,
                        alone,
                    });
                }
            }
        }
    }

    /// What may be written, and ends in `/`, is a directory that is made if it is not there.
    fn add_directories(&mut self, profile: &mut Profile, document: &Document) {
        let domains = document.domains.iter().map(|(_, lists)| lists).chain([&document.main]);
        let texts = domains.flat_map(|lists| &lists.files.write);
        for text in texts.filter(|text| text.value.ends_with('/')) {
            // A mistake in it is reported where its right is read.
            let patterns = pattern::parse(&text.value, self.variables).unwrap_or_default();
            profile.directories.extend(patterns.iter().filter_map(Pattern::literal));
        }
        profile.directories.sort();
        profile.directories.dedup();
    }

    fn add_network(&mut self, domain: &mut Domain, lists: &NetworkLists) {
        if lists.inherit.as_ref().is_some_and(|inherit| !inherit.value) {
            domain.forget_network();
        }
        if let Some(netlink) = &lists.netlink {
            for name in &netlink.value {
                self.reporter.take(netlink_class(name), netlink.place);
            }
            domain.netlink = Some(netlink.clone());
        }
        for tool in &lists.registries {
            domain.network.extend(registry::rules(tool, self.variables, self.reporter));
        }
        for (direction, rules) in
            [(Direction::Connect, &lists.connect), (Direction::Bind, &lists.bind)]
        {
            for rule in rules {
                let target = network::parse(&rule.value, self.variables)
                    .and_then(|target| check_direction(&rule.value, target, direction));
                if let Some(target) = self.reporter.take(target, rule.place) {
                    domain.network.push(NetworkRule { target, direction, place: rule.place });
                }
            }
        }
    }

    /// Reports domains that nothing enters, and names of others that no domain has.
    fn check_domains(&mut self, profile: &Profile) {
        let names: Vec<&str> = profile.domains.iter().map(|domain| domain.name.as_str()).collect();
        for domain in &profile.domains[1..] {
            if domain.programs.is_empty() && domain.all_else.is_none() {
                let problem = Problem::bad(
                    &domain.name,
                    "a domain that a program enters",
                    format!("list programs: `domains.{0}.exec = [\"/usr/bin/{0}\"]`", domain.name),
                );
                self.reporter.report(problem, domain.place);
            }
            let named = domain.from.iter().flatten().chain(&domain.noatsecure);
            let named = named.chain(&domain.serves);
            for other in named.filter(|other| !names.contains(&other.value.as_str())) {
                let help = format!("domains here are {}", names.join(", "));
                let problem = Problem::bad(&other.value, "a domain of this profile", help);
                self.reporter.report(problem, Some(other.place));
            }
            self.check_capabilities(&profile.domains[0], domain);
        }
    }

    /// No exec takes a capability from a process, and none gives it one.
    fn check_capabilities(&mut self, main: &Domain, domain: &Domain) {
        let lacks = |of: &Domain, name: &str| !of.capabilities.iter().any(|c| c.value == name);
        let mut differs = |capability: &Located<String>, place| {
            let (domain, capability) = (domain.name.clone(), capability.value.clone());
            self.reporter.report(Problem::UnequalCapabilities { domain, capability }, place);
        };
        for extra in domain.capabilities.iter().filter(|c| lacks(main, &c.value)) {
            differs(extra, Some(extra.place));
        }
        for missing in main.capabilities.iter().filter(|c| lacks(domain, &c.value)) {
            differs(missing, domain.place);
        }
    }
}

fn says_something(network: &NetworkLists) -> bool {
    let lists = [&network.connect, &network.bind, &network.registries];
    lists.iter().any(|list| !list.is_empty())
        || network.netlink.is_some()
        || network.loopback.is_some()
        || network.inherit.is_some()
}

fn parse_mode(text: &str) -> Result<Mode, Problem> {
    match text {
        "all" => Ok(Mode::All),
        "fast" => Ok(Mode::Fast),
        _ => Err(Problem::bad(text, "a mode", "write `all` or `fast`".to_owned())),
    }
}

fn parse_hiding(text: &str) -> Result<Hiding, Problem> {
    match text {
        "content" => Ok(Hiding::Content),
        "strict" => Ok(Hiding::Strict),
        _ => Err(Problem::bad(text, "a way of hiding", "write `content` or `strict`".to_owned())),
    }
}

/// Names of domains become names of types.
fn check_name(name: &str) -> Result<(), Problem> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || !name.bytes().all(plain) || name.len() > 32 {
        let help = "write a lower-case letter, then letters, digits or `_`, at most 32".to_owned();
        return Err(Problem::bad(name, "a name for a domain", help));
    }
    if RESERVED.contains(&name) {
        let help = format!("write `my_{name}`");
        return Err(Problem::bad(name, "a free name: policies use it", help));
    }
    Ok(())
}

/// A socket in the file system is bound where files may be created; there is nothing more to grant.
fn check_direction(
    rule: &str,
    target: NetworkObject,
    direction: Direction,
) -> Result<NetworkObject, Problem> {
    match (&target, direction) {
        (NetworkObject::Unix(..), Direction::Bind) => Err(Problem::BadEndpoint {
            rule: rule.to_owned(),
            reason: "binding a unix socket creates a file",
            help: "list its directory in `files.write`: sockets may be made where files may"
                .to_owned(),
        }),
        _ => Ok(target),
    }
}

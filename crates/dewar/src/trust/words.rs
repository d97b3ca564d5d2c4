//! What a profile grants, in words, beside what a run has without one.

use super::{
    beside,
    lines::{list, rows, shown},
};
use crate::failure::Usage;
use anyhow::bail;
use flask::{FileKind, FileRule};
use labelling::{PathRules, depth, stem_dir};
use learn::Judge;
use profile::{Compiled, EndpointRule, PathRights, PathRule, Source, Variables};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

/// More lines than this of what a profile takes are counted. What it gives is told whole.
const MOST: usize = 3;
/// Nobody reads more lines, as a screen shows them.
const MOST_TOLD: usize = 300;
/// What is said of something in a directory of which a run has its own otherwise.
const OF_MACHINE: &str = "this machine's own";

/// What a profile grants and takes.
pub(super) struct Words {
    pub(super) text: String,
    /// What is to be read last, just above the question: what is written, kept back otherwise, or
    /// acts for whoever connects.
    pub(super) worst: String,
}

/// What `compiled` grants and takes, compared with the profile that a run has by default.
pub(super) fn compared(compiled: &Compiled, variables: &Variables) -> anyhow::Result<Words> {
    let default = Source::Shipped("workspace".into());
    let default = profile::load(&default, variables, &mut profile::unresolved)?;
    let (old, new) = (Judge::new(&default)?, Judge::new(compiled)?);
    let powers = learn::powers(compiled, &new, &variables.home);
    let (mut text, mut writes, mut worst) = (String::new(), String::new(), String::new());
    let mut said = BTreeSet::new();
    for domain in &compiled.domains {
        let who = match domain.name.as_str() {
            "main" => String::new(),
            name => format!(" (domain {name})"),
        };
        let (mut gained, lost) = files((&default, compiled), (&old, &new), &domain.name, variables);
        // What the base domain has, too, was said of that; of no other one.
        if domain.name == "main" {
            said.clone_from(&gained);
        } else if domain.inherits {
            gained.retain(|line| !said.contains(line));
        }
        let of = |rank: fn(&Rank) -> bool| {
            gained.iter().filter(move |line| rank(&line.0)).map(|line| &line.1)
        };
        let may = format!("may also{who}");
        list(&mut text, &may, of(|rank| *rank < Rank::Writes))?;
        list(&mut writes, &may, of(|rank| *rank == Rank::Writes))?;
        list(&mut worst, &may, of(|rank| *rank == Rank::KeptBack))?;
        if domain.name == "main" {
            match lost.len() {
                0..=MOST => list(&mut text, "may not", &lost)?,
                count => writeln!(
                    text,
                    "  may not use {count} places as a run does without it: `dewar policy show` tells all"
                )?,
            }
        }
        list(&mut text, &format!("may reach{who}"), &endpoints(compiled, &domain.connect))?;
        list(&mut text, &format!("may listen at{who}"), &endpoints(compiled, &domain.bind))?;
        let powers =
            powers.iter().filter(|it| it.domain.as_deref().unwrap_or("main") == domain.name);
        let powers = powers.map(|it| format!("{}, by {}", it.gives, it.address));
        list(&mut worst, &format!("GIVES{who}"), &powers.collect::<Vec<_>>())?;
        let both = (&default, compiled);
        beside::of_domain(&mut text, both, (domain, &who), variables)?;
    }
    beside::of_run(&mut text, (&default, compiled), variables)?;
    let worst = writes + &worst;
    if text.is_empty() && worst.is_empty() {
        text = "  grants what a run without it has, and nothing more\n".into();
    }
    Ok(Words { text, worst })
}

/// All that is told, if somebody reads that much.
pub(super) fn readable(text: String) -> anyhow::Result<String> {
    let lines: usize = text.lines().map(rows).sum();
    if lines > MOST_TOLD {
        bail!(Usage(format!(
            "what it grants takes {lines} lines, which nobody reads at a prompt, so it is not asked about: \
             `dewar policy show` tells it, and `dewar run -p` uses it unasked"
        )));
    }
    Ok(text)
}

/// How bad it is to have something, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Reads,
    Executes,
    Writes,
    /// A run has none of it by default, or has its own in its place.
    KeptBack,
}

/// What a domain has beyond the default, the worst last; and what it lacks of that.
fn files(
    (default, compiled): (&Compiled, &Compiled),
    (old, new): (&Judge, &Judge),
    domain: &str,
    variables: &Variables,
) -> (BTreeSet<(Rank, String)>, BTreeSet<String>) {
    let (mut gained, mut lost) = (BTreeSet::new(), BTreeSet::new());
    let index = compiled.domains.iter().position(|known| known.name == domain).unwrap_or(0);
    let rights = |path: &Path| (old.rights(path, None), new.rights(path, Some(domain)));
    let change = |path: &Path| {
        let (before, now) = rights(path);
        (verbs(now, before), verbs(before, now))
    };
    let kept_back = KeptBack::of(default);
    let is_temporary = |path: &Path| {
        let yours = [&variables.home, &variables.workspace];
        default.temporary.iter().any(|own| path.starts_with(own))
            && !yours.iter().any(|own| path.starts_with(own))
    };
    let worst = |path: &Path| {
        let is_of_machine = is_temporary(path) && !default.temporary.iter().any(|own| path == own);
        match kept_back.holds(path) {
            true => Some("kept back otherwise"),
            false => is_of_machine.then_some(OF_MACHINE),
        }
    };
    let places = [default, compiled].into_iter().flat_map(rules).filter_map(|it| it.path.as_ref());
    for path in places.collect::<BTreeSet<_>>() {
        let (more, less) = change(path);
        // Told of the directory around it; what is kept back otherwise is always told.
        let above = path.parent().filter(|parent| rights(parent).1 == rights(path).1);
        let of_above = above.map(change).unwrap_or_default();
        let is_told = |verbs: &str, above: &str| verbs.is_empty() || above.contains(verbs);
        let place = shown(path, variables);
        if let Some(why) = worst(path).filter(|_| !more.is_empty()) {
            gained.insert((Rank::KeptBack, format!("{more} {place}, {why}")));
        } else if !is_told(&more, &of_above.0) {
            gained.insert((rank(&more), format!("{more} {place}")));
        }
        if !is_told(&less, &of_above.1) {
            lost.insert(format!("{less} {place}"));
        }
    }
    // What a pattern stands for may lie anywhere below what it starts with.
    for rule in rules(compiled).filter(|rule| rule.path.is_none()) {
        let (stem, now) = (stem_dir(&rule.regex), rule.rights[index]);
        let known = rules(default).find(|it| it.regex == rule.regex).map(|it| it.rights[0]);
        let is_freed = |path: &Path| !new.withholds(path, Some(domain));
        let why = match kept_back.holds(&stem) {
            true => Some("kept back otherwise"),
            false if kept_back.any_in(rule, is_freed) => Some("where some is kept back otherwise"),
            false => is_temporary(&stem).then_some(OF_MACHINE),
        };
        // Of what it may match, the default has the least somewhere.
        let least = || if why.is_some() { PathRights::default() } else { old.rights(&stem, None) };
        let before = known.unwrap_or_else(least);
        let (more, less) = (verbs(now, before), verbs(before, now));
        let place = shown(Path::new(&rule.glob), variables);
        match why {
            Some(why) if !more.is_empty() => {
                gained.insert((Rank::KeptBack, format!("{more} {place}, {why}")));
            }
            _ if !more.is_empty() => drop(gained.insert((rank(&more), format!("{more} {place}")))),
            _ => {}
        }
        if !less.is_empty() {
            lost.insert(format!("{less} {place}"));
        }
    }
    (gained, lost)
}

/// The places that a profile has rules for, and whether it keeps them back.
struct KeptBack<'a>(BTreeMap<&'a Path, bool>);

impl<'a> KeptBack<'a> {
    fn of(default: &'a Compiled) -> Self {
        let main = default.domains.first().map_or("main_t", |main| main.type_name.as_str());
        let known = rules(default).filter_map(|rule| {
            Some((rule.path.as_deref()?, default.withheld(main, &rule.type_name).is_some()))
        });
        Self(known.collect())
    }

    /// Whether `path` is kept back, or lies in what is.
    fn holds(&self, path: &Path) -> bool {
        path.ancestors().find_map(|above| self.0.get(above).copied()).unwrap_or(false)
    }

    /// Whether a pattern may match what is kept back and `is_freed`, or something in it.
    fn any_in(&self, rule: &PathRule, is_freed: impl Fn(&Path) -> bool) -> bool {
        let mut kept = self.0.iter().filter(|(_, is_kept)| **is_kept).map(|(path, _)| *path);
        kept.any(|path| may_match_in(&rule.regex, path) && is_freed(path))
    }
}

fn rules(compiled: &Compiled) -> impl Iterator<Item = &PathRule> {
    compiled.paths.iter().filter(|rule| !rule.by_name && !rule.is_way)
}

fn rank(verbs: &str) -> Rank {
    match verbs {
        verbs if verbs.contains("write") => Rank::Writes,
        verbs if verbs.contains("execute") => Rank::Executes,
        _ => Rank::Reads,
    }
}

/// Whether a regular expression may match `path`, or something below it; in doubt, it does.
fn may_match_in(regex: &str, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(stem_dir(regex)) else { return false };
    let Some(depth) = depth(regex) else { return true };
    match below.components().count().cmp(&depth) {
        Ordering::Less => true,
        Ordering::Equal => {
            let rule = FileRule { path: regex.to_owned(), kind: FileKind::Any, sid: None };
            let rules = PathRules::new(&[rule]);
            rules.map_or(true, |rules| rules.rule(path, FileKind::Any).is_some())
        }
        Ordering::Greater => regex.ends_with("(/.*)?"),
    }
}

/// The strongest words for what `these` have and `those` have not.
fn verbs(these: PathRights, those: PathRights) -> String {
    let mut verbs = Vec::new();
    if these.write && !those.write {
        verbs.push("write");
    } else if these.read && !those.read {
        verbs.push("read");
    } else if these.list && !those.list && !those.read {
        verbs.push("list");
    }
    if these.exec && !those.exec {
        verbs.push("execute");
    }
    verbs.join(" and ")
}

fn endpoints(compiled: &Compiled, rules: &[EndpointRule]) -> BTreeSet<String> {
    let text = |rule: &EndpointRule| {
        let ports = match (rule.low, rule.high) {
            (0, u16::MAX) => "*".to_owned(),
            (low, high) if low == high => low.to_string(),
            (low, high) => format!("{low}-{high}"),
        };
        let protocol = match rule.protocol {
            flask::Protocol::Udp => "/udp",
            _ => "",
        };
        format!("{}:{ports}{protocol}", compiled.hosts[rule.host].host)
    };
    rules.iter().map(text).collect()
}

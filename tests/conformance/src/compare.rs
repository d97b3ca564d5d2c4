//! Compares our answers with libsepol's.

use anyhow::{Context as _, Result};
use security_server::policy::{Context, TypeRuleKind};
use security_server::{BoolId, ClassId, Engine};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Questions with libsepol's answers, as the oracle prints them.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a>(pub &'a str);

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Access vectors compared.
    pub decisions: usize,
    /// Those of them that grant something.
    pub granting: usize,
    /// Labels compared.
    pub labels: usize,
    /// Labels of socket classes, which libsepol computes unlike the kernel: there ours must be the
    /// kernel's.
    pub sockets: usize,
    /// The first differences, in words.
    pub differences: Vec<String>,
}

/// Asks `engine` every question of the sample, with the booleans that the sample sets.
///
/// # Errors
///
/// When a line of the sample makes no sense.
pub fn compare(engine: &Engine, sample: Sample<'_>) -> Result<Tally> {
    let policy = engine.policy();
    let mut booleans = Vec::new();
    let mut tally = Tally::default();
    for line in sample.0.lines().filter_map(|line| line.strip_prefix("bool\t")) {
        let (name, state) = line.split_once('\t').context("a boolean without a state")?;
        let index = policy.booleans.get_index_of(name).context("a boolean that we do not know")?;
        booleans.push((BoolId::at(index), state == "1"));
    }
    let engine = engine.with_booleans(&booleans);
    let mut contexts: HashMap<&str, Context> = HashMap::new();
    for line in sample.0.lines().filter_map(|line| line.strip_prefix("av\t")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [source, target, class, allowed, auditallow, auditdeny, labels @ ..] = &fields[..]
        else {
            anyhow::bail!("the oracle printed `{line}`");
        };
        for text in [source, target] {
            if !contexts.contains_key(text) {
                let parsed = policy.parse_context(text).with_context(|| (*text).to_owned())?;
                contexts.insert(text, parsed);
            }
        }
        let class = policy.class(class).context("a class that we do not know")?;
        let asked = Asked { source: &contexts[source], target: &contexts[target], class };
        compare_av(&engine, asked, [allowed, auditallow, auditdeny], line, &mut tally);
        compare_labels(&engine, asked, labels, line, &mut tally);
    }
    Ok(tally)
}

#[derive(Clone, Copy)]
struct Asked<'a> {
    source: &'a Context,
    target: &'a Context,
    class: ClassId,
}

fn compare_av(engine: &Engine, q: Asked<'_>, theirs: [&str; 3], line: &str, tally: &mut Tally) {
    let av = engine.compute_av(q.source, q.target, q.class);
    let ours = [av.allowed, av.auditallow, av.auditdeny].map(|word| format!("{word:08x}"));
    tally.decisions += 1;
    tally.granting += usize::from(av.allowed != 0);
    if ours.iter().ne(theirs) {
        differ(tally, line, &format!("{ours:?}"));
    }
}

fn compare_labels(engine: &Engine, q: Asked<'_>, theirs: &[&str], line: &str, tally: &mut Tally) {
    let kinds = [TypeRuleKind::Transition, TypeRuleKind::Member, TypeRuleKind::Change];
    let policy = engine.policy();
    for (kind, theirs) in kinds.into_iter().zip(theirs) {
        let label = engine.compute_label(kind, q.source, q.target, q.class, None);
        if policy.class_name(q.class).ends_with("socket") {
            tally.sockets += 1;
            if label.is_ok_and(|label| label.role != q.source.role) {
                differ(tally, line, "a socket did not take its creator's role");
            }
            continue;
        }
        let ours = label.map_or_else(|_| "-".to_owned(), |label| policy.format_context(&label));
        tally.labels += 1;
        if ours != *theirs {
            differ(tally, line, &format!("{} {ours}", kind.keyword()));
        }
    }
}

fn differ(tally: &mut Tally, line: &str, ours: &str) {
    if tally.differences.len() < 20 {
        let mut text = String::new();
        let _ = write!(text, "libsepol: {line}\n    ours: {ours}");
        tally.differences.push(text);
    }
}

impl Tally {
    /// Adds another comparison's findings.
    pub fn add(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.granting += other.granting;
        self.labels += other.labels;
        self.sockets += other.sockets;
        self.differences.extend(other.differences);
    }
}

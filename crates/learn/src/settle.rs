//! Which lines it takes: enough that nothing is lacking, and none that is not needed.

use crate::{
    Access, Addresses, Detail, Judge, Line, Need, Scope, judge::endpoint, line::EPHEMERAL, lines,
    need, passing::Passing,
};
use std::collections::{BTreeMap, BTreeSet};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The lines, in the order of a profile.
    pub lines: Vec<Line>,
    /// What no line grants: what was denied, secrets, and what no profile can say.
    pub left: Vec<Access>,
}

/// The lines that grant those of `accesses` that were granted, where `compile` makes a judge of the
/// profile with some lines added. Removing any of them would leave something lacking. None of them
/// grants what was denied.
///
/// # Errors
///
/// Those of `compile`.
pub fn settle<E>(
    accesses: &BTreeMap<Access, u64>,
    scope: &Scope,
    addresses: &Addresses,
    mut compile: impl FnMut(&[Line]) -> Result<Judge, E>,
) -> Result<Settled, E> {
    let mut lines = Vec::new();
    let mut judge = compile(&lines)?;
    let (wanted, denied): (Vec<(&Access, u64)>, Vec<_>) = accesses
        .iter()
        .filter(|(access, _)| {
            !judge.missing(access).is_empty() && !is_made_once(access, accesses, scope)
        })
        .map(|(access, count)| (access, *count))
        .partition(|(access, _)| access.granted);
    let denied: Vec<&Access> = denied.into_iter().map(|(access, _)| access).collect();
    let passing = Passing::of(accesses);
    // First by kinds of places; what that leaves, by name.
    for detail in [Detail::Kind, Detail::Exact] {
        let lacking = wanted.iter().filter(|(access, _)| !judge.missing(access).is_empty());
        let needs = needs(lacking.copied(), &judge);
        let (more, _) = self::lines(&needs, (scope, detail), addresses);
        lines.extend(more.into_iter().map(|line| passing.lasting(line, scope)));
        lines.sort();
        lines.dedup_by(|a, b| (&a.domain, &a.key, &a.value) == (&b.domain, &b.key, &b.value));
        lines = without(&denied, lines, &mut compile)?;
        judge = compile(&lines)?;
    }
    let granted = wanted.iter().map(|(access, _)| *access);
    let granted: Vec<&Access> = granted.filter(|a| judge.missing(a).is_empty()).collect();
    let lines = minimal(lines, &granted, &mut compile)?;
    let judge = compile(&lines)?;
    let lines = lines.into_iter().map(|line| with_its_directory(line, &judge, scope)).collect();
    let left = wanted.iter().map(|(access, _)| *access).chain(denied);
    let left: BTreeSet<&Access> = left.filter(|it| !judge.missing(it).is_empty()).collect();
    Ok(Settled { lines, left: left.into_iter().cloned().collect() })
}

/// Whether servers of this machine were connected to that the run had not started: they are out of
/// reach of a run with a loopback of its own.
#[must_use]
pub fn shares_loopback<'a>(accesses: impl Iterator<Item = &'a Access> + Clone) -> bool {
    let endpoints = accesses.filter(|access| access.tclass == "endpoint");
    let on_loopback = endpoints.filter_map(|access| {
        let (address, protocol) = endpoint(&access.object)?;
        Some((access.wants("name_bind"), address, protocol))
    });
    let own: Vec<_> = on_loopback
        .clone()
        .filter_map(|(binds, address, protocol)| binds.then_some((address.port(), protocol)))
        .collect();
    // Whoever binds no port in particular is given one that no record names.
    let takes_any = own.iter().any(|(port, _)| *port == 0);
    on_loopback.filter(|(binds, address, _)| !binds && address.ip().is_loopback()).any(
        |(_, address, protocol)| {
            let is_own = own.contains(&(address.port(), protocol));
            !(is_own || takes_any && address.port() >= EPHEMERAL)
        },
    )
}

/// Whether it is about a directory in which programs have their own, or what is executed, made by
/// the first that came: the next run finds it there.
fn is_made_once(access: &Access, all: &BTreeMap<Access, u64>, scope: &Scope) -> bool {
    let Some(path) = access.path() else { return false };
    let makes = |other: &Access| {
        other.tclass == "dir" && other.wants("create") && other.path() == Some(path)
    };
    let is_made = || all.keys().any(makes);
    match scope.is_shelf(path) {
        true => !access.wants("read") || is_made(),
        false => access.granted && scope.is_executed(path) && is_made(),
    }
}

/// What `accesses` need, with who needs it how often.
#[must_use]
pub fn needs<'a>(
    accesses: impl Iterator<Item = (&'a Access, u64)>,
    judge: &Judge,
) -> BTreeMap<Need, BTreeMap<String, u64>> {
    let mut needs: BTreeMap<Need, BTreeMap<String, u64>> = BTreeMap::new();
    for (access, count) in accesses {
        if let Some(need) = need(access, &judge.missing(access)) {
            let who = needs.entry(need).or_default();
            // What is made once is not made the next time, and a line says the same both times.
            let is_made =
                access.tclass == "dir" && (access.wants("add_name") || access.wants("create"));
            if !is_made {
                *who.entry(access.who().to_owned()).or_default() += count;
            }
        }
    }
    needs
}

/// A line for a directory that no run could make is one that makes it.
fn with_its_directory(line: Line, judge: &Judge, scope: &Scope) -> Line {
    let is_dir = || scope.path(&line.value).is_some_and(|path| path.is_dir());
    match line.is_shut_in(judge, scope) && is_dir() {
        true => Line { value: line.value + "/", ..line },
        false => line,
    }
}

/// `lines` without those that grant something that was denied.
fn without<E>(
    denied: &[&Access],
    lines: Vec<Line>,
    compile: &mut impl FnMut(&[Line]) -> Result<Judge, E>,
) -> Result<Vec<Line>, E> {
    let grants = |judge: &Judge| denied.iter().any(|access| judge.missing(access).is_empty());
    if !grants(&compile(&lines)?) {
        return Ok(lines);
    }
    let mut kept: Vec<Line> = Vec::new();
    for line in lines {
        kept.push(line);
        if grants(&compile(&kept)?) {
            kept.pop();
        }
    }
    Ok(kept)
}

/// `lines` without those that all of `granted` can do without: the longest are tried first, so
/// that of two that cover the same the wider stays.
fn minimal<E>(
    mut lines: Vec<Line>,
    granted: &[&Access],
    compile: &mut impl FnMut(&[Line]) -> Result<Judge, E>,
) -> Result<Vec<Line>, E> {
    let mut order: Vec<Line> = lines.clone();
    order.sort_by_key(|line| (std::cmp::Reverse(line.value.len()), line.clone()));
    for line in order {
        let without: Vec<Line> = lines.iter().filter(|kept| **kept != line).cloned().collect();
        let judge = compile(&without)?;
        if granted.iter().all(|access| judge.missing(access).is_empty()) {
            lines = without;
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_a_run_had_not_started_are_others() {
        let endpoint = |object: &str, permission: &str| Access {
            tclass: "endpoint".into(),
            object: object.into(),
            requested: vec![permission.into()],
            ..Access::default()
        };
        let bind = |object| endpoint(object, "name_bind");
        let connect = |object| endpoint(object, "name_connect");
        for (accesses, shares) in [
            (vec![connect("127.0.0.1:5432")], true),
            (vec![bind("127.0.0.1:5432"), connect("127.0.0.1:5432")], false),
            (vec![bind("0.0.0.0:0"), connect("127.0.0.1:40001")], false),
            (vec![bind("0.0.0.0:0"), connect("[::1]:5432")], true),
            (vec![connect("192.0.2.1:443")], false),
        ] {
            assert_eq!(shares_loopback(accesses.iter()), shares, "{accesses:?}");
        }
    }
}

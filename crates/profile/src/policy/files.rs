//! Types of files, and what each domain may do with them.

use super::shared::{self, Shared};
use super::writer::{PermissionSet, Writer, object};
use crate::amended::{Amended, Taken};
use crate::amendment::{Clause, ClauseObject, everything};
use crate::merged::{Domain, Profile};
use crate::pattern::Pattern;
use crate::rights::{ListedPattern, Rights, Standing};
use crate::source::TextSpan;
use std::collections::HashSet;

/// What a domain may do with everything that is not hidden from it: see that it exists, and walk
/// through.
const EXIST: PermissionSet = PermissionSet {
    name: "files_exist",
    classes: &[
        ("file", "getattr"),
        ("dir", "getattr search"),
        ("lnk_file", "getattr"),
        ("chr_file", "getattr"),
        ("blk_file", "getattr"),
        ("fifo_file", "getattr"),
        ("sock_file", "getattr"),
    ],
};

/// `files.list`.
const LIST: PermissionSet = PermissionSet { name: "files_list", classes: &[("dir", "read open")] };

/// `files.read`. Block devices are granted by no list: they are the file system below all labels.
/// Devices are not watched: a watch on a terminal tells when its user types.
pub(super) const READ: PermissionSet = PermissionSet {
    name: "files_read",
    classes: &[
        ("file", "read open watch"),
        ("dir", "read open watch"),
        ("lnk_file", "read open"),
        ("chr_file", "read open"),
        ("fifo_file", "read open watch"),
        ("sock_file", "read open watch"),
    ],
};

/// `files.write`, beyond [`READ`]. Devices are written to, never made or removed.
pub(super) const WRITE: PermissionSet = PermissionSet {
    name: "files_write",
    classes: &[
        ("file", "write append create setattr unlink link rename"),
        ("dir", "write create setattr unlink rename add_name remove_name reparent rmdir"),
        ("lnk_file", "write create setattr unlink link rename"),
        ("chr_file", "write append"),
        ("fifo_file", "write append create setattr unlink link rename"),
        ("sock_file", "write create setattr unlink link rename"),
    ],
};

/// `files.exec`, beyond [`READ`].
const EXEC: PermissionSet =
    PermissionSet { name: "files_exec", classes: &[("file", "execute execute_no_trans")] };

/// `files.exec` on a program that enters another domain.
const EXEC_ENTERING: PermissionSet =
    PermissionSet { name: "files_exec_entering", classes: &[("file", "execute")] };

/// What may be made, but not changed once it is there.
const MAKE: PermissionSet = PermissionSet { name: "files_make", classes: &[("file", "create")] };

const SETS: [PermissionSet; 8] =
    [EXIST, LIST, READ, WRITE, EXEC, EXEC_ENTERING, MAKE, shared::ENTRIES];

/// Files of all kinds, as labelling rules name them; and those that lead elsewhere.
pub(super) const ANY: &[&str] = &["any"];
const WAYS: &[&str] = &["file", "symlink"];

/// The files of one pattern, which share a type.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) pattern: Pattern,
    /// The classes of files that it is about.
    pub(crate) kinds: &'static [&'static str],
    pub(crate) type_name: String,
    /// For each domain of the profile, its rights.
    pub(crate) rights: Vec<Rights>,
    /// For each domain, what amendments have taken.
    pub(crate) taken: Vec<Taken>,
    /// The pattern of the profile that these files belong to.
    pub(super) part_of: Pattern,
    /// A regular expression in the place of the pattern's: of its files, those with certain names.
    pub(crate) by_name: Option<String>,
    /// Indices of the amendments that are about all of these files; no other is about any of them.
    pub(super) clauses: Vec<usize>,
}

impl Node {
    /// The regular expression of its labelling rule.
    pub(crate) fn regex(&self) -> &str {
        self.by_name.as_deref().unwrap_or_else(|| self.pattern.regex())
    }

    pub(crate) fn is_way(&self) -> bool {
        self.kinds == WAYS
    }

    /// Has the amendments change the rights.
    pub(super) fn amend(&mut self, clauses: &[Clause]) {
        for (domain, rights) in self.rights.iter_mut().enumerate() {
            let about = clauses.iter().enumerate().filter(|(index, clause)| {
                let everywhere = matches!(clause.object, ClauseObject::All);
                clause.is_about(domain) && (everywhere || self.clauses.contains(index))
            });
            let amended = Amended::by(about.map(|(_, clause)| clause));
            (*rights, self.taken[domain]) = (amended.of(rights), amended.taken);
            if let Some(place) = everything(clauses, domain) {
                *rights =
                    Rights { denied: Some(place), hidden: rights.hidden, ..Rights::default() };
                self.taken[domain].connect = Some(place);
            }
        }
    }
}

/// One node for each pattern of the profile, in the order of labelling rules: of two that match a
/// path, the one with the longer stem labels it; among equals, the later. Of files of one domain's
/// pattern, a glob of another that restricts is about a part, which has a later node; where none
/// says it, it is about all of them.
pub(crate) fn nodes(profile: &Profile, out: &mut Writer) -> Vec<Node> {
    let mut patterns: Vec<(Pattern, bool)> = Vec::new();
    let mut seen = std::collections::HashMap::new();
    let named = profile.domains.iter().flat_map(Domain::patterns);
    let all: Vec<_> = named.chain(profile.domains.iter().flat_map(Domain::parts)).collect();
    for (pattern, restricts) in &all {
        let index = *seen.entry(pattern.regex()).or_insert_with(|| {
            patterns.push((pattern.clone(), false));
            patterns.len() - 1
        });
        patterns[index].1 |= restricts;
    }
    patterns.sort_by_key(|(pattern, restricts)| (pattern.stem(), *restricts));
    // What restricts all at and below a glob comes just before what another domain is granted at
    // the same glob: that is about a part of it. Not where others are about parts of it, too.
    for at in 0..patterns.len() {
        let (pattern, restricts) = &patterns[at];
        let top =
            pattern.regex().strip_suffix("(/.*)?").filter(|_| *restricts && pattern.is_glob());
        let Some(top) = top.filter(|top| seen.contains_key(top)) else { continue };
        let ties = patterns[..at].iter().map(|(other, _)| other).rev();
        let ties = ties.take_while(|other| other.stem() == pattern.stem());
        let apart = ties.clone().take_while(|other| {
            other.regex() != top && pattern.common(other).is_ok_and(|parts| parts.is_empty())
        });
        let apart = apart.count();
        if ties.clone().nth(apart).is_some_and(|other| other.regex() == top) {
            patterns[at - 1 - apart..=at].rotate_right(1);
        }
    }
    let is_within = |it: &&Pattern| Standing::of(it, &profile.temporary) == Standing::Within;
    let others = profile.domains.iter().flat_map(Domain::programs_and_sockets);
    let others: Vec<&Pattern> = others.filter(is_within).collect();
    let rights = |pattern: &Pattern| {
        let mut domains = profile.domains.iter();
        let is_of_machine = others.iter().any(|other| other.covers(pattern))
            || domains.any(|domain| domain.entries.are_of_machine(pattern));
        let domains = profile.domains.iter();
        domains.map(|domain| domain.entries.rights(pattern, is_of_machine)).collect()
    };
    let node = |(pattern, _): &(Pattern, bool)| Node {
        type_name: type_name(profile, pattern, out),
        rights: rights(pattern),
        taken: vec![Taken::default(); profile.domains.len()],
        part_of: pattern.clone(),
        pattern: pattern.clone(),
        kinds: ANY,
        by_name: None,
        clauses: Vec::new(),
    };
    let mut nodes: Vec<Node> = patterns.iter().map(node).collect();
    for (index, domain) in profile.domains.iter().enumerate() {
        let (named, restricting) = (domain.entries.named(), domain.entries.restricting());
        let (globs, paths): (Vec<&ListedPattern>, Vec<&ListedPattern>) =
            restricting.partition(|it| it.pattern.is_glob());
        for at in 0..nodes.len() {
            let pattern = &nodes[at].pattern;
            // A path loses nothing to another path.
            let paths = if pattern.is_glob() { paths.as_slice() } else { &[] };
            let about = globs.iter().chain(paths).copied();
            let about = about.filter(|it| it.pattern.may_lose(pattern));
            let about = about.filter(|_| !named.contains(pattern.regex()));
            let not_said_later = |entry: &&ListedPattern| {
                let said =
                    |part: &Pattern| nodes[at + 1..].iter().any(|it| it.pattern.covers(part));
                !entry.pattern.common(pattern).is_ok_and(|parts| parts.iter().all(said))
            };
            let restricted = about.filter(not_said_later);
            let rights = restricted.fold(nodes[at].rights[index], Rights::restricted_by);
            nodes[at].rights[index] = rights;
        }
    }
    nodes
}

/// Nodes for what would lead to files in the place of protected ones: where `/w/.git/config` is
/// protected and `/w` may be written, a link or file `/w/.git`, which Git follows. A directory
/// there leads nowhere: names in it are protected. And for what would lead to other files than the
/// directories `left`. They come after all of `nodes`.
pub(crate) fn ways(nodes: &[Node], left: &[(Pattern, TextSpan)], out: &mut Writer) -> Vec<Node> {
    let of = |pattern: &Pattern| nodes.iter().rev().find(|node| node.pattern.covers(pattern));
    let is_writable = |node: &&Node| node.rights.iter().any(|rights| rights.write.is_some());
    let writable: Vec<&Pattern> =
        nodes.iter().filter(is_writable).map(|node| &node.pattern).collect();
    let is_below = |protected: &&Node| {
        writable.iter().any(|pattern| pattern.may_lie_around(&protected.pattern))
    };
    let mut ways: Vec<Node> = Vec::new();
    let mut close = |(outer, node, inner): (&Node, &Node, &Pattern), domain: usize, why| {
        if outer.rights[domain].write.is_none() || node.rights[domain].write.is_none() {
            return;
        }
        let known = ways.iter().position(|way| way.pattern == *inner);
        let at = known.unwrap_or_else(|| {
            ways.push(way(node, inner, out));
            ways.len() - 1
        });
        let way = &mut ways[at].rights[domain];
        *way = Rights { read: way.readable(), write: None, unwritten: why, ..*way };
    };
    for protected in nodes.iter().filter(is_below) {
        let above: Vec<Pattern> = protected.pattern.above().collect();
        for (outer, inner) in above.iter().zip(above.iter().skip(1)) {
            let (Some(outer), Some(node)) = (of(outer), of(inner)) else { continue };
            for (index, rights) in protected.rights.iter().enumerate() {
                if rights.write.is_none() {
                    let why = rights.denied.or(rights.hidden).or(protected.taken[index].write);
                    close((outer, node, inner), index, why.or(rights.read));
                }
            }
        }
    }
    for (directory, why) in left {
        let directory = directory.clone().with_nothing_below();
        let outer = directory.above().last();
        let (Some(outer), Some(node)) = (outer.as_ref().and_then(of), of(&directory)) else {
            continue;
        };
        for domain in 0..node.rights.len() {
            close((outer, node, &directory), domain, Some(*why));
        }
    }
    ways
}

/// A node for what is no directory at the one path of `pattern`, with the rights of `node`.
fn way(node: &Node, pattern: &Pattern, out: &mut Writer) -> Node {
    Node {
        pattern: pattern.clone(),
        kinds: WAYS,
        type_name: out.names.fresh(pattern.label(), "way_t"),
        rights: node.rights.clone(),
        taken: node.taken.clone(),
        part_of: node.part_of.clone(),
        by_name: None,
        clauses: node.clauses.clone(),
    }
}

/// `git_exec_t` for what enters the domain `git`; otherwise named after the pattern.
fn type_name(profile: &Profile, pattern: &Pattern, out: &mut Writer) -> String {
    let enters = profile.domains.iter().find(|d| d.programs.iter().any(|(p, _)| p == pattern));
    match enters {
        Some(domain) => out.names.fresh(&domain.name, "exec_t"),
        None => out.names.fresh(pattern.label(), "t"),
    }
}

/// Writes types, labelling rules and rights. `entered[domain]` says which nodes lead out of the
/// domain.
pub(crate) fn write(
    (profile, types): (&Profile, &[String]),
    nodes: &[Node],
    entered: &[Vec<bool>],
    clauses: &[Clause],
    out: &mut Writer,
) {
    out.heading("files: what is granted together");
    SETS.into_iter().for_each(|set| out.define(set));
    out.heading("files: one type for each pattern");
    let mut declared = HashSet::new();
    for node in nodes {
        if declared.insert(node.type_name.as_str()) {
            out.object_type(&node.type_name);
        }
        let regex = node.regex();
        for kind in node.kinds {
            out.line(format_args!("(filecon \"{regex}\" {kind} {})", object(&node.type_name)));
        }
    }
    let shared = Shared::all(profile, nodes, out);
    for (index, domain) in profile.domains.iter().enumerate() {
        out.heading(&format!("files: what {} may do", domain.name));
        write_visible(index, &types[index], nodes, out);
        if everything(clauses, index).is_none() {
            out.allow_set(None, &types[index], &visible(&types[index]), EXIST);
        }
        let mut written = HashSet::new();
        for (node, enters) in nodes.iter().zip(&entered[index]) {
            if !written.insert(node.type_name.as_str()) {
                continue;
            }
            let rights = &node.rights[index];
            match shared.iter().find(|shared| shared.is(node)) {
                Some(shared) => shared.write(&types[index], rights, out),
                None => write_rights(&types[index], node, rights, *enters, out),
            }
        }
    }
}

/// The attribute of what exists for a domain: everything but what is hidden.
fn write_visible(index: usize, domain: &str, nodes: &[Node], out: &mut Writer) {
    let visible = visible(domain);
    out.line(format_args!("(typeattribute {visible})"));
    let shown = nodes.iter().filter(|node| node.rights[index].hidden.is_none());
    let mut named = HashSet::new();
    let names = shown.map(|node| node.type_name.as_str()).filter(|name| named.insert(*name));
    let names: Vec<&str> = names.collect();
    out.line(format_args!("(typeattributeset {visible} (default_t {}))", names.join(" ")));
}

/// The attribute of what exists for a domain. Types end in `_t`, so it is no type's name.
pub(super) fn visible(domain: &str) -> String {
    format!("{}_visible", domain.trim_end_matches("_t"))
}

fn write_rights(domain: &str, node: &Node, rights: &Rights, enters: bool, out: &mut Writer) {
    let exec = if enters { EXEC_ENTERING } else { EXEC };
    for (place, set) in [
        (rights.list, LIST),
        (rights.readable(), READ),
        (rights.write, WRITE),
        (rights.exec, exec),
        (rights.make, MAKE),
    ] {
        if place.is_some() {
            out.allow_set(place, domain, &node.type_name, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::Class;

    #[test]
    fn every_class_and_permission_in_the_tables_exists() {
        for (class, permissions) in SETS.iter().flat_map(|set| set.classes) {
            let class = Class::by_name(class).expect(class);
            for permission in permissions.split(' ') {
                assert!(class.permission(permission).is_some(), "{class} {permission}");
            }
        }
    }
}

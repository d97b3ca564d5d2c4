//! Types for what programs outside trust by its name, among the files that a guarded domain may
//! write.
//!
//! Each rule that grants writing is refined by further ones, which give some names among its files
//! another type. Of the rules that refine one, the later decides.

use super::files::{ANY, Node};
use super::writer::Writer;
use crate::guard::{GuardAction, GuardLevel, GuardedName, host_trusted};
use crate::merged::{Domain, Profile};
use crate::pattern::Pattern;
use crate::rights::Rights;
use std::path::Path;

/// How labelling rules write that names count below `/`.
const ROOT: &str = "/{0}";

/// What the names of one rule may be used for.
#[derive(Clone, Copy)]
enum Use {
    /// Not for writing.
    Guarded,
    /// For making.
    Pointer,
    /// For whatever the refined rule grants.
    Free,
}

/// The nodes that refine `nodes`.
pub(crate) fn guards(profile: &Profile, nodes: &[Node], out: &mut Writer) -> Vec<Node> {
    if profile.domains.iter().all(|domain| domain.guard.action().is_none()) {
        return Vec::new();
    }
    let names: Vec<GuardedName> = host_trusted().collect();
    let guarded = nodes.iter().filter(|node| node.kinds == ANY && is_guarded(profile, node));
    guarded.flat_map(|node| refinements(profile, node, &names, out)).collect()
}

/// Where names count that guard the files of `node` from a domain with `rights` to them: below what
/// the entry names that lets it write there. What another entry names, to be read, is guarded.
fn top(domain: &Domain, rights: &Rights, node: &Node) -> Option<Pattern> {
    let place = rights.write.filter(|_| domain.guard.action().is_some() && open(rights))?;
    let entry = domain.entries.written_from(place, &node.pattern);
    // What was given to a run is named by who gave it.
    Some(entry.unwrap_or_else(|| node.pattern.top()))
}

/// Whether a guarded domain may write there, in what others see.
fn is_guarded(profile: &Profile, node: &Node) -> bool {
    // What a profile names in `/dev/shm` is of outside, such as a workspace there.
    let is_device =
        |path: &str| path.starts_with("/dev/") && !Path::new(path).starts_with("/dev/shm");
    let is_own = |path: &str| {
        let is_temporary = profile.temporary.iter().any(|it| it.as_os_str() == path);
        path == profile.tmp || is_temporary && !profile.shares_temporary
    };
    let is_private = |path: &str| is_own(path) || is_device(path);
    let is_private = node.pattern.literal().is_some_and(|path| is_private(&path));
    let mut domains = profile.domains.iter().zip(&node.rights);
    !is_private && domains.any(|(domain, rights)| domain.guard.action().is_some() && open(rights))
}

fn open(rights: &Rights) -> bool {
    rights.write.is_some() && rights.unguarded.is_none()
}

fn refinements(
    profile: &Profile,
    node: &Node,
    names: &[GuardedName],
    out: &mut Writer,
) -> Vec<Node> {
    let domains = profile.domains.iter().zip(&node.rights);
    let mut tops: Vec<Pattern> =
        domains.filter_map(|(domain, rights)| top(domain, rights, node)).collect();
    // Of two that are about a file, the later decides: the inner is about no more than the outer.
    tops.sort_by_key(Pattern::stem);
    tops.dedup();
    tops.iter().flat_map(|top| refinements_below(profile, (node, top), names, out)).collect()
}

fn refinements_below(
    profile: &Profile,
    (node, below): (&Node, &Pattern),
    names: &[GuardedName],
    out: &mut Writer,
) -> Vec<Node> {
    let stem = node.type_name.trim_end_matches("_t").to_owned();
    let guarded = out.names.fresh(&stem, "guarded_t");
    let pointer = out.names.fresh(&stem, "pointer_t");
    let of = |level: GuardLevel| {
        names.iter().filter(move |name| name.level == level).map(|name| name.name)
    };
    // A link in the place of a directory would lead to the same names elsewhere.
    let first = |level| of(level).filter_map(|name| Some(name.split_once('/')?.0));
    let is_about = |domain: &Domain, rights: &Rights| {
        top(domain, rights, node).is_some_and(|own| own.stem() <= below.stem())
    };
    // Where packages lie in what is guarded, nobody but who reads that looks for anything.
    let (kept, packages) = (alternatives(of(GuardLevel::Deny)), alternatives(of(GuardLevel::But)));
    let kept_packages = format!("{kept})/(.*/)?(?i:{packages}");
    let one = |names: String, deep, kinds, type_name: &str, uses| {
        let by_name = Some(by_name((node, below), &names, deep));
        let rights = profile.domains.iter().zip(&node.rights);
        let rights = rights.map(|(domain, rights)| match domain.guard.action() {
            Some((GuardAction::Deny, place)) if is_about(domain, rights) => {
                narrowed(rights, uses, place)
            }
            _ => *rights,
        });
        Node {
            by_name,
            kinds,
            type_name: type_name.to_owned(),
            rights: rights.collect(),
            pattern: node.pattern.clone(),
            taken: node.taken.clone(),
            part_of: node.part_of.clone(),
            clauses: node.clauses.clone(),
        }
    };
    let (deny, always) = (GuardLevel::Deny, GuardLevel::Always);
    vec![
        one(kept, true, ANY, &guarded, Use::Guarded),
        one(alternatives(first(deny)), false, &["symlink"], &guarded, Use::Guarded),
        one(packages, true, ANY, &node.type_name, Use::Free),
        one(kept_packages, true, ANY, &guarded, Use::Guarded),
        // Before what is always kept: `.git/commondir` is not one that may be made.
        one(alternatives(of(GuardLevel::Make)), false, &["file"], &pointer, Use::Pointer),
        one(alternatives(of(always)), true, ANY, &guarded, Use::Guarded),
        one(alternatives(first(always)), false, &["symlink"], &guarded, Use::Guarded),
    ]
}

/// A regular expression, as labelling rules write it, for files of `node` by their names below
/// `top`.
fn by_name((node, top): (&Node, &Pattern), names: &str, deep: bool) -> String {
    let below = if deep { "(/.*)?" } else { "" };
    let top = match top.regex() {
        own if own == node.pattern.top().regex() => "",
        "/" => ROOT,
        other => other,
    };
    format!("({}){{0}}{top}/(.*/)?(?i:{names}){below}", node.pattern.regex())
}

fn alternatives(names: impl Iterator<Item = &'static str>) -> String {
    let mut seen = Vec::new();
    for name in names {
        let name = name.replace('.', "\\.").replace('*', "[^/]*");
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen.join("|")
}

fn narrowed(rights: &Rights, uses: Use, place: crate::source::TextSpan) -> Rights {
    let kept = Rights { read: rights.readable(), write: None, unwritten: Some(place), ..*rights };
    match uses {
        Use::Guarded => kept,
        Use::Pointer => Rights { make: Some(place), ..kept },
        Use::Free => *rights,
    }
}

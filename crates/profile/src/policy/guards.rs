//! Types for what programs outside trust by its name, among the files that a guarded domain may
//! write.
//!
//! Each rule that grants writing is refined by further ones, which give some names among its files
//! another type. Of the rules that refine one, the later decides.

use super::files::{ANY, Node};
use super::writer::Writer;
use crate::guard::{GuardAction, GuardLevel, GuardedName, host_trusted};
use crate::merged::Profile;
use crate::rights::Rights;

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

/// Whether a guarded domain may write there, in what others see.
fn is_guarded(profile: &Profile, node: &Node) -> bool {
    // What a profile names in `/dev/shm` is of outside, such as a workspace there.
    let is_device = |path: &str| path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    let is_private = |path: &str| path == profile.tmp || is_device(path);
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
    let stem = node.type_name.trim_end_matches("_t").to_owned();
    let guarded = out.names.fresh(&stem, "guarded_t");
    let pointer = out.names.fresh(&stem, "pointer_t");
    let of = |level: GuardLevel| {
        names.iter().filter(move |name| name.level == level).map(|name| name.name)
    };
    // A link in the place of a directory would lead to the same names elsewhere.
    let first = |level| of(level).filter_map(|name| Some(name.split_once('/')?.0));
    let one = |names: String, deep, kinds, type_name: &str, uses| {
        let by_name = Some(by_name(node.pattern.regex(), &names, deep));
        let rights = profile.domains.iter().zip(&node.rights);
        let rights = rights.map(|(domain, rights)| match domain.guard.action() {
            Some((GuardAction::Deny, place)) if open(rights) => narrowed(*rights, uses, place),
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
        one(alternatives(of(deny)), true, ANY, &guarded, Use::Guarded),
        one(alternatives(first(deny)), false, &["symlink"], &guarded, Use::Guarded),
        one(alternatives(of(GuardLevel::But)), true, ANY, &node.type_name, Use::Free),
        one(alternatives(of(always)), true, ANY, &guarded, Use::Guarded),
        one(alternatives(first(always)), false, &["symlink"], &guarded, Use::Guarded),
        one(alternatives(of(GuardLevel::Make)), false, &["file"], &pointer, Use::Pointer),
    ]
}

/// A regular expression, as labelling rules write it, for files of `base` by their names.
fn by_name(base: &str, names: &str, deep: bool) -> String {
    let below = if deep { "(/.*)?" } else { "" };
    format!("({base}){{0}}/(.*/)?(?i:{names}){below}")
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

fn narrowed(rights: Rights, uses: Use, place: crate::source::TextSpan) -> Rights {
    let kept = Rights { read: rights.readable(), write: None, denied: Some(place), ..rights };
    match uses {
        Use::Guarded => kept,
        Use::Pointer => Rights { make: Some(place), ..kept },
        Use::Free => rights,
    }
}

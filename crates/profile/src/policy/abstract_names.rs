//! Abstract names of unix sockets: their labels, and who may connect to them.

use super::sockets::{STREAM_CONNECT, unix_rights};
use super::standing::{Standing, Taken, about};
use super::writer::{Writer, object};
use crate::amendment::{Clause, ClauseObject};
use crate::merged::Profile;
use crate::network::{AbstractName, NetworkObject};
use crate::source::TextSpan;

/// Abstract names carry the label of the rule for `@NAME`, or that of the initial SID `any_socket`.
pub(super) fn write(
    (profile, types): (&Profile, &[String]),
    clauses: &[Clause],
    out: &mut Writer,
) -> Taken {
    out.heading("sockets: abstract names");
    let names = abstract_names(profile, clauses, out);
    for (name, type_name, place) in &names {
        let (regex, context) = (name.regex(), object(type_name));
        out.object_type(type_name);
        out.rule(Some(*place), format_args!("(filecon \"{regex}\" socket {context})"));
        for domain in types {
            let visible = super::files::visible(domain);
            out.line(format_args!("(typeattributeset {visible} ({type_name}))"));
        }
    }
    let mut taken = Vec::new();
    let names = names.iter().map(|(name, type_name, _)| (Some(name), type_name.as_str()));
    let targets: Vec<_> = names.chain([(None, "any_socket_t")]).collect();
    for (index, domain) in types.iter().enumerate() {
        for (name, target) in &targets {
            let rules =
                profile.domains[index].network.iter().filter_map(|rule| match &rule.target {
                    NetworkObject::Abstract(flavour, of) if covers(of.as_ref(), *name) => {
                        Some((rule, *flavour))
                    }
                    _ => None,
                });
            let in_clause = |object: &ClauseObject| match object {
                ClauseObject::Abstract(of) => covers(of.as_ref(), *name),
                _ => false,
            };
            let amended = Standing::new(None, about(clauses, index), in_clause, true);
            if let Some(place) = amended.granted {
                out.allow(Some(place), domain, target, STREAM_CONNECT);
            }
            if let Some(place) = amended.taken {
                taken.push((index, (*target).to_owned(), place));
                continue;
            }
            for (rule, flavour) in rules {
                out.allow(Some(rule.place), domain, target, unix_rights(flavour, rule.direction));
            }
        }
    }
    taken
}

/// Whether `of` (all names for `None`) covers `name` (a name that no rule speaks about for `None`).
fn covers(of: Option<&AbstractName>, name: Option<&AbstractName>) -> bool {
    of.is_none_or(|of| name.is_some_and(|name| of.covers(name)))
}

/// The abstract names that rules and amendments speak about, each with its type, in the order of
/// labelling rules.
fn abstract_names(
    profile: &Profile,
    clauses: &[Clause],
    out: &mut Writer,
) -> Vec<(AbstractName, String, TextSpan)> {
    let rules = profile.domains.iter().flat_map(|domain| &domain.network);
    let of_profile = rules.filter_map(|rule| match &rule.target {
        NetworkObject::Abstract(_, Some(name)) => Some((name, rule.place, "t")),
        _ => None,
    });
    let of_clauses = clauses.iter().filter_map(|clause| match &clause.object {
        ClauseObject::Abstract(Some(name)) => Some((name, clause.place, "_t")),
        _ => None,
    });
    let mut names: Vec<(AbstractName, String, TextSpan)> = Vec::new();
    for (name, place, suffix) in of_profile.chain(of_clauses) {
        if names.iter().all(|(known, _, _)| known != name) {
            names.push((name.clone(), out.names.fresh(&name.label(), suffix), place));
        }
    }
    // Of `@x` and `@x*`, which have equal stems, the one that stands for less is the later.
    names.sort_by_key(|(name, _, _)| !name.is_prefix());
    names
}

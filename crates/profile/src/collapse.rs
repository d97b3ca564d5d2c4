//! Amendments that cancel each other, or that fewer of them come to: without this, every change of
//! a run would cost more than the one before.
//!
//! Amendments about the same files are a group, as are those about the same endpoints. A group
//! that has nothing in common with any other is replaced by the fewest of its amendments that come
//! to the same, now and whatever follows. In doubt, all stay.

use crate::amended::Amended;
use crate::amendment::{AmendmentKind, Clause, ClauseObject, everything};
use crate::hosts::ResolvedHost;
use crate::policy::Standing;
use crate::source::TextSpan;
use std::net::IpAddr;

/// Of one group, more are not tried in every combination.
const MOST_MEMBERS: usize = 6;
/// With more groups, what is about everything is not tried to be left out.
const MOST_GROUPS: usize = 64;

/// The indices of the clauses that are enough, for that many domains.
pub(crate) fn enough(clauses: &[Clause], domains: usize) -> Vec<usize> {
    let is_all = |clause: &Clause| matches!(clause.object, ClauseObject::All);
    let alls: Vec<usize> = (0..clauses.len()).filter(|at| is_all(&clauses[*at])).collect();
    let groups = groups(clauses);
    let stands_alone = |group: &[usize]| {
        let apart = |other: &Vec<usize>| {
            other[0] == group[0] || !overlap(&clauses[group[0]].object, &clauses[other[0]].object)
        };
        groups.iter().all(apart)
    };
    if alls.is_empty() {
        let fewest = |group: &Vec<usize>| match group.len() {
            2.. if stands_alone(group) => fewest(clauses, group, group, domains),
            _ => None,
        };
        let mut kept: Vec<usize> = groups
            .iter()
            .flat_map(|group| fewest(group).unwrap_or_else(|| group.clone()))
            .collect();
        kept.sort_unstable();
        return kept;
    }
    let taken = (0..domains).any(|domain| everything(clauses, domain).is_some());
    let without = |group: &Vec<usize>| {
        let mut with = [group.as_slice(), &alls].concat();
        with.sort_unstable();
        if stands_alone(group) { fewest(clauses, group, &with, domains) } else { None }
    };
    let kept = match taken || groups.len() > MOST_GROUPS {
        true => None,
        false => groups.iter().map(without).collect::<Option<Vec<_>>>(),
    };
    let mut kept = kept.map_or_else(|| (0..clauses.len()).collect(), |kept| kept.concat());
    kept.sort_unstable();
    kept
}

/// Where that was taken, of which the last clause gives something back, perhaps: in doubt, it does.
pub(crate) fn given_back(clauses: &[Clause]) -> Option<TextSpan> {
    let (last, before) = clauses.split_last()?;
    let taken = |it: &&Clause| {
        it.kind == AmendmentKind::Revoke
            && it.shares_domain(last)
            && is_about(&it.object, &last.object)
    };
    before.iter().rfind(taken).filter(|_| last.kind == AmendmentKind::Grant).map(|it| it.place)
}

/// Whether what is granted may be among what was taken. Addresses that nobody has looked up yet
/// are asked about when they are known.
fn is_about(taken: &ClauseObject, granted: &ClauseObject) -> bool {
    let (ClauseObject::Endpoints(host, ports), ClauseObject::Endpoints(other, others)) =
        (taken, granted)
    else {
        return overlap(taken, granted);
    };
    let shares_port = ports.iter().any(|it| others.iter().any(|other| it.shares_port(other)));
    let meets = !other.networks.is_empty() && meet(host, other);
    shares_port && (host.host == other.host || meets)
}

/// Clauses about the same object, in their order.
fn groups(clauses: &[Clause]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, clause) in clauses.iter().enumerate() {
        if matches!(clause.object, ClauseObject::All) {
            continue;
        }
        let same = |group: &&mut Vec<usize>| is_same(&clauses[group[0]].object, &clause.object);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

fn is_same(one: &ClauseObject, other: &ClauseObject) -> bool {
    match (one, other) {
        (ClauseObject::Paths(_, one), ClauseObject::Paths(_, other)) => one == other,
        (ClauseObject::Endpoints(host, one), ClauseObject::Endpoints(other_host, other)) => {
            host == other_host && one == other
        }
        (ClauseObject::Abstract(one), ClauseObject::Abstract(other)) => one == other,
        _ => false,
    }
}

/// Whether some object may be meant by both. Says yes when in doubt.
fn overlap(one: &ClauseObject, other: &ClauseObject) -> bool {
    match (one, other) {
        (ClauseObject::Paths(_, one), ClauseObject::Paths(_, other)) => one
            .iter()
            .any(|one| other.iter().any(|it| one.common(it).map_or(true, |all| !all.is_empty()))),
        (ClauseObject::Endpoints(one, _), ClauseObject::Endpoints(other, _)) => meet(one, other),
        (ClauseObject::Abstract(_), ClauseObject::Abstract(_)) => true,
        (ClauseObject::All, _) | (_, ClauseObject::All) => true,
        _ => false,
    }
}

/// Whether two hosts have an address in common. A name without addresses may have any.
fn meet(one: &ResolvedHost, other: &ResolvedHost) -> bool {
    // As IPv6 has them all: networks of IPv6 may have mapped addresses in them.
    let mapped = |(address, length): (IpAddr, u8)| match address {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), u32::from(length) + 96),
        IpAddr::V6(address) => (address.to_bits(), u32::from(length)),
    };
    let same = |one, other| {
        let ((one, long), (other, short)) = (mapped(one), mapped(other));
        let behind = 128_u32.saturating_sub(long.min(short));
        (one ^ other).checked_shr(behind).unwrap_or(0) == 0
    };
    let (ones, others) = (&one.networks, &other.networks);
    ones.is_empty()
        || others.is_empty()
        || ones.iter().any(|one| others.iter().any(|other| same(*one, *other)))
}

/// The fewest of `group` that come to the same as `all`, which has the group in it.
fn fewest(
    clauses: &[Clause],
    group: &[usize],
    all: &[usize],
    domains: usize,
) -> Option<Vec<usize>> {
    if group.len() > MOST_MEMBERS {
        return None;
    }
    let mut choices: Vec<Vec<usize>> = (0..1_u32 << group.len())
        .map(|bits| {
            let chosen = group.iter().enumerate().filter(|(n, _)| bits & 1 << n != 0);
            chosen.map(|(_, at)| *at).collect()
        })
        .collect();
    choices.sort_by_key(Vec::len);
    choices
        .into_iter()
        .find(|choice| (0..domains).all(|domain| comes_to_the_same(clauses, choice, all, domain)))
}

fn comes_to_the_same(clauses: &[Clause], one: &[usize], other: &[usize], domain: usize) -> bool {
    let about = |which: &[usize]| -> Vec<&Clause> {
        let clauses = which.iter().map(|at| &clauses[*at]);
        clauses.filter(|clause| clause.is_about(domain)).collect()
    };
    let (one, other) = (about(one), about(other));
    let is_file = |clause: &&Clause| matches!(clause.object, ClauseObject::Paths(..));
    if one.iter().chain(&other).any(is_file) {
        let by = |clauses: &[&Clause]| Amended::by(clauses.iter().copied());
        return by(&one).is_like(&by(&other));
    }
    let standing = |clauses: &[&Clause]| {
        // What is about everything gives nothing new.
        let group = |object: &ClauseObject| !matches!(object, ClauseObject::All);
        let standing = Standing::new(None, clauses.iter().copied(), group, true);
        (standing.granted.is_some(), standing.taken.is_some())
    };
    standing(&one) == standing(&other)
}

#[cfg(test)]
mod tests {
    use super::meet;
    use crate::hosts::ResolvedHost;
    use crate::network::Host;
    use crate::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents, Variables};
    use std::time::SystemTime;

    const PROFILE: &str = "[files]\nread = ['/usr', '/srv']\nwrite = ['/work']\ndeny = ['/srv/secret']\n[network]\nconnect = ['192.0.2.0/24:80']\n";

    fn compile(amendments: &[Amendment]) -> Compiled {
        let documents = Documents::from_texts("p".into(), &[("p".into(), PROFILE.into())]).unwrap();
        let variables = Variables {
            workspace: "/work".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            user: "me".into(),
            ..Variables::default()
        };
        documents.compile(&variables, &mut crate::unresolved, amendments).unwrap()
    }

    fn amendment(kind: AmendmentKind, object: AmendedObject) -> Amendment {
        Amendment { when: SystemTime::UNIX_EPOCH, ..Amendment::new(kind, None, object) }
    }

    /// As the owner of a run keeps them.
    fn keep(amendments: &mut Vec<Amendment>, new: Amendment) -> Compiled {
        amendments.push(new);
        let compiled = compile(amendments);
        *amendments = compiled.amendments.iter().map(|at| amendments[*at].clone()).collect();
        compiled
    }

    fn objects() -> Vec<AmendedObject> {
        let network =
            |text: &str| AmendedObject::Network { endpoint: text.into(), addresses: Vec::new() };
        vec![
            AmendedObject::Files("/srv/a".into()),
            AmendedObject::Write("/work/b*".into()),
            AmendedObject::Exec("/usr/bin/c".into()),
            AmendedObject::Unix("@name".into()),
            AmendedObject::Unix("/run/d".into()),
            network("192.0.2.7:80"),
            network("192.0.2.9:80"),
        ]
    }

    #[test]
    fn ten_thousand_changes_cost_what_one_costs() {
        use AmendmentKind::{Grant, Revoke};
        let (mut amendments, plain) = (Vec::new(), compile(&[]).cil);
        let mut most = 0;
        for (round, object) in objects().into_iter().cycle().enumerate().take(5_000) {
            most = most.max(keep(&mut amendments, amendment(Revoke, object.clone())).cil.len());
            assert_eq!(amendments.len(), 1, "round {round}: {amendments:?}");
            let back = keep(&mut amendments, amendment(Grant, object)).cil;
            assert_eq!((back == plain, amendments.len()), (true, 0), "round {round}");
        }
        assert!(most < plain.len() + 2_000, "{most} bytes of policy, {} without", plain.len());
    }

    #[test]
    fn what_was_taken_twice_is_kept_once_and_what_was_given_stays() {
        use AmendmentKind::{Grant, Revoke};
        let secret = || AmendedObject::Files("/srv/a".into());
        let new = || AmendedObject::Files("/var/new".into());
        let mut amendments = Vec::new();
        for _ in 0..3 {
            keep(&mut amendments, amendment(Revoke, secret()));
        }
        assert_eq!(amendments.len(), 1);
        // Where nothing was taken a grant gives, and the next revocation ends that.
        keep(&mut amendments, amendment(Grant, new()));
        let given = compile(&amendments).cil;
        assert_eq!(amendments.len(), 2);
        keep(&mut amendments, amendment(Revoke, new()));
        assert_ne!(compile(&amendments).cil, given);
        assert_eq!(amendments.len(), 2);
        let all = keep(&mut amendments, amendment(Grant, AmendedObject::All));
        assert_eq!((all.cil == compile(&[]).cil, amendments.len()), (true, 0), "{amendments:?}");
    }

    #[test]
    fn giving_everything_back_gives_nothing_new() {
        use AmendmentKind::{Grant, Revoke};
        for object in objects().into_iter().skip(3) {
            let own = AmendedObject::Network { endpoint: "198.51.100.1".into(), addresses: vec![] };
            let of_main = |it: Amendment| Amendment { domain: Some("main".into()), ..it };
            let all = [
                amendment(Revoke, object.clone()),
                of_main(amendment(Grant, object)),
                amendment(Revoke, own),
                amendment(Grant, AmendedObject::All),
            ];
            let compiled = compile(&all);
            assert_eq!((compiled.amendments.len(), compiled.cil == compile(&[]).cil), (0, true));
        }
    }

    #[test]
    fn what_a_grant_gives_back_is_told_and_nothing_else_is() {
        use AmendmentKind::{Grant, Revoke};
        let network = |endpoint: &str, addresses: &[&str]| AmendedObject::Network {
            endpoint: endpoint.into(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        };
        let files = |path: &str| AmendedObject::Files(path.into());
        let write = |path: &str| AmendedObject::Write(path.into());
        let main = |it: Amendment| Amendment { domain: Some("main".into()), ..it };
        for (taken, given, want) in [
            (files("/srv"), files("/srv/a"), true),
            (files("/srv/a"), files("/srv"), true),
            (files("/srv/*/b"), files("/srv/a"), true),
            (write("/work"), files("/work/x"), true),
            (files("/srv/a"), write("/srv/b"), false),
            (AmendedObject::All, files("/srv/b"), true),
            (network("192.0.2.7:80", &[]), network("192.0.2.7:80", &[]), true),
            (network("192.0.2.0/24", &[]), network("192.0.2.7:80", &[]), true),
            (network("192.0.2.7:81", &[]), network("192.0.2.7:80", &[]), false),
            (network("192.0.2.7:80/udp", &[]), network("192.0.2.7:80/tcp", &[]), false),
            (network("a.example:80", &["192.0.2.7"]), network("192.0.2.7:80", &[]), true),
            (network("a.example:80", &["192.0.2.7"]), network("a.example:80", &[]), true),
            (network("192.0.2.7:80", &[]), network("a.example:80", &["192.0.2.7"]), true),
            (network("192.0.2.7:80", &[]), network("a.example:80", &[]), false),
        ] {
            let given = main(amendment(Grant, given));
            let told = compile(&[amendment(Revoke, taken.clone()), given.clone()]).given_back;
            assert_eq!(told.is_some(), want, "{taken:?}: {given:?}: {told:?}");
            assert!(told.is_none_or(|told| told.starts_with("revoked by `dewar revoke")));
            assert_eq!(compile(&[amendment(Grant, taken), given]).given_back, None);
        }
    }

    #[test]
    fn networks_meet_also_as_mapped_addresses() {
        let host = |address: &str, length| ResolvedHost {
            host: Host::Any,
            networks: vec![(address.parse().unwrap(), length)],
            error: None,
            file: None,
        };
        let four = host("192.0.2.7", 32);
        for (address, length, expected) in [
            ("192.0.2.0", 24, true),
            ("192.0.3.0", 24, false),
            ("0.0.0.0", 0, true),
            ("::", 0, true),
            ("::ffff:0:0", 90, true),
            ("2001:db8::", 32, false),
        ] {
            let other = host(address, length);
            assert_eq!(meet(&four, &other), expected, "{address}/{length}");
            assert_eq!(meet(&other, &four), expected, "{address}/{length}");
        }
    }

    #[test]
    fn amendments_that_have_files_in_common_stay_as_they_were_made() {
        use AmendmentKind::{Grant, Revoke};
        let files = |path: &str| AmendedObject::Files(path.into());
        let mut amendments = Vec::new();
        for (kind, path) in [(Revoke, "/srv"), (Revoke, "/srv/a"), (Grant, "/srv/a")] {
            keep(&mut amendments, amendment(kind, files(path)));
        }
        assert_eq!(amendments.len(), 3, "the grant takes back a part of the first");
    }

    #[test]
    fn a_grant_of_what_the_profile_denies_says_so() {
        let grant = |path: &str| amendment(AmendmentKind::Grant, AmendedObject::Files(path.into()));
        let in_vain = compile(&[grant("/srv/secret")]).granted_in_vain;
        assert!(in_vain.as_ref().is_some_and(|line| line.starts_with("p:4:")), "{in_vain:?}");
        for path in ["/srv", "/var/new"] {
            assert_eq!(compile(&[grant(path)]).granted_in_vain, None, "{path}");
        }
    }
}

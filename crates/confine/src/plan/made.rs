//! New files that get another label than the directory that they are made in.

use super::{
    domains::Relabel,
    rights::{KnownRights, Rights},
};
use flask::{Sid, Unreachable};
use landlock::{Access, AccessFs};

/// New files that get another label than the directory that they are made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Their label; `None` if policy computes none.
    pub label: Option<Sid>,
    /// What some domain may do with what has the label of the directory: what the envelope grants.
    pub(super) around: Rights,
    /// What every domain may do with the new files.
    pub(super) all: Rights,
}

/// New files that get another label than their directory.
pub(super) fn made(
    asked: &KnownRights<'_>,
    own: &[Sid],
    relabels: &[Relabel],
) -> Result<Vec<Made>, Unreachable> {
    let mut found: Vec<Made> = Vec::new();
    for &(_, directory, label) in relabels.iter().filter(|(domain, ..)| own.contains(domain)) {
        let (mut around, mut all) = (Rights::empty(), AccessFs::from_all(landlock::ABI::V5));
        for &ssid in own {
            around |= asked.rights(ssid, directory)?.any;
            if let Some(made) = label {
                all &= asked.rights(ssid, made)?.all;
            }
        }
        let made = Made { label, around, all };
        if !found.contains(&made) {
            found.push(made);
        }
    }
    Ok(found)
}

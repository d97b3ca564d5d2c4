//! All cases, by family.

mod kernel;
mod limits;
mod memory;
mod names;
mod network;
mod planting;
mod processes;
mod races;
mod secrets;
mod services;

use crate::{
    case::Case,
    scene::{Scene, hold},
};
use std::{
    io::{self, BufRead as _, Read as _},
    time::Duration,
};

/// The families, with the heading of each.
pub const FAMILIES: &[(&str, &[Case])] = &[
    ("planting", planting::CASES),
    ("names", names::CASES),
    ("services", services::CASES),
    ("network", network::CASES),
    ("secrets", secrets::CASES),
    ("races", races::CASES),
    ("processes", processes::CASES),
    ("memory and terminals", memory::CASES),
    ("kernel", kernel::CASES),
    ("limits", limits::CASES),
];

/// Every case.
pub fn all() -> impl Iterator<Item = &'static Case> {
    FAMILIES.iter().flat_map(|(_, cases)| *cases)
}

/// The case of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

/// Programs that belong to cases, and are called as they are.
pub(crate) fn helper(name: &str) -> Option<fn(&Scene) -> io::Result<()>> {
    Some(match name {
        // Writes, as whoever works in the workspace does.
        "idle" => |_| std::fs::write("idle", ""),
        "holding" => |_| {
            hold();
            Ok(())
        },
        "lasting" => |_| {
            std::thread::sleep(Duration::from_secs(5));
            Ok(())
        },
        "victim" => victim,
        _ => return None,
    })
}

/// Keeps what its standard input says, says where, and waits for its end.
fn victim(_: &Scene) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let kept = line.trim().as_bytes().to_vec();
    crate::scene::say(&format!("kept at {:x}", kept.as_ptr().expose_provenance()));
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(std::hint::black_box(kept));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_case_has_a_name_of_its_own_a_claim_and_a_source() {
        let mut names = HashSet::new();
        for case in all() {
            assert!(names.insert(case.name), "{} is there twice", case.name);
            assert!(case.name.len() <= 24, "{} is too long for the table", case.name);
            assert!(case.claim.ends_with('.') && case.claim.len() <= 110, "{}", case.claim);
            assert!(!case.source.is_empty(), "{} has no source", case.name);
            assert!(helper(case.name).is_none(), "{} is a helper", case.name);
        }
        assert!(names.len() >= 50, "only {} cases", names.len());
    }
}

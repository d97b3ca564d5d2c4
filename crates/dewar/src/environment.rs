//! What becomes of environment variables, for people.

use monitor::visible;
use profile::{Environment, Fate};
use std::fmt::Write as _;

/// Every variable of here, and every one that the profile sets, by name.
pub(crate) fn fates(environment: &Environment) -> Vec<(String, Fate)> {
    let outside = std::env::vars_os();
    let here = outside.map(|(name, value)| {
        (name.to_string_lossy().into_owned(), environment.fate(&name, &value))
    });
    let set = environment.set.keys().map(|name| (name.clone(), Fate::Set));
    let mut fates: Vec<(String, Fate)> = here.chain(set).collect();
    fates.sort_by(|a, b| a.0.cmp(&b.0));
    fates.dedup_by(|a, b| a.0 == b.0);
    fates
}

/// What becomes of each variable, one a line.
pub(crate) fn tell(environment: &Environment) -> String {
    let fates = fates(environment);
    let width = fates.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (name, fate) in fates {
        let seen = if fate.is_seen() { "passes" } else { "kept out" };
        // Writing to a `String` cannot fail.
        let (name, fate) = (visible(&name), visible(&fate.to_string()));
        let _ = writeln!(text, "{seen:9} {name:width$}  {fate}");
    }
    text
}

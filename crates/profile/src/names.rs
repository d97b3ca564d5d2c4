//! Names of types: readable, valid in CIL, and unique.

use std::collections::HashSet;

/// Longest name before the suffix.
const MAX: usize = 60;

/// Gives out names once.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// `LABEL_SUFFIX`, with a number in between if that is taken.
    pub(crate) fn fresh(&mut self, label: &str, suffix: &str) -> String {
        let stem = stem(label);
        let mut name = format!("{stem}_{suffix}");
        let mut number = 2u32;
        while !self.0.insert(name.clone()) {
            name = format!("{stem}_{number}_{suffix}");
            number += 1;
        }
        name
    }
}

/// Lower-case letters, digits and single underscores, starting with a letter.
fn stem(label: &str) -> String {
    let mut stem = String::new();
    for c in label.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            stem.push(c);
        } else if !stem.is_empty() && !stem.ends_with('_') {
            stem.push('_');
        }
        if stem.len() >= MAX {
            break;
        }
    }
    let stem = stem.trim_end_matches('_');
    match stem.chars().next() {
        None => "root".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{stem}"),
        Some(_) => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_given_out_once() {
        let mut names = Names::default();
        assert_eq!(names.fresh("home/.ssh", "t"), "home_ssh_t");
        assert_eq!(names.fresh("/home/ssh", "t"), "home_ssh_2_t");
        assert_eq!(names.fresh("/", "t"), "root_t");
        assert_eq!(names.fresh("10.0.0.0/8", "node_t"), "n10_0_0_0_8_node_t");
        assert_eq!(names.fresh("héé", "t"), "h_t");
    }
}

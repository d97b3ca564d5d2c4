//! Files of `key = value` lines: npm's, and pip's with sections. Each has its own idea of the rest.

use crate::roots::ConfigRoots;

/// The pairs of a file in its order, with the section that each stands in, in lower case. A line
/// that starts with white space continues the value before it, where `continues`.
pub(crate) fn pairs(text: &str, continues: bool) -> Vec<(String, String, String)> {
    let mut pairs: Vec<(String, String, String)> = Vec::new();
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if continues && line.starts_with([' ', '\t']) {
            if let Some((_, _, value)) = pairs.last_mut() {
                value.push('\n');
                value.push_str(bare);
            }
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim().to_ascii_lowercase();
            continue;
        }
        // pip takes `:` for `=`, too; npm has it in keys.
        let at = match continues {
            true => bare.find(['=', ':']),
            false => bare.find('='),
        };
        let Some(at) = at else { continue };
        let value = bare[at + 1..].trim();
        let value = match value.len() > 1 {
            true if value.starts_with('"') && value.ends_with('"') => &value[1..value.len() - 1],
            true if value.starts_with('\'') && value.ends_with('\'') => &value[1..value.len() - 1],
            _ => value,
        };
        pairs.push((section.clone(), bare[..at].trim().to_owned(), value.to_owned()));
    }
    pairs
}

/// `text` with `${NAME}` replaced by variables, as npm does it.
pub(crate) fn expanded(text: &str, roots: &ConfigRoots<'_>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        match roots.variable(name.trim_end_matches('?')) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[before.len()..before.len() + 3 + name.len()]),
        }
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_pairs_in_sections() {
        let text =
            "; c\na=1\n[Global]\nindex-url : https://x/\nextra =\n    https://y/\n    https://z/\n";
        let of = |s: &str, k: &str, v: &str| (s.to_owned(), k.to_owned(), v.to_owned());
        assert_eq!(
            pairs(text, true),
            [
                of("", "a", "1"),
                of("global", "index-url", "https://x/"),
                of("global", "extra", "\nhttps://y/\nhttps://z/"),
            ]
        );
        assert_eq!(
            pairs("@a:registry = 'https://x/'", false),
            [of("", "@a:registry", "https://x/")]
        );
    }
}

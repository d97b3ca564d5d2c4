//! Globs of one component, as patterns are made of them.

/// Whether `glob`, of one component, stands for a name: as `names.rs` writes globs, with `*`, `?`
/// and `\`; any other sign may stand for everything.
pub(crate) fn is_meant(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last star, and how much of the name it stands for at least.
    let mut star = None;
    while read < name.len() || at < glob.len() {
        match glob.get(at) {
            Some('[' | '{' | '$') => return true,
            Some('*') => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            Some('?') if read < name.len() => (at, read) = (at + 1, read + 1),
            Some('\\') if read < name.len() && glob.get(at + 1) == name.get(read) => {
                (at, read) = (at + 2, read + 1);
            }
            Some(c) if *c != '\\' && name.get(read) == Some(c) => (at, read) = (at + 1, read + 1),
            _ => {
                let Some((place, from)) = star.filter(|(_, from)| *from < name.len()) else {
                    return false;
                };
                star = Some((place, from + 1));
                (at, read) = (place + 1, from + 1);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_stands_for_the_names_that_its_pattern_matches() {
        for (glob, name, want) in [
            ("tmp????????", "tmp_rsa.pem", true),
            ("tmp????????", "tmp_rsa.pe", false),
            ("tmp????????", "tmp_rsa.pem2", false),
            ("??", "z\u{e9}", true),
            ("*", "", true),
            ("build-*.tar", "build-a.tar.tar", true),
            ("build-*.tar", "build.tar", false),
            ("*-a-*-b", "1-a-2-b-a-3-b", true),
            ("*-a-*-b", "1-a-2-c", false),
            (r"a\*b*", "a*b7", true),
            (r"a\*b*", "axb7", false),
            (r"\?", "x", false),
            ("a", "ab", false),
            ("x[ab]", "xa", true),
        ] {
            assert_eq!(is_meant(glob, name), want, "{glob} {name}");
        }
    }
}

//! Commands that a shell would have understood, and that no directory of `PATH` has.

use crate::shell::quoted;
use monitor::visible;
use std::ffi::OsStr;

/// What only a shell knows, as far as no program has the same name.
const OF_SHELL: [&str; 17] = [
    "cd", "source", ".", "export", "alias", "unalias", "ulimit", "umask", "set", "unset", "eval",
    "exec", "pushd", "popd", "declare", "for", "if",
];

/// What to write for `command`, the first word behind `dewar run --`.
pub(super) fn hint(command: &OsStr) -> Option<String> {
    let word = command.to_str()?;
    let shown = visible(word);
    if OF_SHELL.contains(&word) {
        return Some(format!(
            "`{shown}` is known to shells alone: `dewar run -- sh -c '{shown} …'`"
        ));
    }
    if word.contains(['&', '|', ';', '<', '>', '$', '*', '(']) {
        return Some(format!(
            "it is one word; a shell takes it apart: `dewar run -- sh -c {}`",
            quoted(&shown)
        ));
    }
    let name = word.split('=').next().filter(|name| name.len() < word.len());
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if name.is_some_and(is_name) {
        return Some(format!("a variable is set by `dewar run -- env {shown} …`"));
    }
    let has_blank = word.trim().contains(char::is_whitespace);
    has_blank.then(|| format!("it is one word; without the quotes: `dewar run -- {shown}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_have_understood_is_hinted_at() {
        for (word, want) in [
            ("make -j2", "`dewar run -- make -j2`"),
            ("cd", "`dewar run -- sh -c 'cd …'`"),
            ("FOO=1", "`dewar run -- env FOO=1 …`"),
            ("make && ls", "`dewar run -- sh -c 'make && ls'`"),
        ] {
            let said = hint(OsStr::new(word)).unwrap();
            assert!(said.contains(want), "{said}");
        }
        assert_eq!(hint(OsStr::new("maek")), None);
        assert_eq!(hint(OsStr::new("=x")), None);
    }
}

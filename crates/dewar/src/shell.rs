//! Words of commands that are printed to be copied, or written for others to run.

/// A word as a shell takes it for itself; plain, or in quotes without escapes, as rules of Codex
/// understand no others.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-@+:,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r#"'"'"'"#)),
    }
}

/// A command of such words.
pub(crate) fn command<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    words.into_iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_word_for_itself() {
        for word in ["", "a b", "$(touch${IFS}x)", "it's", "`id`", "~", "*", "-x", "A=1", "ü", "!"]
        {
            let script = format!("printf %s {}", quoted(word));
            let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word);
        }
        assert_eq!(quoted("/opt/a-b_c@1.2+3"), "/opt/a-b_c@1.2+3");
    }
}

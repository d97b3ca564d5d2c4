//! Texts that somebody else chose, as they are printed.

/// `text` with each character that would steer a terminal instead of being shown written as
/// `\u001b`: control characters, and those that change the direction of writing. What a sandboxed
/// program chose (a name, a path) is printed only so.
///
/// In JSON and in TOML the result says the same as `text`, as long as that has no line breaks
/// between its strings.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_printed() {
        let nasty = "a\u{1b}[2J\u{9b}2J\r\n\u{7f}\u{202e}b é\\";
        assert_eq!(visible(nasty), r"a\u001b[2J\u009b2J\u000d\u000a\u007f\u202eb é\");
    }
}

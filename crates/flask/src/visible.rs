//! Texts that somebody else chose, as they are printed.

/// `text` with each character that would steer a terminal instead of being shown written as
/// `\u001b`: control characters, and those that change the direction of writing or are not seen at
/// all. What a sandboxed program chose (a name, a path) is printed only so.
///
/// In TOML the result says the same as `text`, as long as that has no line breaks between its
/// strings; in JSON, [`visible_json`] does.
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(text, |shown, c| match u32::from(c) {
        code @ ..=0xffff => shown.push_str(&format!("\\u{code:04x}")),
        code => shown.push_str(&format!("\\U{code:08x}")),
    })
}

/// The same for JSON, which knows units of UTF-16 alone.
#[must_use]
pub fn visible_json(text: &str) -> String {
    escaped(text, |shown, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_unseen(c) {
            escape(&mut shown, c);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// [`visible`], for a name that a person is asked about: also without the runs of spaces by which
/// it would look like several lines.
#[must_use]
pub fn visible_name(name: &str) -> String {
    visible(name).replace("  ", "\\u0020\\u0020")
}

/// Whether a character can stand between the quotes of a policy's strings: it ends none, is no
/// control character, and changes neither the line nor its direction.
#[must_use]
pub fn is_quotable(c: char) -> bool {
    c != '"' && !c.is_control() && !is_turning(c)
}

/// Whether a character ends a line, or changes its direction.
#[must_use]
pub fn is_turning(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether nobody sees a character, or sees it as a space, or it changes where others stand.
fn is_unseen(c: char) -> bool {
    is_ignorable(c)
        || matches!(
            c,
            '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}'..='\u{202f}' | '\u{205f}'
                | '\u{2800}' | '\u{3000}' | '\u{fff9}'..='\u{fffb}'
        )
}

/// Whether a character is of Unicode's `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt):
/// nothing is drawn for it, and file systems without case leave it out of names that they compare.
#[must_use]
pub fn is_ignorable(c: char) -> bool {
    const RANGES: [(u32, u32); 17] = [
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x202a, 0x202e),
        (0x2060, 0x206f),
        (0x3164, 0x3164),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff0, 0xfff8),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
    ];
    RANGES.iter().any(|(low, high)| (*low..=*high).contains(&u32::from(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_printed() {
        let nasty = "a\u{1b}[2J\u{9b}2J\r\n\u{7f}\u{202e}b é\\";
        assert_eq!(visible(nasty), r"a\u001b[2J\u009b2J\u000d\u000a\u007f\u202eb é\");
    }

    #[test]
    fn one_name_looks_like_one_name() {
        assert_eq!(visible_name("cat   x y"), r"cat\u0020\u0020 x y");
        assert_eq!(visible("no\u{200b}tes\u{3000}x"), r"no\u200btes\u3000x");
        assert_eq!(visible("no\u{fe01}t\u{e0061}es"), r"no\ufe01t\U000e0061es");
        assert_eq!(visible_json("\u{200b}\u{e0061}x"), r"\u200b\udb40\udc61x");
    }
}

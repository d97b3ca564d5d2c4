//! Which characters names and texts of a policy may hold, in every language.
//!
//! Names come from strangers and end on terminals and in CIL that is written: what could steer a
//! terminal, turn the direction of a line, or end a word or string early is refused where it is
//! read.

/// Whether `text` is a word of CIL.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte)
}

/// Whether the byte may stand in a word of CIL.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[byte as usize]
}

const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"[].@=/*-_$%+!|&^:~`#{}'<>?,";
    let mut n = 0;
    while n < 256 {
        table[n] = (n as u8).is_ascii_alphanumeric();
        n += 1;
    }
    n = 0;
    while n < marks.len() {
        table[marks[n] as usize] = true;
        n += 1;
    }
    table
};

/// Whether `text` may stand between the quotes of a string of CIL.
pub(crate) fn is_quotable(text: &str) -> bool {
    text.chars().all(flask::is_quotable)
}

/// Whether a character can be shown as it is: it is no control character and changes no direction.
pub(crate) fn is_printable(c: char) -> bool {
    !c.is_control() && !flask::is_turning(c)
}

/// `text` with something harmless of the same length for each character that cannot be shown; lines
/// and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        // Nearly all text, and byte by byte a tenth of the work.
        return text.to_owned();
    }
    let show = |c: char| match c.len_utf8() {
        _ if is_printable(c) || matches!(c, '\n' | '\t') => c,
        1 if c == '\r' => ' ',
        1 => '?',
        2 => '\u{bf}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_replaced_without_moving_what_follows() {
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}\u{202e}(\n\té";
        let shown = printable(hostile);
        assert_eq!(shown.len(), hostile.len());
        assert_eq!(shown, "a?[31m?\u{bf}\u{fffd}(\n\té");
    }
}

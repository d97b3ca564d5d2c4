//! A range of a file's bytes.

/// What a `Range` field asks for, of a file of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Everything: there is no range, or none that is understood, or several. Several would be
    /// answered in parts, which costs more than it is worth, and is how servers have been kept
    /// busy; a server may answer with everything.
    All,
    /// From the first byte up to and without the second.
    Part(u64, u64),
    /// Nothing that there is.
    Unsatisfiable,
}

impl Range {
    /// Reads the value of a field.
    #[must_use]
    pub fn parse(value: &[u8], len: u64) -> Self {
        Self::read(value, len).unwrap_or(Self::All)
    }

    fn read(value: &[u8], len: u64) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.trim();
        let spec =
            text.get(..6).filter(|unit| unit.eq_ignore_ascii_case("bytes=")).map(|_| &text[6..])?;
        if spec.contains(',') {
            return None;
        }
        let (first, last) = spec.trim().split_once('-')?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // What exceeds a number exceeds every file.
            digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
        };
        let (from, to) = match (first.is_empty(), last.is_empty()) {
            (true, _) => (len.saturating_sub(number(last)?), len),
            (false, true) => (number(first)?, len),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return None;
                }
                (first, last.saturating_add(1).min(len))
            }
        };
        Some(if from < to { Self::Part(from, to) } else { Self::Unsatisfiable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_that_there_is_or_everything() {
        use Range::{All, Part, Unsatisfiable};
        for (value, want) in [
            ("bytes=0-0", Part(0, 1)),
            ("bytes=0-", Part(0, 10)),
            ("bytes=5-100", Part(5, 10)),
            ("bytes=-3", Part(7, 10)),
            ("bytes=-100", Part(0, 10)),
            ("bytes=-0", Unsatisfiable),
            ("bytes=10-", Unsatisfiable),
            ("bytes=99999999999999999999-", Unsatisfiable),
            ("bytes=5-4", All),
            ("bytes=0-1,5-6", All),
            ("bytes=a-b", All),
            ("bytes=", All),
            ("bytes=-", All),
            ("bytes=+1-2", All),
            ("lines=1-2", All),
        ] {
            assert_eq!(Range::parse(value.as_bytes(), 10), want, "{value}");
        }
        assert_eq!(Range::parse(b"bytes=0-", 0), Unsatisfiable);
    }
}

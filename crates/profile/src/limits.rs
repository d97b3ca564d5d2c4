//! `[limits]`: how much a run may use.

use crate::document::LimitTexts;
use crate::error::{Problem, Reporter};
use crate::source::Located;
use std::time::Duration;

/// Upper bounds on what a run may use; `None` leaves the system's own bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u64>,
    /// Processor time per second of real time, in percent of one processor.
    pub cpu_percent: Option<u64>,
    /// Real time, after which the run is ended.
    pub time: Option<Duration>,
    /// Open descriptors of one process.
    pub files: Option<u64>,
    /// Greatest size of a file that is written, in bytes.
    pub file_size_bytes: Option<u64>,
}

impl Limits {
    /// Replaces those bounds that `texts` names.
    pub(crate) fn apply(&mut self, texts: &LimitTexts, reporter: &mut Reporter) {
        set(&mut self.memory_bytes, texts.memory.as_ref(), bytes, reporter);
        set(&mut self.processes, texts.processes.as_ref(), count, reporter);
        set(&mut self.cpu_percent, texts.cpu.as_ref(), percent, reporter);
        set(&mut self.time, texts.time.as_ref(), duration, reporter);
        set(&mut self.files, texts.files.as_ref(), count, reporter);
        set(&mut self.file_size_bytes, texts.file_size.as_ref(), bytes, reporter);
    }
}

fn set<T>(
    bound: &mut Option<T>,
    text: Option<&Located<String>>,
    parse: fn(&str) -> Result<T, Problem>,
    reporter: &mut Reporter,
) {
    let Some(text) = text else { return };
    if let Some(value) = reporter.take(parse(&text.value), text.place) {
        *bound = Some(value);
    }
}

/// A number above zero without sign, blank or underscore.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && *n > 0)
}

fn count(text: &str) -> Result<u64, Problem> {
    number(text)
        .ok_or_else(|| Problem::bad(text, "a number above zero", "write a number such as `512`"))
}

fn percent(text: &str) -> Result<u64, Problem> {
    const HELP: &str = "write `200%` for two whole processors, `50%` for half of one";
    let value = text.strip_suffix('%').and_then(number);
    value.ok_or_else(|| Problem::bad(text, "a share of processor time", HELP))
}

fn bytes(text: &str) -> Result<u64, Problem> {
    const HELP: &str = "write bytes, or a number with `K`, `M`, `G` or `T`, such as `512M`";
    size(text).ok_or_else(|| Problem::bad(text, "a size", HELP))
}

/// The bytes that a text such as `512M` stands for, as everywhere in profiles; `None` if it stands
/// for none.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => Some(0),
        "K" | "KiB" => Some(10),
        "M" | "MiB" => Some(20),
        "G" | "GiB" => Some(30),
        "T" | "TiB" => Some(40),
        _ => None,
    };
    number(digits).zip(shift).and_then(|(n, shift)| n.checked_mul(1 << shift))
}

/// `90s`, `10m`, `1h30m`: parts in falling order of unit.
fn duration(text: &str) -> Result<Duration, Problem> {
    const HELP: &str = "write a number with `s`, `m` or `h`, such as `90s`, `10m`, `1h30m`";
    parts(text).map(Duration::from_secs).ok_or_else(|| Problem::bad(text, "a time", HELP))
}

fn parts(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut seconds = 0u64;
    for (unit, length) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((amount, behind)) = rest.split_once(unit) {
            seconds = seconds.checked_add(number(amount)?.checked_mul(length)?)?;
            rest = behind;
        }
    }
    (rest.is_empty() && seconds > 0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_shares_are_read_and_others_refused() {
        assert_eq!(bytes("4G").ok(), Some(4 << 30));
        assert_eq!(bytes("512MiB").ok(), Some(512 << 20));
        assert_eq!(bytes("1000").ok(), Some(1000));
        for text in ["", "G", "4 G", "-1", "4X", "99999999T", "0", "1.5G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(duration("1h30m").ok(), Some(Duration::from_secs(5400)));
        assert_eq!(duration("90s").ok(), Some(Duration::from_secs(90)));
        for text in ["", "10", "m", "30m1h", "10m5", "99999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(percent("200%").ok(), Some(200));
        for text in ["200", "0.5", "1.5%"] {
            assert!(percent(text).is_err(), "{text}");
        }
        assert!(count("+3").is_err());
    }
}

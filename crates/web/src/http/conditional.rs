//! Conditions on what is answered (RFC 9110, section 13).

use super::head::{field, list};
use httparse::Header;
use std::time::SystemTime;

/// What a condition comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as if there were no condition.
    Go,
    /// The client has it already: 304.
    NotModified,
    /// Another one than the client thinks: 412.
    Failed,
}

/// What the conditions among `fields` come to, for what has this tag and date.
#[must_use]
pub fn outcome(fields: &[Header<'_>], etag: &str, modified: SystemTime) -> Precondition {
    if let Some(wanted) = field(fields, "if-match") {
        if !matches(wanted, etag, true) {
            return Precondition::Failed;
        }
    } else if let Some(date) = field(fields, "if-unmodified-since").and_then(date)
        && modified > date
    {
        return Precondition::Failed;
    }
    if let Some(known) = field(fields, "if-none-match") {
        return if matches(known, etag, false) {
            Precondition::NotModified
        } else {
            Precondition::Go
        };
    }
    match field(fields, "if-modified-since").and_then(date) {
        Some(date) if modified <= date => Precondition::NotModified,
        _ => Precondition::Go,
    }
}

/// Whether a range of what has this tag and date is wanted, or everything, by `If-Range`.
#[must_use]
pub fn range_holds(fields: &[Header<'_>], etag: &str, modified: SystemTime) -> bool {
    let Some(value) = field(fields, "if-range") else { return true };
    // A weak tag promises nothing about bytes, so it never matches here.
    value == etag.as_bytes() && !etag.starts_with("W/") || date(value) == Some(modified)
}

fn matches(wanted: &[u8], etag: &str, strong: bool) -> bool {
    fn plain(tag: &[u8]) -> &[u8] {
        tag.strip_prefix(b"W/").unwrap_or(tag)
    }
    list(wanted).any(|tag| {
        tag == b"*" || (plain(tag) == plain(etag.as_bytes()) && !(strong && tag.starts_with(b"W/")))
    })
}

fn date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn conditions_come_to_what_the_standard_says() {
        let modified = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let (then, before) = ("Sun, 09 Sep 2001 01:46:40 GMT", "Sun, 09 Sep 2001 01:46:39 GMT");
        for (name, value, want) in [
            ("If-None-Match", "\"a\"", Precondition::NotModified),
            ("If-None-Match", "W/\"a\"", Precondition::NotModified),
            ("If-None-Match", "\"b\", \"a\"", Precondition::NotModified),
            ("If-None-Match", "*", Precondition::NotModified),
            ("If-None-Match", "\"b\"", Precondition::Go),
            ("If-Match", "\"a\"", Precondition::Go),
            ("If-Match", "W/\"a\"", Precondition::Failed),
            ("If-Match", "\"b\"", Precondition::Failed),
            ("If-Modified-Since", then, Precondition::NotModified),
            ("If-Modified-Since", before, Precondition::Go),
            ("If-Modified-Since", "yesterday", Precondition::Go),
            ("If-Unmodified-Since", before, Precondition::Failed),
            ("If-Unmodified-Since", then, Precondition::Go),
        ] {
            let fields = [Header { name, value: value.as_bytes() }];
            assert_eq!(outcome(&fields, "\"a\"", modified), want, "{name}: {value}");
        }
        let holds = |value: &str| {
            let fields = [Header { name: "If-Range", value: value.as_bytes() }];
            range_holds(&fields, "\"a\"", modified)
        };
        assert!(
            holds("\"a\"") && holds(then) && !holds("\"b\"") && !holds(before) && !holds("W/\"a\"")
        );
    }
}

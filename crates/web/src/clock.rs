//! The time, looked at once in a while.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the machine started; they wrap after 49 days, so only differences count.
pub(crate) fn now_ms() -> u32 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}

/// Whether `deadline` has passed at `now`.
pub(crate) fn passed(deadline: u32, now: u32) -> bool {
    now.wrapping_sub(deadline) < u32::MAX / 2
}

/// The date as HTTP and logs write it, made once a second.
pub(crate) struct Dates {
    second: i64,
    http: String,
    log: String,
}

impl Default for Dates {
    fn default() -> Self {
        Self { second: -1, http: String::new(), log: String::new() }
    }
}

impl Dates {
    /// Looks at the clock.
    pub(crate) fn refresh(&mut self) {
        let second = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        if second == self.second {
            return;
        }
        self.second = second;
        self.http = http(writable(second));
        // Sun, 06 Nov 1994 08:49:37 GMT
        let part = |range: std::ops::Range<usize>| self.http.get(range).unwrap_or_default();
        self.log =
            format!("{}/{}/{}:{} +0000", part(5..7), part(8..11), part(12..16), part(17..25));
    }

    pub(crate) fn http(&self) -> &str {
        &self.http
    }

    /// As the common log format has it.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }
}

/// The last second of the year 9999: HTTP has no date behind it.
const LAST: u64 = 253_402_300_799;

/// The time that is so many seconds after the beginning of 1970, as near as HTTP can write it.
pub(crate) fn writable(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0).min(LAST))
}

/// A date as HTTP writes it, of a time that it can write.
pub(crate) fn http(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_of_a_file_has_a_date() {
        for (seconds, date) in [
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(http(writable(seconds)), date);
        }
    }
}

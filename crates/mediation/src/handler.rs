//! Which calls an object manager decides: one list for the decision and for the comparison with the
//! table that the filter is compiled from.

use confine::{DECIDED, Handler, REQUESTS};
use syscalls::{Sysno, SysnoSet};

/// Defines `decide`, and `CALLS`, the calls that it knows. [`are_known`] compares them with the
/// filter's table, when Dewar is built.
#[macro_export]
macro_rules! decides {
    ($vis:vis $asker:ident: $type:ty, $($($call:ident)|+ => $answer:expr),+ $(,)?) => {
        /// The calls that come here.
        $vis const CALLS: &[::syscalls::Sysno] = &[$($(::syscalls::Sysno::$call),+),+];

        /// Decides them.
        $vis fn decide($asker: $type) -> $crate::call::CallResult {
            match $asker.number {
                $($(::syscalls::Sysno::$call)|+ => $answer,)+
                _ => Err(::rustix::io::Errno::NOSYS),
            }
        }
    };
}

/// Whether `known` are the very calls that the filter's tables have for `handler`: those of
/// `DECIDED`, and ioctl(2) where `REQUESTS` has some of its requests.
pub const fn are_known(handler: Handler, known: &[Sysno]) -> bool {
    let set = SysnoSet::new(known);
    let (mut row, mut found) = (0, 0);
    while row < DECIDED.len() {
        let (other, calls) = DECIDED[row];
        let mut n = 0;
        while other as u8 == handler as u8 && n < calls.len() {
            if !set.contains(calls[n]) {
                return false;
            }
            n += 1;
            found += 1;
        }
        row += 1;
    }
    if has_requests(handler) {
        if !set.contains(Sysno::ioctl) {
            return false;
        }
        found += 1;
    }
    found == known.len()
}

const fn has_requests(handler: Handler) -> bool {
    let mut row = 0;
    while row < REQUESTS.len() {
        if REQUESTS[row].0 as u8 == handler as u8 {
            return true;
        }
        row += 1;
    }
    false
}

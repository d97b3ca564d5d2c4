//! What stands in front of a message, on either transport.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What stands in front of a message. Nothing in it is believed: who speaks is known from
/// elsewhere.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
pub(crate) struct Head {
    /// Number of the call, never 0; a reply has that of its request.
    pub(crate) seq: u32,
    /// In a request, the SID in whose name the call is made, or 0; in a reply, its [`Status`].
    pub(crate) word: u32,
    /// Bytes that follow.
    pub(crate) len: u32,
    /// Descriptors that belong to it.
    pub(crate) descriptors: u32,
}

/// Which message a reader waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Any but the one it had.
    Not(u32),
    /// The reply to this call; replies to calls given up are left aside.
    Only(u32),
}

impl Wanted {
    #[inline]
    pub(crate) const fn takes(self, seq: u32) -> bool {
        match self {
            Self::Not(last) => seq != 0 && seq != last,
            Self::Only(expected) => seq == expected,
        }
    }
}

/// What became of a call, as the reply says.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Done = 0,
    /// `connect` is not granted.
    Denied = 1,
    /// `specify_client` is not granted, or `connect` not to the one named.
    DeniedName = 2,
    /// The service dropped the request.
    Unanswered = 3,
    /// Too many connections.
    Busy = 4,
}

impl Status {
    /// `None` for a number that stands for nothing.
    pub(crate) const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Done),
            1 => Some(Self::Denied),
            2 => Some(Self::DeniedName),
            3 => Some(Self::Unanswered),
            4 => Some(Self::Busy),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_by_its_number() {
        for number in 0..5 {
            assert_eq!(Status::from_number(number).map(|s| s as u32), Some(number));
        }
        assert_eq!(Status::from_number(5), None);
    }
}

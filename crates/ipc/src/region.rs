//! The layout of the memory that the two ends of a port share: a lane for requests, a lane for
//! replies.
//!
//! Whoever is at the other end may change any of it at any time, by design or by malice. So it is
//! all atomics, a message is copied out before anybody looks at it, its length is read once, and
//! the number in front says whether it changed meanwhile.

use crate::{
    MAX_MESSAGE,
    body::Body,
    head::{Head, Wanted},
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// What a reader does when nothing has come, as the writer must know to wake it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It runs: no need to wake it.
    Awake = 0,
    /// It waits on the lane's number.
    Futex = 1,
    /// It waits on the socket.
    Socket = 2,
}

/// Memory for one port. All zero is its first state.
#[repr(C)]
pub(crate) struct Region {
    /// Written by the client.
    pub(crate) request: Lane,
    /// Written by the server.
    pub(crate) reply: Lane,
}

/// One message, in one direction. The first cache line holds a short message whole.
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// The message's number; 0 while it is being written.
    seq: AtomicU32,
    word: AtomicU32,
    len: AtomicU32,
    descriptors: AtomicU32,
    data: [AtomicU64; MAX_MESSAGE / 8],
    reader: Reader,
}

/// On a cache line of its own: written only when the reader goes to sleep or wakes up.
#[repr(C, align(64))]
struct Reader(AtomicU32);

impl Lane {
    /// The number that a reader sees now, and may wait on.
    pub(crate) fn seq(&self) -> u32 {
        self.seq.load(Ordering::SeqCst)
    }

    /// Where to wait until the number changes.
    pub(crate) fn futex(&self) -> &AtomicU32 {
        &self.seq
    }

    /// Puts a message here; tells how the reader must be woken. Only as much of `body` as a message
    /// can hold.
    #[inline]
    pub(crate) fn write(&self, head: Head, body: &[u8]) -> Sleep {
        // Release: a reader that sees any of what follows sees that the old message is gone.
        self.seq.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.word.store(head.word, Ordering::Relaxed);
        self.len.store(head.len, Ordering::Relaxed);
        self.descriptors.store(head.descriptors, Ordering::Relaxed);
        let mut words = body.chunks_exact(8);
        for (place, word) in self.data.iter().zip(&mut words) {
            place.store(u64::from_ne_bytes(array(word)), Ordering::Relaxed);
        }
        let rest = words.remainder();
        if let Some(place) = self.data.get(body.len() / 8).filter(|_| !rest.is_empty()) {
            place.store(u64::from_ne_bytes(array(rest)), Ordering::Relaxed);
        }
        // Sequentially consistent with `sleep`: either we see that the reader sleeps, or it sees
        // the number.
        self.seq.store(head.seq, Ordering::SeqCst);
        match self.reader.0.load(Ordering::SeqCst) {
            0 => Sleep::Awake,
            1 => Sleep::Futex,
            _ => Sleep::Socket,
        }
    }

    /// Copies the message that lies here into `body`, if it is wanted. `Ok(None)` if there is none,
    /// or it changed while it was copied.
    ///
    /// # Errors
    ///
    /// The length, if it is one that no message can have.
    #[inline]
    pub(crate) fn read(&self, wanted: Wanted, body: &mut Body) -> Result<Option<Head>, u32> {
        let seq = self.seq.load(Ordering::Acquire);
        if !wanted.takes(seq) {
            return Ok(None);
        }
        let head = Head {
            seq,
            word: self.word.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            descriptors: self.descriptors.load(Ordering::Relaxed),
        };
        let len = head.len as usize;
        if len > MAX_MESSAGE {
            return Err(head.len);
        }
        let words = body.room(len).chunks_exact_mut(8).zip(&self.data[..len.div_ceil(8)]);
        for (bytes, place) in words {
            bytes.copy_from_slice(&place.load(Ordering::Relaxed).to_ne_bytes());
        }
        // With the writer's release fence: had any load above seen a later message, this one sees
        // its number.
        fence(Ordering::Acquire);
        Ok((self.seq.load(Ordering::Relaxed) == seq).then_some(head))
    }

    /// Says how this lane's reader is about to wait. It must look at the number once more
    /// afterwards.
    pub(crate) fn sleep(&self, how: Sleep) {
        self.reader.0.store(how as u32, Ordering::SeqCst);
    }
}

/// Up to eight bytes, filled up with zeros.
#[inline]
fn array(bytes: &[u8]) -> [u8; 8] {
    let mut array = [0; 8];
    array[..bytes.len()].copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lane() -> Box<Lane> {
        Box::new(Lane {
            seq: AtomicU32::new(0),
            word: AtomicU32::new(0),
            len: AtomicU32::new(0),
            descriptors: AtomicU32::new(0),
            data: [const { AtomicU64::new(0) }; MAX_MESSAGE / 8],
            reader: Reader(AtomicU32::new(0)),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read_and_nothing_else(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8),
            word in any::<u32>(),
        ) {
            let (lane, mut body) = (lane(), Body::default());
            for (number, message) in messages.iter().enumerate() {
                let seq = number as u32 + 1;
                let head = Head { seq, word, len: message.len() as u32, descriptors: 0 };
                lane.write(head, message);
                prop_assert_eq!(lane.read(Wanted::Not(seq), &mut body), Ok(None));
                prop_assert_eq!(lane.read(Wanted::Only(seq), &mut body), Ok(Some(head)));
                prop_assert_eq!(body.bytes(), message);
            }
        }

        #[test]
        fn no_length_makes_a_reader_leave_the_lane(len in any::<u32>()) {
            let (lane, mut body) = (lane(), Body::default());
            lane.write(Head { seq: 1, word: 0, len, descriptors: 0 }, &[]);
            match lane.read(Wanted::Only(1), &mut body) {
                Ok(Some(_)) => prop_assert_eq!(body.bytes().len(), len as usize),
                other => {
                    prop_assert_eq!(other, Err(len));
                    prop_assert!(len as usize > MAX_MESSAGE);
                }
            }
        }
    }

    #[test]
    fn the_longest_message_fits() {
        let (lane, mut body) = (lane(), Body::default());
        let message: Vec<u8> = (0..MAX_MESSAGE).map(|n| n as u8).collect();
        let head = Head { seq: 1, word: 0, len: MAX_MESSAGE as u32, descriptors: 0 };
        lane.write(head, &message);
        assert_eq!(lane.read(Wanted::Only(1), &mut body), Ok(Some(head)));
        assert!(body.bytes() == message);
    }
}

//! Private memory for one message: what came over the transport is copied here before anybody looks
//! at it.

use crate::MAX_MESSAGE;

/// Room for the longest message, and how much of it is filled.
pub(crate) struct Body {
    room: Box<[u8]>,
    len: usize,
}

impl Default for Body {
    fn default() -> Self {
        Self { room: vec![0; MAX_MESSAGE].into_boxed_slice(), len: 0 }
    }
}

impl Body {
    /// The whole room, of which the first `len` bytes are now the message.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`MAX_MESSAGE`]; callers check what others say.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= MAX_MESSAGE, "the length of a message is checked before");
        self.len = len;
        &mut self.room
    }

    /// The message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

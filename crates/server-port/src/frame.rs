//! Messages on a port that carries several kinds: a byte that names the kind, then one value.

use serde::{Deserialize, Serialize};

/// A message of `mark` and `value`.
#[must_use]
pub fn framed(mark: u8, value: &impl Serialize) -> Vec<u8> {
    // Into memory, values without maps of unknown length: that cannot fail.
    postcard::to_extend(value, vec![mark]).unwrap_or_default()
}

/// The value of a message that begins with `mark`; `None` if these bytes are none.
#[must_use]
pub fn unframed<'a, T: Deserialize<'a>>(mark: u8, bytes: &'a [u8]) -> Option<T> {
    whole(bytes.strip_prefix(&[mark])?)
}

/// A value, and nothing behind it.
#[must_use]
pub fn whole<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}

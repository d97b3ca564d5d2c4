//! A request that many calls are made with.

use crate::sys::Sealed;
use std::{io, sync::Arc};

/// A request that is copied once, when it is made; isolated plugins see it where it lies, if it is long enough for that
/// to pay. Clones are the same request.
///
/// Let it be made when what it holds is loaded, a file for example, not for every call: for one call alone, a slice is
/// cheaper.
#[derive(Clone)]
pub struct Request(Arc<Bytes>);

enum Bytes {
    Short(Vec<u8>),
    Long(Sealed),
}

impl Request {
    /// From this length on a request is mapped rather than copied. Mapping costs two system calls and an entry in a page
    /// table for each 4 KiB; see `docs/decisions/ecode.md` for the measurement.
    pub const MAPPED_FROM: usize = 256 << 10;

    /// A request of these bytes.
    ///
    /// # Errors
    ///
    /// When the system has no memory for it.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let bytes = match bytes.len() {
            ..Self::MAPPED_FROM => Bytes::Short(bytes.to_vec()),
            _ => Bytes::Long(Sealed::new(bytes)?),
        };
        Ok(Self(Arc::new(bytes)))
    }

    /// What it holds.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &*self.0 {
            Bytes::Short(bytes) => bytes,
            Bytes::Long(sealed) => sealed.bytes(),
        }
    }

    /// Where it lies to be mapped, if that pays.
    pub(crate) fn sealed(&self) -> Option<&Sealed> {
        match &*self.0 {
            Bytes::Short(_) => None,
            Bytes::Long(sealed) => Some(sealed),
        }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({} bytes)", self.bytes().len())
    }
}

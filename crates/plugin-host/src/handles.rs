//! What a call has opened: small numbers inside the plugin, files and connections outside. They end
//! with the call.

use avc::Hint;
use flask::{AccessVector, Question};
use std::{
    fs::File,
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// Handles that one call may hold.
const MOST: usize = 16;

/// An open file or connection. Using it asks again, so that a permission taken back holds for what
/// is open.
pub(crate) struct Handle {
    pub(crate) object: Object,
    pub(crate) question: Question,
    pub(crate) requested: AccessVector,
    pub(crate) hint: Hint,
    pub(crate) name: String,
}

pub(crate) enum Object {
    File(File),
    Connection(TcpStream),
}

/// The handles of one instance.
#[derive(Default)]
pub(crate) struct Handles(Vec<Option<Handle>>);

impl Handles {
    /// The number of a new handle; `None` when there are as many as there may be.
    pub(crate) fn insert(&mut self, handle: Handle) -> Option<i32> {
        let free = self.0.iter().position(Option::is_none);
        let place = match free {
            Some(place) => place,
            None if self.0.len() < MOST => {
                self.0.push(None);
                self.0.len() - 1
            }
            None => return None,
        };
        self.0[place] = Some(handle);
        Some(place as i32)
    }

    pub(crate) fn get(&mut self, number: i32) -> Option<&mut Handle> {
        self.0.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// Whether there was one of this number.
    pub(crate) fn close(&mut self, number: i32) -> bool {
        let place = usize::try_from(number).ok().and_then(|number| self.0.get_mut(number));
        place.is_some_and(|place| place.take().is_some())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Object {
    /// Reads some bytes, waiting for at most `time`.
    pub(crate) fn read(&mut self, into: &mut [u8], time: Duration) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(into),
            Self::Connection(stream) => {
                stream.set_read_timeout(Some(time))?;
                stream.read(into)
            }
        }
    }

    /// Writes some bytes, waiting for at most `time`. Files are open for reading alone.
    pub(crate) fn write(&mut self, bytes: &[u8], time: Duration) -> io::Result<usize> {
        match self {
            Self::File(_) => Err(io::ErrorKind::PermissionDenied.into()),
            Self::Connection(stream) => {
                stream.set_write_timeout(Some(time))?;
                stream.write(bytes)
            }
        }
    }
}

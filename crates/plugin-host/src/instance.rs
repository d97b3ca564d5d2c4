//! A running instance of a plugin, wherever it runs.

use crate::{
    call_failure::CallFailure, isolated::Isolated, kernel::Kernel, native::Native, sys::Image,
};
use std::sync::Arc;

pub(crate) enum Instance {
    Isolated(Box<Isolated>),
    Native(Box<Native>),
    Kernel(Box<Kernel>),
}

impl Instance {
    /// Puts `request` where the plugin will find it, and makes room for its reply.
    pub(crate) fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.fill(request),
            Self::Native(native) => {
                native.fill(request);
                Ok(())
            }
            Self::Kernel(kernel) => kernel.fill(request),
        }
    }

    /// Has the plugin find `image` as its request, where it lies if the target can do that.
    pub(crate) fn view(&mut self, image: &Arc<Image>) -> Result<(), CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.view(image),
            Self::Native(native) => {
                native.view(image);
                Ok(())
            }
            Self::Kernel(kernel) => kernel.fill(image.bytes()),
        }
    }

    /// `head` and a reply in one piece, where the target has room in front of replies.
    pub(crate) fn reply_behind(&mut self, head: &[u8], len: usize) -> Option<&[u8]> {
        match self {
            Self::Isolated(isolated) => isolated.reply_behind(head, len),
            Self::Native(native) => native.reply_behind(head, len),
            Self::Kernel(_) => None,
        }
    }

    /// Runs the plugin on the request that is there; the length of its reply. After an error the
    /// instance is not used again.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.run(),
            Self::Native(native) => native.run(),
            Self::Kernel(kernel) => kernel.run(),
        }
    }

    /// Counts what was asked since the last time in the host's statistics.
    pub(crate) fn settle(&mut self) {
        match self {
            Self::Isolated(isolated) => isolated.calls().settle(),
            Self::Native(native) => native.calls().settle(),
            Self::Kernel(kernel) => kernel.calls().settle(),
        }
    }

    /// Bytes of memory that it has, touched or not.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Isolated(isolated) => isolated.memory_bytes(),
            Self::Native(native) => native.memory_bytes(),
            Self::Kernel(kernel) => kernel.memory_bytes(),
        }
    }

    /// The first `len` bytes of the reply.
    pub(crate) fn reply(&mut self, len: usize) -> &[u8] {
        match self {
            Self::Isolated(isolated) => isolated.reply(len),
            Self::Native(native) => native.reply(len),
            Self::Kernel(kernel) => kernel.reply(len),
        }
    }
}

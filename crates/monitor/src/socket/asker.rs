//! A call with its subject, at the socket object manager.

use super::SocketManager;
use crate::shared::SocketFiles;
use avc::Hint;
use flask::{AccessVector, Class, Sid};
use mediation::{cache::AccessRequest, call::Asker};
use rustix::io::{Errno, Result};
use std::ops::Deref;
use supervisor::address::Address;

/// A call with its subject, at the socket object manager.
#[derive(Clone, Copy)]
pub(crate) struct SocketAsker<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) sockets: &'a SocketManager,
    /// The files that name sockets.
    pub(crate) files: SocketFiles<'a>,
}

impl<'a> Deref for SocketAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}

/// Asks whether the subject may, about a socket.
pub(super) fn allow(
    asker: SocketAsker<'_>,
    tclass: Class,
    tsid: Sid,
    requested: AccessVector,
    object: &dyn Fn() -> String,
) -> Result<()> {
    let hint = Hint::default();
    let request = AccessRequest { tsid, tclass, requested, hint: &hint, object };
    Ok(asker.ask(&asker.state.caches.socket, &request)?)
}

/// The address at argument `n`, whose length is the next argument.
pub(super) fn address(asker: SocketAsker<'_>, n: usize) -> Result<Address> {
    let len = asker.caller.int(n + 1);
    address_at(asker, asker.caller.call.args[n], len)
}

/// The same, where it lies at `at` and is `len` long.
pub(super) fn address_at(asker: SocketAsker<'_>, at: u64, len: i32) -> Result<Address> {
    let len = usize::try_from(len).map_err(|_| Errno::INVAL)?;
    if len > supervisor::socket::ADDRESS_MAX {
        return Err(Errno::INVAL);
    }
    Address::parse(asker.caller.buffer(at, len)?)
}

//! What is being sent, when it does not go at once.

use crate::{answer::Body, files::Served, pool::Lease};
use bytes::Bytes;
use rustix::{
    fs::sendfile,
    io::Errno,
    net::{SendFlags, send},
};
use std::{os::fd::AsFd, sync::Arc};

/// A head, and what comes behind it; how much of both has gone.
pub(super) struct Out {
    head: Vec<u8>,
    body: Rest,
    sent: u64,
    len: u64,
    /// Bytes sent when the client's time began anew.
    pub(super) mark: u64,
}

enum Rest {
    Bytes(Bytes),
    File(Arc<Served>, u64),
    Reply(Lease, usize),
}

/// What came of sending.
pub(super) enum Sent {
    /// All of it has gone; an instance that is free again.
    All(Option<Lease>),
    /// There is no more room.
    Blocked,
    /// The client has gone.
    Gone,
}

impl Out {
    pub(super) fn new(head: &[u8], body: Body) -> Self {
        let head = head.to_vec();
        let (body, len) = match body {
            Body::Empty => (Rest::Bytes(Bytes::new()), 0),
            Body::Bytes(bytes) | Body::Own(bytes) => {
                let len = bytes.len() as u64;
                (Rest::Bytes(bytes), len)
            }
            Body::File(file, from, to) => (Rest::File(file, from), to - from),
            Body::Reply(lease, len) => (Rest::Reply(lease, len), len as u64),
        };
        let len = head.len() as u64 + len;
        Self { head, body, sent: 0, len, mark: 0 }
    }

    /// So many bytes have gone already.
    pub(super) fn skip(&mut self, sent: u64) {
        self.sent = sent.min(self.len);
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether it holds an instance of a plugin.
    pub(super) fn holds_instance(&self) -> bool {
        matches!(self.body, Rest::Reply(..))
    }

    /// Bytes in memory that wait.
    pub(super) fn buffered(&self) -> usize {
        match &self.body {
            Rest::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Copies what a plugin's instance holds, and gives the instance back.
    pub(super) fn detach(&mut self) -> Option<Lease> {
        let empty = Rest::Bytes(Bytes::new());
        match std::mem::replace(&mut self.body, empty) {
            Rest::Reply(mut lease, len) => {
                self.body = Rest::Bytes(Bytes::copy_from_slice(lease.session.reply(len)));
                Some(lease)
            }
            other => {
                self.body = other;
                None
            }
        }
    }

    /// Sends as much as goes.
    pub(super) fn send(&mut self, fd: impl AsFd) -> Sent {
        loop {
            if self.sent == self.len {
                let body = std::mem::replace(&mut self.body, Rest::Bytes(Bytes::new()));
                return Sent::All(match body {
                    Rest::Reply(lease, _) => Some(lease),
                    _ => None,
                });
            }
            match self.step(&fd) {
                Ok(0) => return Sent::Gone,
                Ok(sent) => self.sent += sent as u64,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Blocked,
                Err(_) => return Sent::Gone,
            }
        }
    }

    fn step(&mut self, fd: &impl AsFd) -> rustix::io::Result<usize> {
        let head = self.head.len();
        let at = usize::try_from(self.sent).unwrap_or(usize::MAX);
        // Behind the head, where the instance has room for it: one call for both.
        if let Rest::Reply(lease, len) = &mut self.body
            && let Some(all) = lease.session.reply_behind(&self.head, *len)
        {
            return send(fd, &all[at..], SendFlags::NOSIGNAL);
        }
        if at < head {
            let more = if self.len > head as u64 { SendFlags::MORE } else { SendFlags::empty() };
            return send(fd, &self.head[at..], SendFlags::NOSIGNAL | more);
        }
        match &mut self.body {
            Rest::Bytes(bytes) => send(fd, &bytes[at - head..], SendFlags::NOSIGNAL),
            Rest::Reply(lease, len) => {
                send(fd, &lease.session.reply(*len)[at - head..], SendFlags::NOSIGNAL)
            }
            Rest::File(file, from) => {
                let mut offset = *from + (self.sent - head as u64);
                let left = usize::try_from(self.len - self.sent).unwrap_or(usize::MAX);
                // A file that was cut off meanwhile has nothing more: 0, and the connection ends.
                sendfile(fd, &file.file, Some(&mut offset), left)
            }
        }
    }
}

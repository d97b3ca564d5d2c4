//! A connection, as a worker keeps it.

use super::out::Out;
use crate::http::chunked::Chunks;
use flask::Sid;
use std::{net::IpAddr, os::fd::OwnedFd};

/// A connection. An idle one has no buffer.
pub(super) struct Conn {
    pub(super) fd: OwnedFd,
    pub(super) peer: Option<IpAddr>,
    /// The label of its requests.
    pub(super) label: Sid,
    pub(super) is_unix: bool,
    /// What has come and is not used yet.
    pub(super) input: Vec<u8>,
    /// Of `input`, what was used already.
    pub(super) used: usize,
    /// Before so many bytes are there, looking again is no use.
    pub(super) need: usize,
    /// A body in chunks that is coming.
    pub(super) chunks: Option<Box<Chunked>>,
    /// What is being sent.
    pub(super) out: Option<Box<Out>>,
    pub(super) phase: Phase,
    /// When what it waits for has to have come.
    pub(super) deadline: u32,
    /// Nothing more is read after this answer.
    pub(super) closes: bool,
    /// Bytes of a request that is not all there yet.
    pub(super) kept: usize,
    /// More of what it has sent is answered when others have had their turn.
    pub(super) has_more: bool,
    /// Whether the worker waits for room to send instead of bytes to read.
    pub(super) waits_to_send: bool,
}

/// A body in chunks.
pub(super) struct Chunked {
    /// Where the head ends, and how much of what follows was fed.
    pub(super) head: usize,
    pub(super) fed: usize,
    pub(super) chunks: Chunks,
    pub(super) done: bool,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The next request.
    Idle,
    /// The rest of a request.
    Request,
    /// Room to send.
    Send,
    /// The client's end, after ours: what it still sends is thrown away, so that our last answer
    /// arrives.
    Linger,
}

impl Conn {
    pub(super) fn new(fd: OwnedFd, peer: Option<IpAddr>, label: Sid, deadline: u32) -> Self {
        Self {
            fd,
            peer,
            label,
            is_unix: peer.is_none(),
            input: Vec::new(),
            used: 0,
            need: 0,
            chunks: None,
            out: None,
            phase: Phase::Idle,
            deadline,
            closes: false,
            kept: 0,
            has_more: false,
            waits_to_send: false,
        }
    }

    /// What has come and is not used yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.input[self.used..]
    }
}

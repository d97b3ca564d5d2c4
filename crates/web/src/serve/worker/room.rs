//! Room for what waits in memory. When there is none, it is made by whoever keeps most.

use super::{BUFFERED, Next, SORRY, Worker};
use crate::{
    clock::now_ms,
    serve::{conn::Conn, share::network},
};
use foldhash::{HashMap, HashMapExt as _};
use rustix::net::{SendFlags, send};
use std::{cmp::Reverse, collections::BinaryHeap};

impl Worker {
    /// Keeps a connection for its next turn, or ends it.
    pub(super) fn put_back(&mut self, at: usize, conn: Box<Conn>, next: Next) {
        match next {
            Next::End => self.end(at, *conn),
            _ => self.conns[at] = Some(conn),
        }
        self.make_room();
    }

    /// Ends connections where more waits than may. An eighth is free then, so that this is not to
    /// be done for each of those that come.
    pub(super) fn make_room(&mut self) {
        if self.buffered > BUFFERED {
            let excess = self.buffered - BUFFERED / 8 * 7;
            self.let_go(excess, |conn| conn.out.as_ref().map_or(0, |out| out.buffered()));
        }
        let most = self.responder.site.config.limits.waiting_bytes;
        if self.incoming > most {
            self.let_go(self.incoming - most / 8 * 7, |conn| conn.kept);
        }
    }

    /// Ends connections that keep `excess` bytes: of the address that keeps most at that time, the
    /// one that is nearest to its deadline. What keeps nothing goes on.
    fn let_go(&mut self, mut excess: usize, kept: fn(&Conn) -> usize) {
        let (now, mut addresses) = (now_ms(), HashMap::<_, (usize, Vec<_>)>::new());
        for (at, conn) in self.conns.iter().enumerate() {
            let Some(conn) = conn.as_ref().filter(|conn| kept(conn) > 0) else { continue };
            let (all, conns) = addresses.entry(conn.peer.map(network)).or_default();
            *all += kept(conn);
            conns.push((conn.deadline.wrapping_sub(now).cast_signed(), kept(conn), at));
        }
        for (_, conns) in addresses.values_mut() {
            conns.sort_unstable_by_key(|conn: &(i32, usize, usize)| Reverse(*conn));
        }
        let mut addresses: BinaryHeap<_> = addresses.into_values().collect();
        while excess > 0
            && let Some((all, mut conns)) = addresses.pop()
        {
            let Some((_, bytes, at)) = conns.pop() else { continue };
            excess = excess.saturating_sub(bytes);
            addresses.push((all - bytes, conns));
            let Some(conn) = self.conns[at].take() else { continue };
            self.responder.counters().refused.add(1);
            if conn.out.is_none() {
                let _ = send(&conn.fd, SORRY, SendFlags::NOSIGNAL);
            }
            self.end(at, *conn);
        }
    }
}

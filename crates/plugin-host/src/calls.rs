//! What plugins can call, once for all targets: each asks the policy, then acts.

use crate::{
    grant_cache::GrantCache,
    handles::{Handle, Handles, Object},
    interface::{EACCES, EBADF, ECONNREFUSED, EINVAL, EIO, EMFILE, ENOENT, ENOSPC},
    objects::NamedFile,
    plugin::Plugin,
};
use avc::Hint;
use flask::{AccessVector, Class, Question, Seqno, perm, perm::plugin};
use realpath::{climbs, path_from, way};
use std::{
    borrow::Cow,
    io,
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

/// Copies up to this length are part of an iteration of the plugin's loops.
const FREE_BYTES: usize = 1024;
/// Keys, paths and addresses are no longer than this.
const MAX_NAME: usize = 4096;
/// One read or write moves no more than this.
const MAX_MOVE: usize = 256 << 10;

/// The call's time is used up: it ends.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("time is used up")]
pub(crate) struct Timeout;

type Answer<T> = Result<T, Timeout>;

/// A plugin's memory, as host functions see it.
pub(crate) trait Bytes {
    /// `len` bytes at `at`; `None` if they are not all the plugin's.
    fn read(&self, at: u64, len: usize) -> Option<Cow<'_, [u8]>>;
    /// Whether there was room for `bytes` at `at`.
    fn write(&mut self, at: u64, bytes: &[u8]) -> bool;
}

/// What belongs to a running call.
pub(crate) struct Calls {
    pub(crate) plugin: Arc<Plugin>,
    /// What the plugin may do by itself.
    own: GrantCache,
    handles: Handles,
    /// When the time is used up. Set by the first look at the clock.
    deadline: Option<Instant>,
    /// Bytes that it has logged.
    logged: usize,
}

impl Calls {
    pub(crate) fn new(plugin: Arc<Plugin>) -> Self {
        let (own, handles) = (GrantCache::new(plugin.sid, &plugin), Handles::default());
        Self { plugin, own, handles, deadline: None, logged: 0 }
    }

    /// The newest policy state that was heard of.
    pub(crate) fn policy(&self) -> Seqno {
        self.plugin.access.avc.current()
    }

    /// A call begins. Whether the plugin may see the request.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        (self.deadline, self.logged) = (None, 0);
        self.may(plugin::READ_REQUEST)
    }

    /// A call has ended. Whether its reply may be used.
    #[inline]
    pub(crate) fn end(&mut self) -> bool {
        if !self.handles.is_empty() {
            self.handles.clear();
        }
        self.may(plugin::WRITE_REPLY)
    }

    /// Whether the plugin may use `requested` on itself.
    #[inline]
    fn may(&mut self, requested: AccessVector) -> bool {
        let granted = self.own.allows(&self.plugin, requested);
        self.plugin.asked(granted)
    }

    /// Counts what was asked since the last time in the host's statistics.
    pub(crate) fn settle(&mut self) {
        self.own.settle();
    }

    /// Ends the call if its time is used up; otherwise how much is left.
    pub(crate) fn look_at_clock(&mut self) -> Answer<Duration> {
        let now = Instant::now();
        let time = self.plugin.limits.call_time;
        let deadline = *self.deadline.get_or_insert_with(|| now.checked_add(time).unwrap_or(now));
        match deadline.checked_duration_since(now) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(Timeout),
        }
    }

    /// What takes long by itself looks at the clock by itself.
    fn spend(&mut self, len: usize) -> Answer<()> {
        if len > FREE_BYTES { self.look_at_clock().map(drop) } else { Ok(()) }
    }

    /// The answer to a request to log, where that needs no look at the text.
    #[inline]
    pub(crate) fn log_nothing(&mut self, len: i64) -> Option<i32> {
        match self.may(plugin::LOG) {
            false => Some(EACCES),
            true => (len == 0).then_some(0),
        }
    }

    pub(crate) fn log(&mut self, memory: &impl Bytes, text: u64, len: i64) -> i32 {
        if let Some(answer) = self.log_nothing(len) {
            return answer;
        }
        let Some(len) = usize::try_from(len).ok() else { return EINVAL };
        if len > self.plugin.limits.log_bytes - self.logged {
            return ENOSPC;
        }
        let Some(text) = memory.read(text, len) else { return EINVAL };
        self.logged += len;
        self.plugin.shared.write_log(&text);
        0
    }

    pub(crate) fn get(
        &mut self,
        memory: &mut impl Bytes,
        key: (u64, i64),
        out: (u64, i64),
    ) -> Answer<i64> {
        if !self.may(plugin::GET_STATE) {
            return Ok(i64::from(EACCES));
        }
        let Some(key) = name(memory, key) else { return Ok(i64::from(EINVAL)) };
        let Some(value) = self.plugin.shared.state.get(&key) else { return Ok(-1) };
        self.spend(value.len())?;
        let kept = value.len().min(usize::try_from(out.1).unwrap_or(0));
        let written = memory.write(out.0, &value[..kept]);
        Ok(if written { value.len() as i64 } else { i64::from(EINVAL) })
    }

    pub(crate) fn set(
        &mut self,
        memory: &impl Bytes,
        key: (u64, i64),
        value: (u64, i64),
    ) -> Answer<i32> {
        if !self.may(plugin::SET_STATE) {
            return Ok(EACCES);
        }
        let most = self.plugin.limits.state_bytes;
        let (Some(key), Ok(len)) = (name(memory, key), usize::try_from(value.1)) else {
            return Ok(EINVAL);
        };
        if len > most {
            return Ok(ENOSPC);
        }
        let Some(value) = memory.read(value.0, len) else { return Ok(EINVAL) };
        self.spend(len)?;
        Ok(if self.plugin.shared.state.set(&key, &value, most) { 0 } else { ENOSPC })
    }

    pub(crate) fn open(&mut self, memory: &impl Bytes, path: (u64, i64)) -> Answer<i32> {
        let Some(path) = name(memory, path) else { return Ok(EINVAL) };
        self.look_at_clock()?;
        Ok(self.opened(&path).unwrap_or_else(|error| error))
    }

    fn opened(&mut self, path: &[u8]) -> Result<i32, i32> {
        let shown = String::from_utf8_lossy(path).into_owned();
        // By `..`, it would learn which directories exist where it may not read.
        if climbs(path_from(path)) {
            return Err(EACCES);
        }
        let found = NamedFile::look(path);
        // What is not there has the label of where it would lie, links followed: who may not read
        // there does not learn what exists.
        let labels = &self.plugin.labels;
        let tsid = match &found {
            Ok(found) => labels.of_path(&found.path),
            Err(ENOENT) => way(path_from(path)).pop().and_then(|end| labels.of_path(&end)),
            Err(_) => return Err(EACCES),
        };
        let tsid = tsid.ok_or(EACCES)?;
        let question = Question { ssid: self.plugin.sid, tsid, tclass: Class::File };
        let requested = perm::file::READ | perm::file::OPEN;
        let hint = Hint::default();
        if !self.plugin.may_use(question, requested, &hint, &shown) {
            return Err(EACCES);
        }
        let found = found?;
        let object = Object::File(found.open()?);
        self.keep(Handle { object, question, requested: perm::file::READ, hint, name: shown })
    }

    pub(crate) fn connect(&mut self, memory: &impl Bytes, address: (u64, i64)) -> Answer<i32> {
        let Some(address) = name(memory, address) else { return Ok(EINVAL) };
        let left = self.look_at_clock()?;
        let connected = self.connected(&address, left).unwrap_or_else(|error| error);
        self.look_at_clock()?;
        Ok(connected)
    }

    fn connected(&mut self, address: &[u8], left: Duration) -> Result<i32, i32> {
        let shown = String::from_utf8_lossy(address).into_owned();
        let address: SocketAddr = shown.parse().map_err(|_| EINVAL)?;
        let own =
            Question { ssid: self.plugin.sid, tsid: self.plugin.sid, tclass: Class::TcpSocket };
        let socket = perm::tcp_socket::CREATE | perm::tcp_socket::CONNECT;
        let tsid = self.plugin.labels.of_address(address).ok_or(EACCES)?;
        let question = Question { ssid: self.plugin.sid, tsid, tclass: Class::Endpoint };
        let (requested, hint) = (perm::endpoint::NAME_CONNECT, Hint::default());
        if !self.plugin.may_use(own, socket, &Hint::default(), &shown)
            || !self.plugin.may_use(question, requested, &hint, &shown)
        {
            return Err(EACCES);
        }
        let stream = TcpStream::connect_timeout(&address, left).map_err(|_| ECONNREFUSED)?;
        let object = Object::Connection(stream);
        self.keep(Handle { object, question, requested, hint, name: shown })
    }

    fn keep(&mut self, handle: Handle) -> Result<i32, i32> {
        self.handles.insert(handle).ok_or(EMFILE)
    }

    pub(crate) fn read(
        &mut self,
        memory: &mut impl Bytes,
        handle: i32,
        out: (u64, i64),
    ) -> Answer<i64> {
        let Ok(room) = usize::try_from(out.1) else { return Ok(i64::from(EINVAL)) };
        let mut bytes = vec![0; room.min(MAX_MOVE)];
        let moved = self.moved(handle, |object, left| object.read(&mut bytes, left))?;
        Ok(match moved {
            Ok(count) if memory.write(out.0, &bytes[..count]) => count as i64,
            Ok(_) => i64::from(EINVAL),
            Err(error) => i64::from(error),
        })
    }

    pub(crate) fn write(
        &mut self,
        memory: &impl Bytes,
        handle: i32,
        from: (u64, i64),
    ) -> Answer<i64> {
        let len = usize::try_from(from.1).ok().map(|len| len.min(MAX_MOVE));
        let Some(bytes) = len.and_then(|len| memory.read(from.0, len)) else {
            return Ok(i64::from(EINVAL));
        };
        let moved = self.moved(handle, |object, left| object.write(&bytes, left))?;
        Ok(moved.map_or_else(i64::from, |count| count as i64))
    }

    /// Moves bytes through a handle, if the plugin still may.
    fn moved(
        &mut self,
        handle: i32,
        transfer: impl FnOnce(&mut Object, Duration) -> io::Result<usize>,
    ) -> Answer<Result<usize, i32>> {
        let left = self.look_at_clock()?;
        let Some(handle) = self.handles.get(handle) else { return Ok(Err(EBADF)) };
        let Handle { object, question, requested, hint, name } = handle;
        if !self.plugin.may_use(*question, *requested, hint, name) {
            return Ok(Err(EACCES));
        }
        let moved = transfer(object, left).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => EACCES,
            _ => EIO,
        });
        self.look_at_clock()?;
        Ok(moved)
    }

    pub(crate) fn close(&mut self, handle: i32) -> i32 {
        if self.handles.close(handle) { 0 } else { EBADF }
    }
}

/// A key, path or address.
fn name(memory: &impl Bytes, (at, len): (u64, i64)) -> Option<Vec<u8>> {
    let len = usize::try_from(len).ok().filter(|len| *len <= MAX_NAME)?;
    memory.read(at, len).map(Cow::into_owned)
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Plugin {
    /// Whether the plugin may use `requested` on something outside, called `object`.
    fn may_use(
        &self,
        question: Question,
        requested: AccessVector,
        hint: &Hint,
        object: &str,
    ) -> bool {
        let object = || Some(object.to_owned());
        self.asked(self.access.allows(&self.name, question, requested, hint, object))
    }
}

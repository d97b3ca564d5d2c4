//! The files by which a process asks for a run inside, and the socket that it is answered by.
//!
//! Their names are after those files by which other security modules are told the label of the next
//! program (`/proc/PID/attr/NAME/exec` of proc(5)). No kernel has them.

use super::runs::{Inside, InsideError, Requester, lock};
use crate::{
    call::{Answer, Asker, CallResult},
    subject::{self, label_generation},
};
use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, Result},
};
use std::{
    io::{self, Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Asks for a policy that bounds the next program.
const EXEC: &str = "/proc/self/attr/dewar/exec";

/// Exists while the policy of the run is the one that it was started with. Like the other one, it
/// is opened to write: mode `fast` decides no reading.
const UNCHANGED: &str = "/proc/self/attr/dewar/unchanged";

/// The longest policy that is read: several times as long as that of any shipped profile.
const MOST_BYTES: usize = 4 << 20;

/// How long a process may take to send it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests that can be open at once, each with a thread of the monitor.
const MOST_OPEN: usize = 8;

/// What is asked by opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsideRequest {
    /// To enter a domain at the next exec.
    Enter,
    /// Whether the run still has the policy that it was started with.
    Unchanged,
}

impl InsideRequest {
    /// What opening `path` asks, if anything.
    #[must_use]
    pub fn of(path: &Path, writes: bool) -> Option<Self> {
        if !writes {
            return None;
        }
        match path.to_str()? {
            EXEC => Some(Self::Enter),
            UNCHANGED => Some(Self::Unchanged),
            _ => None,
        }
    }
}

/// Answers by what is opened.
pub fn request(asker: Asker<'_>, request: InsideRequest) -> CallResult {
    match request {
        InsideRequest::Enter => enter(asker),
        InsideRequest::Unchanged => unchanged(&asker.state.inside),
    }
}

fn unchanged(inside: &Inside) -> CallResult {
    if inside.changed.load(Ordering::Acquire) {
        return Err(Errno::NOENT);
    }
    let fd = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Answer::Open { fd, cloexec: true })
}

/// Opens the socket.
fn enter(asker: Asker<'_>) -> CallResult {
    let state = asker.state;
    let inside = &state.inside;
    if inside.serving.get().is_none() {
        return Err(Errno::NOENT);
    }
    let pid = asker.caller.identity()?.pid;
    let generation = label_generation(state, pid)?;
    let who = Requester { pid, generation, ssid: asker.ssid };
    if !state.targets.listener.is_valid(asker.caller.call.id) {
        return Err(Errno::SRCH);
    }
    if !lock(&inside.allowance).take(Instant::now()) {
        return Err(Errno::AGAIN);
    }
    let slot = Slot::take(inside)?;
    inside.collect(state);
    let marked = subject::are_marked(state);
    let (ours, theirs) = UnixStream::pair().map_err(|_| Errno::NFILE)?;
    let serve = move || answer(&slot, ours, who, marked);
    let thread = std::thread::Builder::new().name("inside".into());
    thread.spawn(serve).map_err(|_| Errno::AGAIN)?;
    Ok(Answer::Open { fd: OwnedFd::from(theirs), cloexec: true })
}

/// One of the requests that can be open.
struct Slot(Arc<Inside>);

impl Slot {
    fn take(inside: &Arc<Inside>) -> Result<Self> {
        let slot = Self(Arc::clone(inside));
        if inside.open.fetch_add(1, Ordering::AcqRel) >= MOST_OPEN {
            return Err(Errno::AGAIN);
        }
        Ok(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(slot: &Slot, mut stream: UnixStream, who: Requester, marked: bool) {
    let admitted = match marked {
        true => {
            read(&mut stream).map_err(InsideError::from).and_then(|bytes| slot.0.admit(who, &bytes))
        }
        false => Err(InsideError::Unmarked),
    };
    let (word, text) = match &admitted {
        Ok(context) => {
            let shown = if slot.0.hides_names() { "hidden" } else { "named" };
            ("in", format!("{context} {shown}"))
        }
        Err(error) => ("no", error.to_string()),
    };
    // Whoever has asked may have gone.
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let _ = stream.write_all(format!("{word} {}\n", flask::visible(&text)).as_bytes());
}

/// Everything until the other side has said all.
fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 1 << 14]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_written_to_asks() {
        assert_eq!(InsideRequest::of(Path::new(EXEC), true), Some(InsideRequest::Enter));
        assert_eq!(InsideRequest::of(Path::new(UNCHANGED), true), Some(InsideRequest::Unchanged));
        let others = [(EXEC, false), (UNCHANGED, false), ("/proc/self/attr/exec", true)];
        for (path, writes) in others {
            assert_eq!(InsideRequest::of(Path::new(path), writes), None, "{path}");
        }
    }
}

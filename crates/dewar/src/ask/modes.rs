//! The modes of a terminal while a question is on it, whatever a program has left there: where `n`
//! erases, a typed `no` is an `o`.

use rustix::{
    io,
    termios::{
        Action, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
        SpecialCodeIndex as Key, Termios, tcflow, tcflush, tcgetattr, tcsetattr,
    },
};
use std::{
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The keys that a line is edited and ended with, as the kernel sets them for a new terminal.
const KEYS: [(Key, u8); 15] = [
    (Key::VINTR, 0x03),
    (Key::VQUIT, 0x1c),
    (Key::VERASE, DELETE),
    (Key::VKILL, 0x15),
    (Key::VEOF, 0x04),
    (Key::VSWTC, 0),
    (Key::VSTART, 0x11),
    (Key::VSTOP, 0x13),
    (Key::VSUSP, 0x1a),
    (Key::VEOL, 0),
    (Key::VREPRINT, 0x12),
    (Key::VDISCARD, 0x0f),
    (Key::VWERASE, 0x17),
    (Key::VLNEXT, 0x16),
    (Key::VEOL2, 0),
];
const DELETE: u8 = 0x7f;
const BACKSPACE: u8 = 0x08;

/// The modes that a prompter has set on its terminal, until they are restored.
#[derive(Default)]
pub(crate) struct TerminalModes(Mutex<Option<KnownModes>>);

impl TerminalModes {
    /// Sets known modes, while nothing in the sandbox runs.
    ///
    /// # Errors
    ///
    /// The terminal does not take them; it has those that it had.
    pub(super) fn set(&self, tty: &OwnedFd) -> io::Result<()> {
        let mut modes = self.lock();
        // The last are restored first, where they are still there.
        *modes = None;
        *modes = Some(KnownModes::set(tty)?);
        Ok(())
    }

    /// What is typed is read as it comes, and not shown: answers of the terminal's.
    pub(super) fn read_bytes(&self) -> io::Result<()> {
        self.lock().as_mut().map_or(Err(io::Errno::NOTTY), KnownModes::read_bytes)
    }

    /// Throws away what was typed, also half of a line, and a key that takes the next literally.
    pub(super) fn begin_line(&self) -> io::Result<()> {
        self.lock().as_mut().map_or(Err(io::Errno::NOTTY), KnownModes::begin_line)
    }

    /// Whether the terminal has them still.
    pub(super) fn hold(&self) -> bool {
        self.lock().as_ref().is_some_and(KnownModes::hold)
    }

    /// The terminal has what it had.
    pub(super) fn restore(&self) {
        *self.lock() = None;
    }

    /// The same, and nobody sets any again: this process ends.
    pub(super) fn end(&self) {
        let mut modes = self.lock();
        *modes = None;
        std::mem::forget(modes);
    }

    fn lock(&self) -> MutexGuard<'_, Option<KnownModes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Known modes on a terminal. Dropped, the terminal has those that it had, unless somebody outside
/// has set others meanwhile: a shell that took it back.
struct KnownModes {
    tty: OwnedFd,
    before: Termios,
    known: Termios,
    /// Those that it has now: the known ones, or the same without lines.
    now: Termios,
}

impl KnownModes {
    fn set(tty: &OwnedFd) -> io::Result<Self> {
        let tty = tty.try_clone().map_err(|_| io::Errno::MFILE)?;
        let before = tcgetattr(&tty)?;
        let known = known(&before);
        let this = Self { tty, now: known.clone(), known, before };
        let set = tcsetattr(&this.tty, OptionalActions::Now, &this.known);
        // A program may have stopped what is written, and so the question.
        let set = set.and_then(|()| tcflow(&this.tty, Action::OOn));
        if set.is_ok() && this.hold() {
            return Ok(this);
        }
        let _ = tcsetattr(&this.tty, OptionalActions::Now, &this.before);
        Err(set.err().unwrap_or(io::Errno::INVAL))
    }

    fn read_bytes(&mut self) -> io::Result<()> {
        self.now = self.known.clone();
        self.now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        (self.now.special_codes[Key::VMIN], self.now.special_codes[Key::VTIME]) = (1, 0);
        tcsetattr(&self.tty, OptionalActions::Now, &self.now)
    }

    fn begin_line(&mut self) -> io::Result<()> {
        // The kernel forgets the state of its line where it begins to read by lines.
        self.read_bytes()?;
        self.now = self.known.clone();
        tcsetattr(&self.tty, OptionalActions::Now, &self.now)?;
        tcflush(&self.tty, QueueSelector::IFlush)
    }

    fn hold(&self) -> bool {
        tcgetattr(&self.tty).is_ok_and(|now| is_same(&now, &self.now))
    }
}

impl Drop for KnownModes {
    fn drop(&mut self) {
        if self.hold() {
            // A terminal that is gone has no modes.
            let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
        }
    }
}

/// Modes under which what is typed is what is read. The line itself (speed, size of characters) is
/// as `before`, and so is a key that no letter is: Backspace, as this keyboard sends it.
fn known(before: &Termios) -> Termios {
    let mut known = before.clone();
    known.input_modes = InputModes::BRKINT
        | InputModes::ICRNL
        | InputModes::IXON
        | InputModes::IMAXBEL
        | (before.input_modes & InputModes::IUTF8);
    known.output_modes = OutputModes::OPOST | OutputModes::ONLCR;
    known.local_modes = LocalModes::ISIG
        | LocalModes::ICANON
        | LocalModes::IEXTEN
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOK
        | LocalModes::ECHOCTL
        | LocalModes::ECHOKE
        | (before.local_modes & LocalModes::TOSTOP);
    for (key, code) in KEYS {
        known.special_codes[key] = code;
    }
    if before.special_codes[Key::VERASE] == BACKSPACE {
        known.special_codes[Key::VERASE] = BACKSPACE;
    }
    known
}

fn is_same(one: &Termios, other: &Termios) -> bool {
    one.input_modes == other.input_modes
        && one.output_modes == other.output_modes
        && one.local_modes == other.local_modes
        && KEYS.iter().all(|(key, _)| one.special_codes[*key] == other.special_codes[*key])
}

//! A terminal that is drawn over again and again, and left as it was found.

use super::view::Key;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::getpgrp,
    termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
        tcsetattr,
    },
};
use signal_hook::{
    SigId,
    consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGTTOU, SIGWINCH},
    low_level::{emulate_default_handler, pipe, unregister},
};
use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Read as _, Write as _, stdin, stdout},
    os::unix::net::UnixStream,
};

/// Enters the alternate screen, hides the cursor, and cuts lines that are too long.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The way back.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What happened.
pub(super) enum Event {
    /// Somebody has rung the bell.
    Rung,
    /// The terminal has another size, or is ours again.
    Changed,
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// Somebody wants to leave: q, Ctrl-C, or a signal that ends programs.
    Quit,
}

/// A signal, as something that can be waited for.
struct Caught {
    arrived: UnixStream,
    handlers: Vec<SigId>,
}

impl Caught {
    fn new(signals: &[i32]) -> io::Result<Self> {
        let (arrived, writer) = UnixStream::pair()?;
        arrived.set_nonblocking(true)?;
        let mut caught = Self { arrived, handlers: Vec::new() };
        for signal in signals {
            caught.handlers.push(pipe::register(*signal, writer.try_clone()?)?);
        }
        Ok(caught)
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            unregister(handler);
        }
    }
}

/// The terminal, taken over. Dropped, it is what it was before.
pub(super) struct Screen {
    before: Termios,
    resized: Caught,
    suspended: Caught,
    ended: Caught,
}

impl Screen {
    /// Whether somebody sits in front of a terminal.
    pub(super) fn is_there() -> bool {
        stdin().is_terminal() && stdout().is_terminal()
    }

    /// Takes the terminal over; `None` if a signal ended us in the background, before it was ours.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub(super) fn open() -> io::Result<Option<Self>> {
        let screen = Self {
            before: tcgetattr(stdin())?,
            resized: Caught::new(&[SIGWINCH])?,
            suspended: Caught::new(&[SIGTSTP])?,
            ended: Caught::new(&[SIGINT, SIGTERM, SIGHUP])?,
        };
        Ok(screen.enter()?.then_some(screen))
    }

    /// Whether the terminal is ours now: not if a signal ends us in the background. There, the
    /// kernel stops whoever changes a terminal, again and again, as long as it catches that signal.
    fn enter(&self) -> io::Result<bool> {
        while is_in_background() {
            if has_arrived(&self.ended)? {
                return Ok(false);
            }
            emulate_default_handler(SIGTTOU)?;
        }
        // Keys come one by one and are not shown; Ctrl-C and Ctrl-Z still send their signals.
        let mut own = self.before.clone();
        own.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        own.special_codes[SpecialCodeIndex::VMIN] = 1;
        own.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Drain, &own)?;
        write(ENTER)?;
        Ok(true)
    }

    /// In the background, the terminal is somebody else's by now.
    fn leave(&self) -> io::Result<()> {
        if is_in_background() {
            return Ok(());
        }
        let written = write(LEAVE);
        tcsetattr(stdin(), OptionalActions::Drain, &self.before)?;
        written
    }

    /// How wide the terminal is.
    pub(super) fn columns(&self) -> usize {
        match tcgetwinsize(stdout()).map_or(0, |size| size.ws_col) {
            0 => 80,
            columns => usize::from(columns),
        }
    }

    /// Shows `text`, as much of it as there is room for.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub(super) fn draw(&self, text: &str, footer: &str) -> io::Result<()> {
        // A terminal that does not know its size says 0.
        let rows = match tcgetwinsize(stdout()).map_or(0, |size| size.ws_row) {
            0 => 24,
            rows => usize::from(rows),
        };
        write(&picture(text, rows, footer))
    }

    /// Waits for the next event, of which the bell is one: a pipe that does not block.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub(super) fn wait(&self, bell: &UnixStream) -> io::Result<Event> {
        loop {
            let (keys, input) = (stdin(), PollFlags::IN);
            let signals = [&self.ended, &self.suspended, &self.resized];
            let [ended, suspended, resized] = signals.map(|it| PollFd::new(&it.arrived, input));
            let mut fds =
                [PollFd::new(&keys, input), ended, suspended, resized, PollFd::new(bell, input)];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let [key, ended, suspended, resized, rung] = fds.map(|fd| !fd.revents().is_empty());
            if ended {
                return Ok(Event::Quit);
            }
            if key {
                return Ok(pressed().map_or(Event::Quit, Event::Keys));
            }
            if suspended {
                drain(&self.suspended.arrived);
                self.leave()?;
                emulate_default_handler(SIGTSTP)?;
                return Ok(if self.enter()? { Event::Changed } else { Event::Quit });
            }
            if resized {
                drain(&self.resized.arrived);
                return Ok(Event::Changed);
            }
            if rung {
                drain(bell);
                return Ok(Event::Rung);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = self.leave();
    }
}

/// Whether another group of processes has the terminal.
fn is_in_background() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp())
}

/// Whether one of the signals has.
fn has_arrived(caught: &Caught) -> io::Result<bool> {
    let mut fds = [PollFd::new(&caught.arrived, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

/// The keys that were pressed; `None` if they mean to leave. So do the end of all input, and a
/// terminal that is gone.
fn pressed() -> Option<Vec<Key>> {
    let mut bytes = [0; 64];
    let read = rustix::io::read(stdin(), &mut bytes).unwrap_or(0);
    let mut rest = &bytes[..read];
    let mut keys = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        (keys, rest) = match (first, after) {
            (b'q' | b'Q' | 3, _) => return None,
            (0x1b, [b'[' | b'O', b'A', after @ ..]) => ([keys, vec![Key::Up]].concat(), after),
            (0x1b, [b'[' | b'O', b'B', after @ ..]) => ([keys, vec![Key::Down]].concat(), after),
            (other, after) => ([keys, vec![Key::Char(*other)]].concat(), after),
        };
    }
    (read > 0).then_some(keys)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Takes whatever lies in a pipe that does not block.
fn drain(mut pipe: &UnixStream) {
    while pipe.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
}

/// What draws `text` over a screen of that many rows, with `footer` in the last one.
fn picture(text: &str, rows: usize, footer: &str) -> String {
    let room = rows.saturating_sub(1);
    let lines: Vec<&str> = text.lines().collect();
    let mut picture = "\x1b[H".to_owned();
    for line in lines.iter().take(room) {
        picture.push_str(line);
        // Each line is cleared behind its text: a screen that is never empty does not flicker.
        picture.push_str("\x1b[K\r\n");
    }
    let hidden = lines.len().saturating_sub(room);
    picture.push_str("\x1b[7m");
    picture.push_str(footer);
    if hidden > 0 {
        // Writing to a string does not fail.
        let _ = write!(picture, ", {hidden} lines more");
    }
    picture + "\x1b[0m\x1b[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_never_has_more_lines_than_the_screen() {
        for (lines, rows) in [(0, 24), (5, 24), (23, 24), (24, 24), (100, 24), (9, 1), (3, 0)] {
            let text = "line\n".repeat(lines);
            let picture = picture(&text, rows, "q quits");
            assert!(picture.matches('\n').count() < rows.max(1), "{lines} on {rows}: {picture}");
            let shown = picture.matches("line\x1b[K").count();
            let hidden = lines - shown;
            assert_eq!(picture.contains(&format!("{hidden} lines more")), hidden > 0);
        }
    }
}

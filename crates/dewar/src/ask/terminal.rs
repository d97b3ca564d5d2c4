//! Questions on the terminal of the run: while nothing in the sandbox can write there.
//!
//! A program that has its terminal to itself (raw input, no echo) is not disturbed: then the
//! question waits for `dewar ask` elsewhere.

use super::{
    case::{Case, Choice},
    queue::QuestionQueue,
    screen::{Probe, Size},
    turn::Turns,
};
use crate::run::link::ToRun;
use monitor::visible;
use proc::{Proc, none_if_gone};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, setpgid},
    termios::{LocalModes, tcgetattr, tcgetpgrp},
};
use std::{
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    time::{Duration, Instant},
};

/// Between two looks at a terminal that is not to be disturbed now.
const LOOK: Duration = Duration::from_millis(100);
/// So long may the sandbox take to stand still.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long may a terminal take to answer: megabytes may lie before, on a slow line.
const SILENCE: Duration = Duration::from_secs(20);
/// So long is a question shown before it is answered: who is typing for the program sees it and
/// stops, and what was typed is thrown away.
pub(super) const NOTICE: Duration = Duration::from_secs(1);
/// Ends what a program may have left on the terminal to hide a question or to have it look like
/// another: a sequence that swallows what follows (CAN, ST); a printer, a status line, a page or a
/// picture to come that gets it instead (MC, DECSASD, DECPCCM, mode 2026); a screen that keeps no
/// lines that leave it (mode 1049, which takes back the cursor that DECSC kept); and then concealed
/// text, another set of characters, margins and text around the cursor (DECSTR, SGR, SCS, DECAWM,
/// DECOM, DECLRMM, DECSTBM, ED).
const PLAIN: &str = "\x18\x1b\\\x1b[4i\x1b[?4i\x1b[0$}\x1b[?64h\x1b[?2026l\x1b7\x1b[?1049l\
                     \x1b[!p\x1b[0m\x1b(B\x0f\x1b[?7h\x1b7\x1b[?6l\x1b[?69l\x1b[r\x1b8\r\x1b[J";
/// From the start of the line on, without what was typed meanwhile.
const CLEAR: &str = "\r\x1b[K";
/// More nobody types as an answer.
const MOST_BYTES: usize = 8192;

/// The controlling terminal.
pub(crate) struct Terminal {
    tty: OwnedFd,
    turns: Turns,
}

/// The controlling terminal, if there is one on which one run asks at a time.
pub(crate) fn open() -> Option<Terminal> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let tty = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
    // Nothing closes a descriptor of the node later: that would end the lock.
    Some(Terminal { tty, turns: Turns::open()? })
}

/// What the run says of sandboxes that stand still.
#[derive(Default)]
pub(crate) struct Holds {
    last: AtomicU64,
    waiting: Mutex<Option<(u64, SyncSender<bool>)>>,
    /// The one that has ended by itself.
    loose: AtomicU64,
}

impl Holds {
    pub(crate) fn held(&self, number: u64, stands: bool) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, sender)) = waiting.filter(|(wanted, _)| *wanted == number) {
            let _ = sender.try_send(stands);
        }
    }

    pub(crate) fn loose(&self, number: u64) {
        self.loose.store(number, Ordering::Release);
    }

    fn expect(&self) -> (u64, Receiver<bool>) {
        let number = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        let (sender, receiver) = mpsc::sync_channel(1);
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, sender));
        (number, receiver)
    }
}

/// How an attempt to ask ended.
enum Asked {
    Answered(Choice, Option<String>),
    /// What was typed is no answer.
    Unclear,
    /// The question, or the quiet on the terminal, is gone.
    Interrupted(&'static str),
    /// The terminal does not say that it has shown the question.
    Silent,
    /// The terminal does not take the modes under which an answer is what was typed.
    Unfit,
}

/// Asks what is open, until the run ends or the terminal turns out not to be fit for it.
pub(crate) fn serve(queue: &Arc<QuestionQueue>, holds: &Holds, terminal: &Terminal) {
    let tty = &terminal.tty;
    loop {
        let Some(case) = queue.open().into_iter().next() else {
            queue.wait(Duration::from_secs(1));
            continue;
        };
        let Some(group) = free(queue, tty) else {
            std::thread::sleep(LOOK);
            continue;
        };
        // Another run asks here now, or somebody inside has the lock: the question waits.
        let Some(turn) = terminal.turns.take() else {
            std::thread::sleep(LOOK);
            continue;
        };
        let is_fit = ask(queue, holds, tty, (case, group));
        drop(turn);
        if !is_fit {
            return;
        }
    }
}

/// The group that has the terminal, if it belongs to this run and reads it line by line.
fn free(queue: &QuestionQueue, tty: &OwnedFd) -> Option<Pid> {
    let group = tcgetpgrp(tty).ok()?;
    let modes = tcgetattr(tty).ok()?.local_modes;
    let proc = Proc::open().ok()?;
    let leader = group.as_raw_nonzero().get().cast_unsigned();
    let ours = own_group() == Some(group) || proc.is_at_or_below(leader, queue.setup.monitor);
    (ours && modes.contains(LocalModes::ICANON | LocalModes::ECHO)).then_some(group)
}

/// This process's group, if it has a number here.
fn own_group() -> Option<Pid> {
    let stat = Proc::open().and_then(|proc| proc.stat(std::process::id())).ok();
    stat.filter(|stat| stat.group > 0).and_then(|stat| Pid::from_raw(stat.group))
}

/// Asks, and carries the answer out; whether this terminal can be asked on.
fn ask(
    queue: &Arc<QuestionQueue>,
    holds: &Holds,
    tty: &OwnedFd,
    (case, group): (Case, Pid),
) -> bool {
    let (number, stands) = holds.expect();
    queue.say(&ToRun::Hold(number));
    if !stands.recv_timeout(PATIENCE).unwrap_or(false) {
        queue.say(&ToRun::LetGo(number));
        std::thread::sleep(LOOK);
        return true;
    }
    // Who reads a terminal belongs to the group that has it.
    let own = own_group().filter(|own| *own != group);
    let moved = own.is_some() && setpgid(None, Some(group)).is_ok();
    let asked = match queue.modes.set(tty) {
        Ok(()) => {
            let is_loose = || holds.loose.load(Ordering::Acquire) == number;
            let (case, is_loose) = (&case, &is_loose);
            Question { queue, tty, case, group, is_loose }.put().unwrap_or_else(|ended| ended)
        }
        Err(_) => Asked::Unfit,
    };
    queue.modes.restore();
    if moved {
        let _ = setpgid(None, own);
    }
    queue.say(&ToRun::LetGo(number));
    conclude(queue, tty, &case, asked)
}

/// What comes of it, once the sandbox goes on.
fn conclude(queue: &QuestionQueue, tty: &OwnedFd, case: &Case, asked: Asked) -> bool {
    let (choice, named, by) = match asked {
        Asked::Answered(choice, named) => (choice, named, "the terminal of the run"),
        Asked::Unfit => (Choice::No, None, "a terminal that takes no modes"),
        Asked::Unclear => {
            say(tty, "  write one of the letters; Enter alone means no\n");
            return true;
        }
        Asked::Interrupted(why) => {
            say(tty, &format!("\n  {why}\n"));
            return true;
        }
        Asked::Silent => {
            let id = &queue.setup.id;
            say(
                tty,
                &format!(
                    "\ndewar: this terminal does not say what it has shown.\n\
                     It is asked in another terminal: dewar ask {id}\n"
                ),
            );
            return false;
        }
    };
    let by = format!("{by}, {}", super::user());
    if let Err(why) = queue.answer(case.number, choice, named.as_deref(), &by) {
        say(tty, &format!("  not done: {}\n", visible(&why.to_string())));
    }
    true
}

/// A question on the terminal, while the sandbox stands still.
struct Question<'a> {
    queue: &'a QuestionQueue,
    tty: &'a OwnedFd,
    case: &'a Case,
    /// The group that has the terminal.
    group: Pid,
    is_loose: &'a dyn Fn() -> bool,
}

impl Question<'_> {
    /// Shows all of it, and takes an answer; or why there is none.
    fn put(&self) -> Result<Asked, Asked> {
        say(self.tty, PLAIN);
        let size = self.caught_up()?;
        say(self.tty, "\n");
        let mut pages = size.pages(&format!("dewar: {}", self.case.text()));
        let last = pages.pop().unwrap_or_default();
        for page in pages {
            self.show(&page, "  Enter shows the rest: ")?;
        }
        let typed = self.show(&last, &self.case.choice_line())?;
        // The end of input is no yes.
        Ok(match typed.is_empty() {
            true => Asked::Answered(Choice::No, None),
            false => understand(&String::from_utf8_lossy(&typed)),
        })
    }

    /// Shows `text`; the line that is typed once it is on the screen, or nothing at the end of the
    /// input.
    fn show(&self, text: &str, prompt: &str) -> Result<Vec<u8>, Asked> {
        say(self.tty, text);
        self.caught_up()?;
        let until = Instant::now() + NOTICE;
        while Instant::now() < until {
            self.insist()?;
            std::thread::sleep(Duration::from_millis(50));
        }
        // What was typed before was no answer to this, also what no line has ended yet.
        self.queue.modes.begin_line().map_err(|_| Asked::Unfit)?;
        say(self.tty, &format!("{CLEAR}{prompt}"));
        let mut typed = Vec::new();
        while !typed.ends_with(b"\n") {
            match self.read()? {
                Some(bytes) if bytes.is_empty() => return Ok(bytes),
                Some(bytes) => typed.extend_from_slice(&bytes),
                None => {}
            }
            if typed.len() > MOST_BYTES {
                return Err(Asked::Unclear);
            }
        }
        // It counts if it was read under the known modes.
        self.insist()?;
        Ok(typed)
    }

    /// Waits until the terminal has taken all that was written to it; its size. What it shows is
    /// behind what is written: by megabytes of a program's, on a slow line.
    fn caught_up(&self) -> Result<Size, Asked> {
        let mut probe = Probe::new().map_err(|_| Asked::Unfit)?;
        self.queue.modes.read_bytes().map_err(|_| Asked::Unfit)?;
        say(self.tty, &probe.text());
        let until = Instant::now() + SILENCE;
        while Instant::now() < until {
            let Some(bytes) = self.read()? else { continue };
            // Without lines, that is the end of the terminal.
            if bytes.is_empty() {
                break;
            }
            if let Some(size) = probe.hear(&bytes) {
                return Ok(size);
            }
        }
        Err(Asked::Silent)
    }

    /// What comes in the next moment; empty at the end of the input.
    fn read(&self) -> Result<Option<Vec<u8>>, Asked> {
        self.insist()?;
        let patience = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let Ok(1..) = poll(&mut [PollFd::new(self.tty, PollFlags::IN)], Some(&patience)) else {
            return Ok(None);
        };
        let mut bytes = [0; 512];
        match rustix::io::read(self.tty, &mut bytes) {
            Ok(count) => Ok(Some(bytes[..count].to_vec())),
            Err(_) => {
                std::thread::sleep(LOOK);
                Ok(None)
            }
        }
    }

    /// Why the question has to leave the terminal, if it has to.
    fn insist(&self) -> Result<(), Asked> {
        if !self.queue.is_open(self.case.number) {
            let why = "withdrawn, answered elsewhere, or denied as its time is over";
            return Err(Asked::Interrupted(why));
        }
        if (self.is_loose)() {
            return Err(Asked::Interrupted("policy has changed meanwhile"));
        }
        // By somebody outside, as the sandbox stands still: a shell, after Ctrl-Z.
        if !self.queue.modes.hold() || tcgetpgrp(self.tty) != Ok(self.group) {
            let why = "the terminal has been changed meanwhile; this is not answered";
            return Err(Asked::Interrupted(why));
        }
        Ok(())
    }
}

/// What comes before a question.
pub(super) fn plain() -> &'static str {
    if is_dumb() { "" } else { PLAIN }
}

/// Whether the terminal understands no sequences, and would show them.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A letter or word, and behind it the full name of what is asked about.
fn understand(line: &str) -> Asked {
    match parse(line) {
        Some((choice, named)) => Asked::Answered(choice, named),
        None => Asked::Unclear,
    }
}

/// What a person has typed; an empty line is a no.
pub(crate) fn parse(line: &str) -> Option<(Choice, Option<String>)> {
    let line = line.trim();
    if line.is_empty() {
        return Some((Choice::No, None));
    }
    let (word, named) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let named = Some(named.trim().to_owned()).filter(|named| !named.is_empty());
    Some((Choice::of(word)?, named))
}

fn say(tty: &OwnedFd, text: &str) {
    // A terminal that is gone answers nothing either: the question ends by its time.
    let _ = none_if_gone(rustix::io::write(tty, text.as_bytes()).map(drop));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_letters_or_words_and_an_empty_line_is_a_no() {
        for (typed, want) in [
            ("\n", Some((Choice::No, None))),
            ("o\n", Some((Choice::Once, None))),
            ("run", Some((Choice::Run, None))),
            ("P", Some((Choice::Profile, None))),
            ("once /home/me/a key", Some((Choice::Once, Some("/home/me/a key".into())))),
            ("yes", None),
            ("on", None),
        ] {
            assert_eq!(parse(typed), want, "{typed:?}");
        }
    }
}

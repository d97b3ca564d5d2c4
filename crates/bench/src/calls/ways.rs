//! What else this machine offers to send bytes to another process and back: what ports are measured
//! against.

use super::measure::{Caller, timed};
use crate::sys;
use rustix::{
    io::Errno,
    thread::futex::{self, Flags},
};
use std::{
    hint::spin_loop,
    io::{self, PipeReader, PipeWriter, Read, Write, pipe},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

/// Looks before a spinning end goes to sleep: some 60 µs.
const LOOKS: u32 = 4000;

/// The largest message.
pub(super) const MOST: usize = 64 << 10;

/// Ways that need nothing but the kernel; made before the other process is.
pub(super) struct Ways {
    stream: (UnixStream, UnixStream),
    request: (PipeReader, PipeWriter),
    reply: (PipeReader, PipeWriter),
    /// One pair of words for each of the two ways to wait.
    words: &'static [AtomicU32],
}

/// Places of words, each on a cache line of its own.
const SLEEPING: [usize; 2] = [0, 64];
const SPINNING: [usize; 2] = [128, 192];
/// From a word to the one that says whether somebody sleeps on it.
const SLEEPER: usize = 32;

impl Ways {
    pub(super) fn new() -> io::Result<Self> {
        let words = sys::shared_words()?;
        Ok(Self { stream: UnixStream::pair()?, request: pipe()?, reply: pipe()?, words })
    }

    /// Answers for ever, each way in a thread of its own; messages of streams and pipes begin with
    /// their length.
    pub(super) fn answer(&self) -> io::Result<()> {
        let stream = self.stream.1.try_clone()?;
        thread::spawn(move || echo(&mut &stream, &mut &stream));
        let (mut from, mut to) = (self.request.0.try_clone()?, self.reply.1.try_clone()?);
        thread::spawn(move || echo(&mut from, &mut to));
        let words = self.words;
        for (places, looks) in [(SLEEPING, 0), (SPINNING, LOOKS)] {
            thread::spawn(move || {
                for number in 1.. {
                    wait(words, places[0], number, looks)?;
                    tell(words, places[1], number)?;
                }
                io::Result::Ok(())
            });
        }
        Ok(())
    }

    /// The calling ends.
    pub(super) fn callers(&self) -> io::Result<Vec<Caller>> {
        let stream = self.stream.0.try_clone()?;
        let (mut to, mut from) = (self.request.1.try_clone()?, self.reply.0.try_clone()?);
        let (mut one, mut two) = (vec![0; MOST], vec![0; MOST]);
        let caller = |way: &str, batch| Caller { way: way.to_owned(), variant: BARE, batch };
        Ok(vec![
            caller(
                "unix stream socket",
                timed(move |bytes| round_trip(&mut &stream, &mut &stream, &mut one[..bytes])),
            ),
            caller("pipes", timed(move |bytes| round_trip(&mut from, &mut to, &mut two[..bytes]))),
            caller(SLEEPING_FLOOR, timed(futex_caller(self.words, SLEEPING, 0))),
            caller(SPINNING_FLOOR, timed(futex_caller(self.words, SPINNING, LOOKS))),
        ])
    }
}

/// What is checked on the way of these.
pub(super) const BARE: &str = "bare";

/// The floors: no bytes at all, only the hand-over there and back.
pub(super) const SLEEPING_FLOOR: &str = "futex, sleeping";
pub(super) const SPINNING_FLOOR: &str = "futex, spinning first";

fn round_trip(from: &mut dyn Read, to: &mut dyn Write, bytes: &mut [u8]) -> io::Result<()> {
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    to.write_all(bytes)?;
    from.read_exact(bytes)
}

fn echo(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut bytes = vec![0; MOST];
    loop {
        let mut have = 0;
        let mut want = 4;
        while have < want {
            match from.read(&mut bytes[have..])? {
                0 => return Ok(()),
                more => have += more,
            }
            if let Some(&length) = bytes[..have].first_chunk() {
                want = u32::from_ne_bytes(length) as usize;
            }
        }
        to.write_all(&bytes[..have])?;
    }
}

fn futex_caller(
    words: &'static [AtomicU32],
    places: [usize; 2],
    looks: u32,
) -> impl FnMut(usize) -> io::Result<()> {
    let mut number = 0;
    move |_| {
        number += 1;
        tell(words, places[0], number)?;
        wait(words, places[1], number, looks)
    }
}

/// Sets a word, and wakes whoever sleeps on it. The word behind it says whether anybody does.
fn tell(words: &[AtomicU32], place: usize, number: u32) -> io::Result<()> {
    words[place].store(number, Ordering::SeqCst);
    if words[place + SLEEPER].load(Ordering::SeqCst) != 0 {
        futex::wake(&words[place], Flags::empty(), 1)?;
    }
    Ok(())
}

fn wait(words: &[AtomicU32], place: usize, number: u32, looks: u32) -> io::Result<()> {
    let word = &words[place];
    for _ in 0..looks {
        if word.load(Ordering::Acquire) == number {
            return Ok(());
        }
        spin_loop();
    }
    words[place + SLEEPER].store(1, Ordering::SeqCst);
    while word.load(Ordering::SeqCst) != number {
        match futex::wait(word, Flags::empty(), number.wrapping_sub(1), None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    words[place + SLEEPER].store(0, Ordering::Relaxed);
    Ok(())
}

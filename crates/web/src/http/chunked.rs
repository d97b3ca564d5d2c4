//! A body in chunks, read as it comes.

use super::head::{Refusal, refuse};

/// Bytes that a line about a chunk, or the trailers together, may have.
const MAX_LINE: usize = 1024;

/// Reads chunks. What comes is fed piece by piece; every byte is looked at once.
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// Digits of the length that were read.
    digits: u32,
    /// Bytes of the chunk that are still to come.
    left: u64,
    /// Bytes of the line that were read, or of all trailers.
    line: usize,
    /// Bytes about chunks, of all of them.
    about: usize,
    /// What was read.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Length,
    Extension,
    LengthEnd,
    Data,
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
    Done,
}

impl Chunks {
    /// Takes `bytes`; how many of them belong to the body, and whether that is its end.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when these are no chunks, or have more than `most` bytes.
    pub fn feed(&mut self, bytes: &[u8], most: usize) -> Result<(usize, bool), Refusal> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                self.body.extend_from_slice(&bytes[at..at + taken]);
                at += taken;
                self.left -= taken as u64;
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            self.step(bytes[at], most)?;
            at += 1;
        }
        Ok((at, self.state == State::Done))
    }

    /// What was read.
    #[must_use]
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    fn step(&mut self, byte: u8, most: usize) -> Result<(), Refusal> {
        const WRONG: Refusal = refuse(400, "the body is not in chunks");
        self.line += 1;
        self.about += 1;
        if self.line > MAX_LINE {
            return Err(refuse(400, "a line about a chunk is too long"));
        }
        // They are kept until the end: a byte in each chunk would take a thousand times its room.
        if self.about > most + MAX_LINE {
            return Err(refuse(413, "more is said about chunks than may be in them"));
        }
        self.state = match (self.state, byte) {
            (State::Length, digit) if digit.is_ascii_hexdigit() && self.digits < 15 => {
                self.digits += 1;
                let value = char::from(digit).to_digit(16).unwrap_or_default();
                self.left = self.left * 16 + u64::from(value);
                State::Length
            }
            (State::Length, b';') if self.digits > 0 => State::Extension,
            (State::Length, b'\r') if self.digits > 0 => State::LengthEnd,
            (State::Extension, b'\r') => State::LengthEnd,
            (State::Extension, byte) if byte != b'\n' && byte != 0 => State::Extension,
            (State::LengthEnd, b'\n') if self.left == 0 => self.begin(State::TrailerStart),
            (State::LengthEnd, b'\n') => {
                if self.left > most.saturating_sub(self.body.len()) as u64 {
                    return Err(refuse(413, "the body is too long"));
                }
                self.begin(State::Data)
            }
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => self.begin(State::Length),
            (State::TrailerStart, b'\r') => State::LastEnd,
            (State::LastEnd, b'\n') => State::Done,
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::TrailerEnd, b'\n') => State::TrailerStart,
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' && byte != 0 => {
                State::Trailer
            }
            _ => return Err(WRONG),
        };
        Ok(())
    }

    /// A line has ended.
    fn begin(&mut self, state: State) -> State {
        if state == State::Length {
            self.left = 0;
        }
        (self.digits, self.line) = (0, 0);
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), u16> {
        let (mut chunks, mut used) = (Chunks::default(), 0);
        let mut done = false;
        for piece in text.chunks(piece) {
            let (taken, end) = chunks.feed(piece, 100).map_err(|refusal| refusal.status)?;
            used += taken;
            if end {
                done = true;
                break;
            }
        }
        Ok((chunks.into_body(), used, done))
    }

    #[test]
    fn chunks_are_the_same_in_whatever_pieces_they_come() {
        let text = b"5\r\nhello\r\n1;a=b\r\n,\r\n0\r\nTrailer: x\r\n\r\nGET /";
        for piece in 1..text.len() {
            let (body, used, done) = read(text, piece).unwrap();
            assert_eq!((body.as_slice(), used, done), (&b"hello,"[..], text.len() - 5, true));
        }
        assert!(!read(b"5\r\nhel", 3).unwrap().2);
    }

    #[test]
    fn what_are_no_chunks_is_refused() {
        for (text, status) in [
            (&b"g\r\n"[..], 400),
            (b"5\nhello\r\n", 400),
            (b"5\r\nhelloX", 400),
            (b"5\r\nhello\n", 400),
            (b"\r\n", 400),
            (b"-1\r\n", 400),
            (b"0x5\r\n", 400),
            (b"ffffffffffffffff\r\n", 400),
            (b"65\r\n", 413),
            (b"0\r\nA\n", 400),
        ] {
            assert_eq!(read(text, 2), Err(status), "{text:?}");
        }
        let long = [b"5;".as_slice(), &[b'a'; 2000]].concat();
        assert_eq!(read(&long, 7), Err(400));
        let wordy = [b"1;".as_slice(), &[b'a'; 900], b"\r\nx\r\n"].concat();
        assert!(read(&wordy, 7).is_ok_and(|(body, ..)| body == b"x"));
        assert_eq!(read(&wordy.repeat(2), 7), Err(413));
    }
}

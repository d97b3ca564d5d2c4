//! What a terminal says of itself: that it has taken what was written to it, and how large it is.
//! What the kernel says of its size is for programs to set.

use rustix::{
    io,
    rand::{GetRandomFlags, getrandom},
};

/// Places of the cursor that tell an answer from those to what a program has asked before: one in
/// 2^60 is right by chance.
const STEPS: usize = 12;
/// Every terminal has as many columns.
const COLUMNS: u8 = 32;
/// An answer, with keys that were typed meanwhile.
const MOST_BYTES: usize = 2048;
/// Rows that stay free below what is shown, for the line that asks.
const FREE_ROWS: usize = 3;

/// A question to a terminal, which answers it once it has taken all that was written before. Nobody
/// who cannot read it can answer.
pub(super) struct Probe {
    columns: [u16; STEPS],
    said: Vec<u8>,
}

/// The rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Probe {
    pub(super) fn new() -> io::Result<Self> {
        let mut bytes = [0_u8; STEPS];
        // So few bytes come whole.
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        Ok(Self { columns: bytes.map(|byte| u16::from(byte % COLUMNS) + 1), said: Vec::new() })
    }

    /// What is written: the cursor goes to each place, asked where it is (CHA, DSR), at last to the
    /// end of the screen, and back (DECSC, CUP, DECRC).
    pub(super) fn text(&self) -> String {
        let steps = self.columns.iter().map(|column| format!("\x1b[{column}G\x1b[6n"));
        format!("\x1b7{}\x1b[999;999H\x1b[6n\x1b8", steps.collect::<String>())
    }

    /// The size of the screen, once `bytes` have made the answer whole.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Option<Size> {
        self.said.extend_from_slice(bytes);
        let places = places(&self.said);
        let is_answer = |places: &&[(u16, u16)]| {
            self.columns.iter().zip(*places).all(|(column, place)| *column == place.1)
        };
        let found = places.windows(STEPS + 1).find(is_answer);
        if let Some((rows, columns)) = found.and_then(|places| places.last()) {
            return Some(Size { rows: usize::from(*rows), columns: usize::from(*columns) });
        }
        let old = self.said.len().saturating_sub(MOST_BYTES);
        self.said.drain(..old);
        None
    }
}

/// The rows and columns of the answers (CPR) in what was read.
fn places(said: &[u8]) -> Vec<(u16, u16)> {
    let text = String::from_utf8_lossy(said);
    let place = |part: &str| {
        let (row, column) = part.split_once('R')?.0.split_once(';')?;
        Some((row.parse().ok()?, column.parse().ok()?))
    };
    text.split("\x1b[").skip(1).filter_map(place).collect()
}

impl Size {
    /// `text` in parts that are each seen whole.
    pub(super) fn pages(self, text: &str) -> Vec<String> {
        let room = self.rows.saturating_sub(FREE_ROWS).max(1);
        let mut pages = vec![String::new()];
        let (mut row, mut column) = (0, 0);
        for c in text.chars() {
            // Other characters take two columns at most.
            let width = if c.is_ascii() { 1 } else { 2 };
            if c != '\n' && column + width > self.columns {
                (row, column) = (row + 1, 0);
            }
            if row == room {
                if let Some(page) = pages.last_mut().filter(|page| !page.ends_with('\n')) {
                    page.push('\n');
                }
                pages.push(String::new());
                row = 0;
            }
            if let Some(page) = pages.last_mut() {
                page.push(c);
            }
            (row, column) = if c == '\n' { (row + 1, 0) } else { (row, column + width) };
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(probe: &Probe) -> String {
        let steps = probe.columns.iter().map(|column| format!("\x1b[7;{column}R"));
        steps.collect::<String>() + "\x1b[24;80R"
    }

    #[test]
    fn a_terminal_has_answered_when_it_has_named_every_place_in_turn() {
        let mut probe = Probe::new().unwrap();
        let answer = answer(&probe);
        let (most, last) = answer.split_at(answer.len() - 1);
        // Answers to a program come before, and keys in between.
        let foreign = "\x1b[1;1R\x1b[A".repeat(1_000);
        for (said, want) in
            [(foreign.as_str(), None), (most, None), (last, Some(Size { rows: 24, columns: 80 }))]
        {
            assert_eq!(probe.hear(said.as_bytes()), want);
        }
        let typed = answer.replacen("\x1b", "p\n\x1b[A\x1b", 4);
        assert!(probe.hear(typed.as_bytes()).is_some());
    }

    #[test]
    fn answers_to_others_are_none() {
        let mut probe = Probe::new().unwrap();
        let all = (1..=COLUMNS).map(|column| format!("\x1b[1;{column}R")).collect::<String>();
        assert_eq!(probe.hear(all.repeat(1_000).as_bytes()), None);
        let other = Probe { columns: probe.columns.map(|it| it % 32 + 1), said: Vec::new() };
        assert_eq!(probe.hear(answer(&other).as_bytes()), None);
        assert!(probe.said.len() <= MOST_BYTES);
    }

    #[test]
    fn what_is_longer_than_the_screen_is_shown_in_parts() {
        let size = Size { rows: 5, columns: 32 };
        let line = |c: &str, length: usize| c.repeat(length) + "\n";
        assert_eq!(size.pages("one\ntwo\n"), ["one\ntwo\n"]);
        assert_eq!(size.pages("one\ntwo\nthree\n"), ["one\ntwo\n", "three\n"]);
        let (full, half) = (line("a", 64), line("b", 32));
        assert_eq!(size.pages(&(full.clone() + &half)), [full.clone(), half.clone()]);
        // A line is cut where the screen ends, also one of characters that are wide.
        assert_eq!(size.pages(&line("a", 96)), [full, line("a", 32)]);
        assert_eq!(size.pages(&line("世", 48)), [line("世", 32), line("世", 16)]);
    }
}

//! The file in which a run leaves its audit records, and which it can fill with anything: the
//! daemon takes every record that is one, whatever lies between, and counts the rest.
//!
//! An input is the number of dropped records (8 bytes), how many zeros lie behind the lines (4
//! bytes), and the lines.
#![no_main]

use daemon::{JournalEntry, Filter, HEADER_BYTES, Journal, NewRun, Reader};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use std::{
    cell::RefCell,
    fs::File,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::Path,
};

mod memory;

const RUN: &str = "fuzz";

/// Where in the header the number of dropped records lies; behind it, with every bit turned.
const DROPPED: u64 = 16;

/// A larger number of dropped records is damage.
const MOST_DROPPED: u64 = 1 << 32;

/// The longest line, as `spool.rs` has it.
const MOST_LINE: usize = 1 << 20;

/// Records that are added between the lines of an input.
const MOST_GOOD: usize = 16;

/// What the daemon may take: lines, and what they are read as, of which the smallest takes two
/// bytes.
const MOST_BYTES: usize = 100 * MOST_LINE;

/// Seconds since 1970 at which everything is taken: no record is later, whatever it says.
const NOW: f64 = 2000.0;

/// The size from which on the journal throws records away.
const JOURNAL_BYTES: u64 = 8 << 20;

struct World {
    journal: Journal,
    /// The last entry that was looked at.
    after: i64,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new({
        let journal = Journal::open(Path::new(":memory:"), JOURNAL_BYTES).expect("a journal");
        let run = NewRun { id: RUN.into(), ..NewRun::default() };
        journal.begin_run(&run, 0, 0.0).expect("a run");
        World { journal, after: 0 }
    });
}

fuzz_target!(|bytes: &[u8]| {
    let Some((dropped, rest)) = bytes.split_first_chunk::<8>() else { return };
    let Some((zeros, lines)) = rest.split_first_chunk::<4>() else { return };
    let spool = Spool::new(u64::from_le_bytes(*dropped), u32::from_le_bytes(*zeros), lines);
    // The lines are the same, however many are taken at once.
    for most in [1 << 8, 64 << 10] {
        let entries = WORLD.with_borrow_mut(|world| spool.take(world, most));
        if spool.damaged {
            assert!(entries.is_empty(), "a damaged spool says nothing");
        } else {
            spool.check(&entries);
        }
    }
});

struct Spool {
    file: File,
    /// Each line that was written, in order.
    lines: Vec<Vec<u8>>,
    /// How many of them were added.
    good: usize,
    /// Bytes behind them, if they are no line.
    rest: u64,
    /// The last line is longer than a record may be.
    too_long: bool,
    /// The number of dropped records is none.
    damaged: bool,
}

/// A record that only this one place has.
fn good(number: usize) -> Vec<u8> {
    let record = format!(r#"{{"time":{number}.5,"granted":false,"scontext":"u:r:good_t:s0"}}"#);
    [record.as_bytes(), b"\n"].concat()
}

impl Spool {
    fn new(dropped: u64, zeros: u32, foreign: &[u8]) -> Self {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for (number, line) in foreign.split_inclusive(|byte| *byte == b'\n').enumerate() {
            lines.extend((number < MOST_GOOD).then(|| good(number)));
            lines.push(line.to_vec());
        }
        let good = lines.len().div_ceil(2).min(MOST_GOOD);
        let memory = memfd_create(c"fuzz", MemfdFlags::CLOEXEC).expect("memory");
        let (file, bytes) = (File::from(memory), lines.concat());
        file.write_all_at(&dropped.to_le_bytes(), DROPPED).expect("written");
        file.write_all_at(&(!dropped).to_le_bytes(), DROPPED + 8).expect("written");
        file.write_all_at(&bytes, HEADER_BYTES).expect("written");
        let unfinished = lines.pop_if(|last| !last.ends_with(b"\n")).unwrap_or_default();
        // They take no room, and end in a line of their own, if there are any.
        let (mut rest, long) = (unfinished.len() as u64, unfinished.len() + zeros as usize + 1);
        let too_long = zeros > 0 && long > MOST_LINE;
        if zeros > 0 {
            let end = HEADER_BYTES + bytes.len() as u64 + u64::from(zeros);
            file.write_all_at(b"\n", end).expect("written");
            if !too_long {
                lines.push(b"\0\n".to_vec());
                rest = 0;
            }
        }
        Self { file, lines, good, rest, too_long, damaged: dropped > MOST_DROPPED }
    }

    /// Takes it into the journal; returns what came to lie there.
    fn take(&self, world: &mut World, most: usize) -> Vec<JournalEntry> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let reader = Reader::open(Path::new(&path)).expect("it is there");
        let mut at = HEADER_BYTES;
        loop {
            let (read, held) = memory::most_held(|| reader.read(at, most));
            assert!(held < 2 * MOST_LINE, "{held} bytes for {most}");
            let Ok(batch) = read else {
                assert!(self.too_long || self.damaged, "a spool is lost for nothing");
                break;
            };
            assert!(!self.damaged, "damage is taken for a number");
            let (next, ended) = (batch.at, batch.bytes.is_empty());
            assert_eq!(next, at + batch.bytes.len() as u64);
            let batches = [(RUN.to_owned(), batch)];
            let (taken, held) = memory::most_held(|| world.journal.take(&batches, NOW));
            taken.expect("the journal takes every spool");
            assert!(held < MOST_BYTES, "{held} bytes");
            if ended {
                assert!(!self.too_long, "a line of any length is waited for");
                assert_eq!(reader.rest(at).expect("asked"), self.rest);
                break;
            }
            at = next;
        }
        let entries = world.journal.find(&Filter::default(), world.after, u32::MAX);
        let entries = entries.expect("the journal is read");
        world.after = entries.last().map_or(world.after, |entry| entry.id);
        world.journal.rotate().expect("the journal is rotated");
        entries
    }

    /// Every line is an entry or is counted, and every record that was added is there, in order.
    fn check(&self, entries: &[JournalEntry]) {
        let missing = |entry: &&JournalEntry| entry.record.starts_with("so many lines");
        let bad: u64 = entries.iter().filter(missing).map(|entry| entry.lost).sum();
        let taken = entries.iter().filter(|entry| entry.lost == 0).count();
        assert_eq!(taken as u64 + bad, self.lines.len() as u64, "a line is lost, or counted twice");
        let mut lines = self.lines.iter();
        for entry in entries.iter().filter(|entry| entry.lost == 0) {
            let same = |line: &&Vec<u8>| {
                std::str::from_utf8(line).is_ok_and(|line| line.trim_end() == entry.record)
            };
            assert!(lines.any(|line| same(&line)), "an entry is no line, or in another place");
            let record: serde_json::Value = serde_json::from_str(&entry.record).expect("JSON");
            let time = record["time"].as_f64().map(|time| time.clamp(0.0, NOW));
            assert_eq!(time, Some(entry.time));
            assert!(record["granted"].is_boolean() && record["scontext"].is_string());
        }
        let records: Vec<_> = entries.iter().map(|entry| entry.record.as_bytes()).collect();
        for number in 0..self.good {
            assert!(records.contains(&good(number).trim_ascii_end()), "a record is lost");
        }
    }
}

//! What is kept of an output: its beginning and its end. All of it is read, so that nobody waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    task::JoinHandle,
    time::timeout,
};

/// The most bytes that are kept of the beginning, and of the end; more is no help to an agent.
const MOST_BYTES: usize = 128 << 10;

/// The beginning and the end of an output.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

/// An output that is being read.
pub(crate) struct Reading {
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

/// Reads an output to its end.
pub(crate) fn keep(output: Option<impl AsyncRead + Unpin + Send + 'static>) -> Reading {
    let kept = Arc::new(Mutex::new(Kept::default()));
    let into = Arc::clone(&kept);
    let task = tokio::spawn(async move {
        let Some(mut output) = output else { return };
        let mut bytes = vec![0; 16 << 10];
        while let Ok(count @ 1..) = output.read(&mut bytes).await {
            lock(&into).add(&bytes[..count]);
        }
    });
    Reading { kept, task }
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(MOST_BYTES - self.head.len()));
        self.head.extend(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(MOST_BYTES);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// What was read: all, unless that takes longer than `patience`, as it would where another
    /// process holds the output.
    pub(crate) async fn text(mut reading: Reading, patience: Duration) -> String {
        if timeout(patience, &mut reading.task).await.is_err() {
            reading.task.abort();
        }
        lock(&reading.kept).shown()
    }

    fn shown(&mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.left_out == 0 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(tail));
        format!("{head}\n[{} bytes left out]\n{tail}", self.left_out)
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_and_what_is_left_out_is_counted() {
        for (length, left_out) in [
            (0, 0),
            (1, 0),
            (MOST_BYTES, 0),
            (2 * MOST_BYTES, 0),
            (2 * MOST_BYTES + 1, 1),
            (10 * MOST_BYTES, 8 * MOST_BYTES),
        ] {
            let all: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
            for step in [1000, 16 << 10, 10 * MOST_BYTES] {
                let mut kept = Kept::default();
                all.chunks(step).for_each(|bytes| kept.add(bytes));
                let text = String::from_utf8(all.clone()).unwrap();
                let want = match left_out {
                    0 => text,
                    _ => format!(
                        "{}\n[{left_out} bytes left out]\n{}",
                        &text[..MOST_BYTES],
                        &text[length - MOST_BYTES..]
                    ),
                };
                assert!(kept.shown() == want, "{length} in steps of {step}");
            }
        }
    }
}

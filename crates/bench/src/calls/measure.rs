//! Round trips, measured in turn.

use crate::random::Random;
use std::{
    io,
    time::{Duration, Instant},
};

/// How long one batch is to last, without the calls before it that wake the other end.
const BATCH: Duration = Duration::from_millis(4);
/// Those calls.
const WARM: u32 = 64;

/// A way to send some bytes to another process and to have them sent back.
pub(super) struct Caller {
    /// How the bytes travel.
    pub(super) way: String,
    /// What is checked on the way.
    pub(super) variant: &'static str,
    /// Makes round trips of so many bytes, and so many of them; how long they took.
    pub(super) batch: Batch,
}

/// See [`Caller::batch`].
pub(super) type Batch = Box<dyn FnMut(usize, u32) -> io::Result<Duration>>;

/// Batches of a single round trip that this process makes.
pub(super) fn timed(mut call: impl FnMut(usize) -> io::Result<()> + 'static) -> Batch {
    Box::new(move |bytes, count| {
        let begin = Instant::now();
        for _ in 0..count {
            call(bytes)?;
        }
        Ok(begin.elapsed())
    })
}

/// Nanoseconds of one round trip: for each caller, one figure a round. The callers take turns
/// within a round, in an order that changes.
pub(super) fn in_turn(
    callers: &mut [Caller],
    bytes: usize,
    rounds: usize,
) -> io::Result<Vec<Vec<f64>>> {
    let mut counts = Vec::new();
    for caller in callers.iter_mut() {
        (caller.batch)(bytes, WARM)?;
        let took = (caller.batch)(bytes, WARM)?.as_secs_f64() / f64::from(WARM);
        counts.push((BATCH.as_secs_f64() / took).clamp(8.0, 1e6) as u32);
    }
    let mut figures = vec![Vec::new(); callers.len()];
    let mut order: Vec<usize> = (0..callers.len()).collect();
    let mut random = Random::new(bytes as u64);
    for _ in 0..rounds {
        random.shuffle(&mut order);
        for &place in &order {
            let (caller, count) = (&mut callers[place], counts[place]);
            (caller.batch)(bytes, WARM.min(count))?;
            let took = (caller.batch)(bytes, count)?;
            figures[place].push(took.as_secs_f64() * 1e9 / f64::from(count));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn each_caller_has_a_figure_a_round_of_what_it_takes() {
        let caller = |ms: u64| Caller {
            way: "sleep".to_owned(),
            variant: "bare",
            batch: timed(move |_| {
                sleep(Duration::from_millis(ms));
                Ok(())
            }),
        };
        let figures = in_turn(&mut [caller(1), caller(2)], 8, 2).expect("nothing fails");
        for (figures, least) in figures.iter().zip([1e6, 2e6]) {
            assert_eq!(figures.len(), 2);
            // How much more it takes is the machine's affair.
            assert!(figures.iter().all(|ns| *ns >= least), "{figures:?}");
        }
    }

    #[test]
    fn a_caller_that_fails_ends_the_measurement() {
        let batch = timed(|_| Err(io::Error::other("gone")));
        let caller = Caller { way: String::new(), variant: "bare", batch };
        assert!(in_turn(&mut [caller], 8, 1).is_err());
    }
}

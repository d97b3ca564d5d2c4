//! Measures things inside this process in turn, again and again, so that what changes on the
//! machine meets all of them alike.

use crate::{random::Random, sys};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Does something so many times in a row, and says how long all of it took.
pub type Batch<'a> = Box<dyn FnMut(u32) -> Result<Duration, String> + 'a>;

/// Processor time, not time of the wall: what else runs on the machine takes the one and not the
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// Starts now, for this thread.
    #[must_use]
    pub fn start() -> Self {
        Self(sys::thread_time())
    }

    /// Processor time that this thread has taken since.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        sys::thread_time().saturating_sub(self.0)
    }
}

/// How often, and how much at a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interleaved {
    /// Rounds; one more comes before them and is ignored.
    pub rounds: usize,
    /// A batch lasts about as long.
    #[serde(rename = "batch_seconds", with = "in_seconds")]
    #[schemars(with = "f64")]
    pub batch: Duration,
    /// Of the order within rounds.
    pub seed: u64,
}

/// Times as numbers of seconds.
mod in_seconds {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Interleaved {
    /// Nanoseconds of one of each round, for each job that did not fail.
    ///
    /// The size of batches is found by doubling in the round that is ignored. A job that fails is
    /// not run again.
    pub fn run(&self, jobs: &mut [Batch<'_>]) -> Vec<Result<Vec<f64>, String>> {
        let mut random = Random::new(self.seed);
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        let mut times: Vec<u32> = Vec::new();
        let mut results: Vec<Result<Vec<f64>, String>> = Vec::new();
        for job in &mut *jobs {
            let found = self.calibrate(job);
            times.push(*found.as_ref().unwrap_or(&0));
            results.push(found.map(|_| Vec::new()));
        }
        for _ in 0..self.rounds {
            random.shuffle(&mut order);
            for &index in &order {
                let Ok(runs) = &mut results[index] else { continue };
                match jobs[index](times[index]) {
                    Ok(took) => runs.push(took.as_nanos() as f64 / f64::from(times[index])),
                    Err(why) => results[index] = Err(why),
                }
            }
        }
        results
    }

    fn calibrate(&self, job: &mut Batch<'_>) -> Result<u32, String> {
        let mut times = 1;
        loop {
            let took = job(times)?;
            if took >= self.batch / 2 || times > 1 << 24 {
                return Ok(times);
            }
            times *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_once_a_round_and_one_that_fails_no_more() {
        let turns = Interleaved { rounds: 4, batch: Duration::from_micros(64), seed: 1 };
        let mut left = 3;
        let mut jobs: Vec<Batch<'_>> = vec![
            Box::new(|times| Ok(Duration::from_micros(8) * times)),
            Box::new(|times| Ok(Duration::from_micros(16) * times)),
            Box::new(|_| {
                left -= 1;
                if left == 0 { Err("no more".to_owned()) } else { Ok(Duration::from_millis(1)) }
            }),
        ];
        let results = turns.run(&mut jobs);
        assert_eq!(results[0], Ok(vec![8000.0; 4]));
        assert_eq!(results[1], Ok(vec![16000.0; 4]));
        assert_eq!(results[2], Err("no more".to_owned()));
    }
}

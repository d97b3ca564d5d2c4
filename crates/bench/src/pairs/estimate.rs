//! What pairs say: the median of their ratios, how sure it is, and whether there is a difference at
//! all.
//!
//! The interval is the percentile bootstrap of the median, computed and not drawn: a resample's
//! median is at most the k-th smallest of n pairs with the chance that of n draws most fall on the
//! first k, a binomial tail (Efron 1979). Nothing is left to a generator, and n may be large.

use serde::{Deserialize, Serialize};
use statrs::{
    distribution::{ContinuousCDF, Normal, StudentsT},
    function::beta::beta_reg,
};

/// Chance that is left outside of an interval. A fifth of the 5 % that it stands for: stopping when
/// an interval is narrow, and looking at it while it shrinks, takes its toll (the tests measure how
/// much).
const OUTSIDE: f64 = 0.01;

/// A difference counts if chance alone would show one as large less often.
const SIGNIFICANT: f64 = 0.05;

/// Fewer pairs say nothing.
pub(super) const LEAST_PAIRS: usize = 6;

/// Fewer lives of the runners are not enough in any case.
pub(super) const LEAST_LIVES: usize = 8;

/// How many times as much one setting takes as another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// How many pairs there were.
    pub pairs: usize,
    /// The median of their ratios.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Wilcoxon's signed-rank test: the chance of ranks as uneven as these if there were no
    /// difference.
    pub p: f64,
}

/// What may be said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less long.
    Faster,
    /// No difference was found; if there is one, it is less than this share.
    NoDifference {
        /// 0.02 is 2 %.
        less_than: f64,
    },
    /// Too few pairs for any statement.
    TooFew,
}

impl Estimate {
    /// The estimate from pairs of (measured, compared with), both greater than 0. `None` if there
    /// are fewer than `LEAST_PAIRS`, or if one is no such pair.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.len() < LEAST_PAIRS || pairs.iter().any(|(a, b)| !(*a > 0.0 && *b > 0.0)) {
            return None;
        }
        let mut logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        logs.sort_by(f64::total_cmp);
        let count = logs.len();
        let below = rank_below(count);
        Some(Self {
            pairs: count,
            ratio: f64::midpoint(logs[(count - 1) / 2], logs[count / 2]).exp(),
            low: logs[below].exp(),
            high: logs[count - 1 - below].exp(),
            p: wilcoxon(&logs),
        })
    }

    /// The estimate from pairs of several lives of the runners. The interval holds that of all
    /// pairs, and that of the lives' medians, which are normal enough for Student's t. `None`
    /// before there are two lives.
    #[must_use]
    pub fn of_lives(lives: &[Vec<(f64, f64)>]) -> Option<Self> {
        let all = Self::of(&lives.concat())?;
        let median = |pairs: &Vec<(f64, f64)>| {
            let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
            crate::statistics::median_of(&logs)
        };
        let medians: Vec<f64> = lives.iter().filter_map(median).collect();
        let count = medians.len() as f64;
        let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(1.0 - OUTSIDE / 2.0);
        let mean = medians.iter().sum::<f64>() / count;
        let variance = medians.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let half = t * (variance / count).sqrt();
        let (low, high) = ((mean - half).exp(), (mean + half).exp());
        Some(Self { low: all.low.min(low), high: all.high.max(high), ..all })
    }

    /// Half of the interval's width, as a share of the ratio.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / (2.0 * self.ratio)
    }

    /// Whether the interval holds `ratio`.
    #[must_use]
    pub fn holds(&self, ratio: f64) -> bool {
        self.low <= ratio && ratio <= self.high
    }

    /// What may be said. A difference is one only if the interval and the test agree.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.holds(1.0) || self.p >= SIGNIFICANT {
            let less_than = (1.0 - self.low).abs().max((self.high - 1.0).abs());
            Verdict::NoDifference { less_than }
        } else if self.ratio > 1.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    }
}

/// The place, in ascending order, of the lower end of the interval for the median of `count` pairs.
fn rank_below(count: usize) -> usize {
    let half = count / 2 + 1;
    // The chance that a resample's median lies at or below place `k`, counted from 1.
    let chance = |k: usize| {
        if k >= count {
            return 1.0;
        }
        beta_reg(half as f64, (count - half + 1) as f64, k as f64 / count as f64)
    };
    (1..=count / 2).take_while(|k| chance(*k) < OUTSIDE / 2.0).count()
}

/// The two-sided signed-rank test on sorted differences, by its normal approximation with
/// corrections for ties and continuity. 1 if all are 0.
fn wilcoxon(differences: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let count = sorted.len() as f64;
    let (mut positive, mut ties, mut start) = (0.0, 0.0, 0);
    while start < sorted.len() {
        let same = |d: &&f64| d.abs() == sorted[start].abs();
        let length = sorted[start..].iter().take_while(same).count();
        let rank = start as f64 + (length as f64 + 1.0) / 2.0;
        positive +=
            rank * sorted[start..start + length].iter().filter(|d| **d > 0.0).count() as f64;
        ties += (length as f64).powi(3) - length as f64;
        start += length;
    }
    let mean = count * (count + 1.0) / 4.0;
    let variance = count * (count + 1.0) * (2.0 * count + 1.0) / 24.0 - ties / 48.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((positive - mean).abs() - 0.5).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().sf(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A time on a machine that others use: noise on every unit, disturbed every fifth time, and a
    /// load that wanders.
    pub(super) fn noisy(random: &mut Random, load: f64) -> f64 {
        let mut noise: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        if random.unit() < 0.2 {
            noise += random.unit() * 10.0;
        }
        load * (1.0 + 0.04 * noise).max(0.1)
    }

    /// Pairs until the interval is narrow enough, looked at again and again as the engine does.
    fn experiment(random: &mut Random, effect: f64, narrow: f64) -> Estimate {
        let (mut pairs, mut look, mut load) = (Vec::new(), 30, 1.0);
        loop {
            while pairs.len() < look {
                load = (load * (0.95 + 0.1 * random.unit())).clamp(0.5, 4.0);
                pairs.push((noisy(random, load * effect), noisy(random, load)));
            }
            let estimate = Estimate::of(&pairs).expect("pairs");
            if estimate.half_width() <= narrow || pairs.len() > 2000 {
                return estimate;
            }
            look += look / 8;
        }
    }

    #[test]
    fn the_interval_of_equal_settings_holds_one_in_at_least_95_of_100_experiments() {
        let mut random = Random::new(95);
        for narrow in [0.03, 0.02, 0.01] {
            let holding = (0..1000).filter(|_| experiment(&mut random, 1.0, narrow).holds(1.0));
            let share = holding.count();
            assert!(share >= 950, "{share} of 1000 at ±{narrow}");
        }
    }

    #[test]
    fn equal_settings_are_ranked_in_less_than_5_of_100_experiments() {
        let mut random = Random::new(5);
        let ranked = |e: Estimate| !matches!(e.verdict(), Verdict::NoDifference { .. });
        let count = (0..1000).filter(|_| ranked(experiment(&mut random, 1.0, 0.01))).count();
        assert!(count < 50, "{count} of 1000");
    }

    #[test]
    fn a_planted_effect_of_two_percent_is_found_and_its_size_told() {
        let mut random = Random::new(2);
        let found: Vec<Estimate> = (0..200).map(|_| experiment(&mut random, 1.02, 0.01)).collect();
        let slower = found.iter().filter(|e| e.verdict() == Verdict::Slower).count();
        let held = found.iter().filter(|e| e.holds(1.02)).count();
        assert!(slower >= 190 && held >= 190, "found in {slower}, held in {held} of 200");
    }

    #[test]
    fn the_interval_is_the_bootstrap_s() {
        let mut random = Random::new(11);
        for count in [25, 60, 201] {
            let logs: Vec<f64> = (0..count).map(|_| random.unit().powi(2)).collect();
            let pairs: Vec<(f64, f64)> = logs.iter().map(|log| (log.exp(), 1.0)).collect();
            let estimate = Estimate::of(&pairs).expect("pairs");
            let mut medians: Vec<f64> = (0..20_000)
                .map(|_| {
                    let drawn: Vec<f64> = (0..count).map(|_| logs[random.below(count)]).collect();
                    crate::statistics::median_of(&drawn).expect("numbers").exp()
                })
                .collect();
            medians.sort_by(f64::total_cmp);
            let below = medians.iter().filter(|median| **median < estimate.low).count();
            let above = medians.iter().filter(|median| **median > estimate.high).count();
            for outside in [below, above] {
                let share = outside as f64 / 20_000.0;
                assert!(share < OUTSIDE, "{share} outside of {estimate:?}");
            }
        }
    }

    #[test]
    fn wilcoxon_agrees_with_published_figures() {
        // Hollander and Wolfe, Hamilton depression scale: V = 5, n = 9; exact p is 0.039, R's
        // normal approximation 0.044.
        let mut differences =
            [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];
        differences.sort_by(f64::total_cmp);
        let p = wilcoxon(&differences);
        assert!((p - 0.044).abs() < 0.001, "{p}");
        assert_eq!(wilcoxon(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn what_cannot_be_resolved_is_not_ranked() {
        let pairs: Vec<(f64, f64)> =
            (0..40).map(|n| (1.0 + f64::from(n % 5 - 2) / 50.0, 1.0)).collect();
        let verdict = Estimate::of(&pairs).expect("pairs").verdict();
        assert!(matches!(verdict, Verdict::NoDifference { less_than } if less_than < 0.05));
        assert_eq!(Estimate::of(&pairs[..5]), None);
        assert_eq!(Estimate::of(&[(0.0, 1.0); 10]), None);
    }
}

//! What a handful of noisy runs says: where the middle is, how far they spread, and how sure a
//! ratio is.
//!
//! Medians and deviations from them, not means: one run that met a busy machine moves a mean, not a
//! median.

use crate::random::Random;
use serde::{Deserialize, Serialize};

/// Resamples behind a confidence interval.
const RESAMPLES: usize = 2000;

/// The middle and the spread of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// How many there were; at least one.
    pub count: usize,
    /// Half of them are no greater.
    pub median: f64,
    /// Median absolute deviation from the median, not scaled.
    pub mad: f64,
    /// A quarter of them is no greater.
    pub lower_quartile: f64,
    /// Three quarters of them are no greater.
    pub upper_quartile: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Summary {
    /// The summary of `numbers`; `None` of none, or if one is not a number.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let sorted = sorted(numbers)?;
        let median = quantile(&sorted, 0.5);
        let deviations: Vec<f64> = sorted.iter().map(|number| (number - median).abs()).collect();
        Some(Self {
            count: sorted.len(),
            median,
            mad: median_of(&deviations)?,
            lower_quartile: quantile(&sorted, 0.25),
            upper_quartile: quantile(&sorted, 0.75),
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }

    /// About a 95 % confidence interval of the median, from the quartiles: the notches of McGill,
    /// Tukey and Larsen, "Variations of Box Plots", 1978.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let half = 1.57 * (self.upper_quartile - self.lower_quartile) / (self.count as f64).sqrt();
        ((self.median - half).max(self.min), (self.median + half).min(self.max))
    }
}

/// The median of `numbers`; `None` of none, or if one is not a number.
#[must_use]
pub fn median_of(numbers: &[f64]) -> Option<f64> {
    sorted(numbers).map(|sorted| quantile(&sorted, 0.5))
}

/// How many times as long one configuration takes as another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// Median through median.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

impl Ratio {
    /// The ratio within pairs of (measured, compared with) that were taken in the same round, so
    /// that what slowed a whole round weighs on both sides. The interval is a percentile bootstrap
    /// over the rounds. `None` without pairs, or if one is compared with nothing.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let value = ratio_of_medians(pairs)?;
        let mut random = Random::new(pairs.len() as u64);
        let resample = |_| {
            let drawn: Vec<(f64, f64)> =
                pairs.iter().map(|_| pairs[random.below(pairs.len())]).collect();
            ratio_of_medians(&drawn)
        };
        let resampled: Vec<f64> = (0..RESAMPLES).map(resample).collect::<Option<_>>()?;
        let resampled = sorted(&resampled)?;
        Some(Self { value, low: quantile(&resampled, 0.025), high: quantile(&resampled, 0.975) })
    }
}

fn ratio_of_medians(pairs: &[(f64, f64)]) -> Option<f64> {
    let (measured, compared): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratio = median_of(&measured)? / median_of(&compared)?;
    ratio.is_finite().then_some(ratio)
}

fn sorted(numbers: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty() && !sorted.iter().any(|number| number.is_nan())).then_some(sorted)
}

/// The number at `share` of the way through `sorted`, between two of them if need be (R's type 7).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_summary_of_known_numbers_is_known() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 5.0, 7.0, 9.0, 100.0]);
        let want = Summary {
            count: 7,
            median: 5.0,
            mad: 2.0,
            lower_quartile: 4.0,
            upper_quartile: 8.0,
            min: 2.0,
            max: 100.0,
        };
        assert_eq!(summary, Some(want));
        let (low, high) = want.interval();
        assert!(low < 5.0 && high > 5.0 && low >= 2.0 && high < 9.0, "{low} … {high}");
        assert_eq!(median_of(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn nothing_and_what_is_no_number_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Ratio::of(&[]), None);
        assert_eq!(Ratio::of(&[(1.0, 0.0)]), None);
    }

    #[test]
    fn noise_that_both_sides_share_does_not_widen_the_interval() {
        let pairs: Vec<(f64, f64)> = (1..20).map(|n| (f64::from(n) * 1.5, f64::from(n))).collect();
        let ratio = Ratio::of(&pairs).expect("pairs");
        assert_eq!((ratio.value, ratio.low, ratio.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn the_interval_of_two_equal_configurations_holds_one() {
        let mut random = Random::new(7);
        let mut draw = || 100.0 + random.below(1000) as f64 / 100.0;
        let pairs: Vec<(f64, f64)> = (0..30).map(|_| (draw(), draw())).collect();
        let ratio = Ratio::of(&pairs).expect("pairs");
        assert!(ratio.low <= 1.0 && 1.0 <= ratio.high && ratio.high - ratio.low < 0.1, "{ratio:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_summary_is_in_order_and_does_not_depend_on_the_numbers_order(
            numbers in prop::collection::vec(-1e9..1e9_f64, 1..40),
        ) {
            let summary = Summary::of(&numbers).expect("numbers");
            let inner = [
                summary.min, summary.lower_quartile, summary.median, summary.upper_quartile, summary.max,
            ];
            prop_assert!(inner.is_sorted());
            prop_assert!(summary.mad >= 0.0 && summary.mad <= summary.max - summary.min);
            let reversed: Vec<f64> = numbers.iter().rev().copied().collect();
            prop_assert_eq!(Summary::of(&reversed), Some(summary));
        }

        #[test]
        fn a_ratio_lies_in_its_interval_and_scales_with_what_is_measured(
            pairs in prop::collection::vec((1.0..1e3_f64, 1.0..1e3_f64), 1..12),
            factor in 1.0..8.0_f64,
        ) {
            let ratio = Ratio::of(&pairs).expect("pairs");
            prop_assert!(ratio.low <= ratio.high);
            let scaled: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a * factor, *b)).collect();
            let scaled = Ratio::of(&scaled).expect("pairs");
            prop_assert!((scaled.value / ratio.value / factor - 1.0).abs() < 1e-9);
        }
    }
}

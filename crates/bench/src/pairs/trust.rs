//! Whether intervals can be trusted: what was recorded is drawn anew, many times, as experiments of
//! which the truth is known.
//!
//! The ratios of recorded pairs, divided by their median, are the noise of this machine, with
//! whatever tails it has. Rounds are drawn in runs of neighbours, so that a load that comes and
//! goes is drawn as well; where runners were started anew, the rounds of a whole life are drawn.
//! From such pairs an experiment is made as the engine makes it: look, stop
//! when the interval is narrow enough, or when there are as many rounds as were recorded. Its truth
//! is 1, or with an effect planted, just that effect.

use super::{
    Kept, Verdict,
    estimate::{Estimate, LEAST_LIVES, LEAST_PAIRS},
    outcome::{Lives, lives_of},
};
use crate::{
    random::Random,
    sheet::{Cell, Sheet},
};
use serde::{Deserialize, Serialize};

/// Rounds that are drawn together.
const RUN: usize = 8;
/// Fewer recorded pairs are no noise to draw from.
pub const LEAST_RECORDED: usize = 30;

/// How the recorded noise is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draws {
    /// Experiments of each kind.
    pub repeats: usize,
    /// The effect that is planted: 0.02 is 2 %.
    pub plant: f64,
    /// An interval this narrow to each side ends an experiment.
    pub half_width: f64,
}

/// What the experiments made of one comparison's noise came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trust {
    /// What was compared, as its subject and setting say.
    pub subject: String,
    /// Under what.
    pub setting: String,
    /// Pairs that were recorded.
    pub recorded: usize,
    /// Experiments of each kind.
    pub repeats: usize,
    /// Of those without an effect: whose interval holds 1.
    pub held: usize,
    /// Of those: that found a difference which is none.
    pub ranked: usize,
    /// Of those with the effect: that found it, with the right sign.
    pub found: usize,
    /// Of those: whose interval holds it.
    pub held_planted: usize,
    /// Half of the interval's width, as the median over all experiments.
    pub half_width: f64,
}

/// Every comparison of a file, if so many pairs were recorded.
#[must_use]
pub fn trust(kept: &Kept, draws: Draws) -> Vec<Trust> {
    let mut all = Vec::new();
    for (subject, about) in kept.experiment.subjects.iter().enumerate() {
        for (setting, under) in kept.experiment.settings.iter().enumerate().skip(1) {
            let Some(lives) = lives_of(kept, subject, setting) else { continue };
            let names = (about.name.clone(), under.name.clone());
            all.extend(of_lives(&lives, names, draws));
        }
    }
    all
}

fn of_lives(lives: &Lives, names: (String, String), draws: Draws) -> Option<Trust> {
    let log = |pairs: &Vec<(f64, f64)>| pairs.iter().map(|(a, b)| (a / b).ln()).collect();
    let noise: Vec<Vec<f64>> = lives.pairs.iter().map(log).collect();
    let all = noise.concat();
    if all.len() < LEAST_RECORDED || !all.iter().all(|log| log.is_finite()) {
        return None;
    }
    let median = crate::statistics::median_of(&all)?;
    let centred = |life: &Vec<f64>| life.iter().map(|log| log - median).collect();
    let noise = Noise { lives: noise.iter().map(centred).collect(), renewed: lives.renewed };
    let mut random = Random::new(1999);
    let mut experiments = |effect: f64| -> Option<Vec<Estimate>> {
        (0..draws.repeats).map(|_| experiment(&noise, effect, draws, &mut random)).collect()
    };
    let (same, planted) = (experiments(1.0)?, experiments(1.0 + draws.plant)?);
    let widths: Vec<f64> = same.iter().chain(&planted).map(Estimate::half_width).collect();
    let ranked = |it: &&Estimate| !matches!(it.verdict(), Verdict::NoDifference { .. });
    let right = if draws.plant < 0.0 { Verdict::Faster } else { Verdict::Slower };
    Some(Trust {
        subject: names.0,
        setting: names.1,
        recorded: all.len(),
        repeats: draws.repeats,
        held: same.iter().filter(|it| it.holds(1.0)).count(),
        ranked: same.iter().filter(ranked).count(),
        found: planted.iter().filter(|it| it.verdict() == right).count(),
        held_planted: planted.iter().filter(|it| it.holds(1.0 + draws.plant)).count(),
        half_width: crate::statistics::median_of(&widths)?,
    })
}

/// What was recorded, its median taken out.
struct Noise {
    lives: Vec<Vec<f64>>,
    renewed: bool,
}

impl Noise {
    /// Rounds that lie beside each other, or a whole life, with that effect.
    fn draw(&self, effect: f64, random: &mut Random) -> Vec<(f64, f64)> {
        let life = &self.lives[random.below(self.lives.len())];
        let pair = |log: &f64| (log.exp() * effect, 1.0);
        if self.renewed {
            return life.iter().map(pair).collect();
        }
        let from = random.below(life.len());
        life.iter().cycle().skip(from).take(RUN).map(pair).collect()
    }
}

/// One experiment, looked at ever more seldom as the engine does.
fn experiment(noise: &Noise, effect: f64, draws: Draws, random: &mut Random) -> Option<Estimate> {
    let recorded = noise.lives.iter().map(Vec::len).sum::<usize>().max(LEAST_PAIRS);
    let mut drawn = Lives { pairs: Vec::new(), renewed: noise.renewed };
    let (mut count, mut look) = (0, LEAST_RECORDED);
    loop {
        while count < look.min(recorded) {
            let mut run = noise.draw(effect, random);
            run.truncate(recorded - count);
            count += run.len();
            drawn.pairs.push(run);
        }
        let few = noise.renewed && drawn.pairs.len() < LEAST_LIVES && count < recorded;
        if !few {
            let estimate = drawn.estimate()?;
            if estimate.half_width() <= draws.half_width || count >= recorded {
                return Some(estimate);
            }
        }
        look = count + (count / 10).max(5);
    }
}

/// The table for people.
#[must_use]
pub fn sheet(all: &[Trust], draws: Draws) -> Sheet {
    let percent = |share: f64| (share * 1e6).round() / 1e4;
    let found = format!("{:+} % found", percent(draws.plant));
    let columns = [
        ("what", 0, false),
        ("setting", 0, false),
        ("pairs", 0, true),
        ("holds 1", 0, true),
        ("false finds", 0, true),
        (found.as_str(), 0, true),
        ("holds it", 1, true),
        ("±", 0, true),
    ];
    let mut sheet = Sheet::new("Experiments drawn from recorded noise", &columns);
    let mut by_width: Vec<&Trust> = all.iter().collect();
    by_width.sort_by(|a, b| a.half_width.total_cmp(&b.half_width));
    for trust in by_width {
        let share = |count: usize| {
            let share = 100.0 * count as f64 / trust.repeats as f64;
            Cell::number(format!("{share:.1} %"), share)
        };
        sheet.push(vec![
            trust.subject.clone().into(),
            trust.setting.clone().into(),
            Cell::number(trust.recorded.to_string(), trust.recorded as f64),
            share(trust.held),
            share(trust.ranked),
            share(trust.found),
            share(trust.held_planted),
            Cell::number(format!("{:.1} %", 100.0 * trust.half_width), trust.half_width),
        ]);
    }
    sheet.notes.push(format!(
        "{} experiments of each kind, of rounds drawn by eight neighbours from the recorded ones, whose median was taken out: \
         the truth is known. Each was looked at and ended as the engine does it, within ±{} % or when it had as many pairs as \
         were recorded. An interval should hold the truth in 95 %.",
        draws.repeats,
        percent(draws.half_width)
    ));
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: Draws = Draws { repeats: 400, plant: 0.02, half_width: 0.01 };

    fn names() -> (String, String) {
        ("one".to_owned(), "other".to_owned())
    }

    /// Pairs with a ratio of their own, whose noise has a heavy tail.
    fn recorded(count: usize, spread: f64) -> Vec<(f64, f64)> {
        let mut random = Random::new(7);
        let mut one = || {
            let noise = random.unit() + random.unit() - 1.0;
            let disturbed = if random.unit() < 0.1 { random.unit() * 10.0 } else { 0.0 };
            (spread * (noise + disturbed)).exp()
        };
        (0..count).map(|_| (3.0 * one(), one())).collect()
    }

    fn of_pairs(pairs: &[(f64, f64)], names: (String, String), draws: Draws) -> Option<Trust> {
        of_lives(&Lives { pairs: vec![pairs.to_vec()], renewed: false }, names, draws)
    }

    #[test]
    fn noise_that_is_small_enough_hides_no_planted_effect_and_shows_none_that_is_not_there() {
        let trust = of_pairs(&recorded(400, 0.05), names(), DRAWS).expect("pairs");
        assert!(trust.held >= 380 && trust.ranked < 20, "{trust:?}");
        assert!(trust.found >= 380 && trust.held_planted >= 380, "{trust:?}");
        assert_eq!(of_pairs(&recorded(400, 0.05), names(), DRAWS), Some(trust), "the same again");
    }

    #[test]
    fn noise_that_is_too_large_hides_the_effect_and_the_interval_says_so() {
        let trust = of_pairs(&recorded(40, 0.4), names(), DRAWS).expect("pairs");
        assert!(trust.held >= 380, "{trust:?}");
        assert!(trust.found < 100 && trust.half_width > 0.05, "{trust:?}");
        assert_eq!(of_pairs(&recorded(LEAST_RECORDED - 1, 0.1), names(), DRAWS), None);
    }

    #[test]
    fn lives_that_differ_hide_what_is_smaller_than_their_difference() {
        let mut random = Random::new(3);
        let mut bias = || 0.03 * (random.unit() + random.unit() - 1.0);
        let life =
            |bias: f64| recorded(40, 0.02).iter().map(|(a, b)| (a * bias.exp(), *b)).collect();
        let pairs: Vec<Vec<(f64, f64)>> = (0..24).map(|_| life(bias())).collect();
        let together = of_pairs(&pairs.concat(), names(), DRAWS).expect("pairs");
        let apart = of_lives(&Lives { pairs, renewed: true }, names(), DRAWS).expect("lives");
        assert!(apart.held >= 380 && apart.ranked < 20, "{apart:?}");
        assert!(apart.half_width > together.half_width, "{apart:?} {together:?}");
    }
}

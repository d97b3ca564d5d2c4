//! Boolean expressions that rules depend on.

use crate::BoolId;
use std::collections::BTreeSet;

/// A step of a boolean expression in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolStep {
    /// The state of a boolean.
    Bool(BoolId),
    /// Negates the last value.
    Not,
    /// Joins the last two values.
    And,
    /// Joins the last two values.
    Or,
    /// Joins the last two values.
    Xor,
    /// Joins the last two values.
    Eq,
    /// Joins the last two values.
    Neq,
}

/// The expression needs more values at once than an evaluator must keep, or is not an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a boolean expression is malformed or nested too deeply")]
pub struct ConditionTooDeep;

/// An expression over booleans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    steps: Vec<BoolStep>,
}

impl Condition {
    /// The most values that evaluation keeps at once.
    const DEPTH: usize = 64;

    /// The expression made of `steps`.
    ///
    /// # Errors
    ///
    /// [`ConditionTooDeep`] when the steps do not leave one value, or keep more than 64.
    pub fn new(steps: Vec<BoolStep>) -> Result<Self, ConditionTooDeep> {
        let mut depth = 0usize;
        for step in &steps {
            depth = match step {
                BoolStep::Bool(_) => depth + 1,
                BoolStep::Not if depth > 0 => depth,
                _ => depth.checked_sub(1).filter(|d| *d > 0).ok_or(ConditionTooDeep)?,
            };
            if depth > Self::DEPTH {
                return Err(ConditionTooDeep);
            }
        }
        if depth == 1 { Ok(Self { steps }) } else { Err(ConditionTooDeep) }
    }

    /// The steps, in postfix order.
    #[must_use]
    pub fn steps(&self) -> &[BoolStep] {
        &self.steps
    }

    /// The value for the given states of the booleans.
    #[must_use]
    pub fn holds(&self, states: &[bool]) -> bool {
        evaluate(&self.steps, |id| states.get(id.index()).copied().unwrap_or(false))
    }

    /// What the condition says, and whether it says it with a `not` around: conditions over the
    /// same few booleans that come to the same say the same. So libsepol joins the branches of
    /// conditions.
    #[must_use]
    pub fn meaning(&self) -> (Meaning, bool) {
        let (steps, inverted) = match &self.steps[..] {
            [inner @ .., BoolStep::Not] => (inner, true),
            steps => (steps, false),
        };
        let bools = steps.iter().filter_map(|step| match step {
            BoolStep::Bool(id) => Some(*id),
            _ => None,
        });
        let bools: BTreeSet<BoolId> = bools.collect();
        if bools.len() > Meaning::MOST {
            return (Meaning::Steps(steps.to_vec()), inverted);
        }
        let bools: Vec<BoolId> = bools.into_iter().collect();
        let value = |states: u32| {
            let state =
                |id| bools.iter().position(|b| *b == id).is_some_and(|n| states >> n & 1 == 1);
            u32::from(evaluate(steps, state)) << states
        };
        let table = (0..1 << bools.len()).map(value).sum();
        (Meaning::Table(bools, table), inverted)
    }
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Its value, bit by bit, for each state of its booleans.
    Table(Vec<BoolId>, u32),
    /// The expression, where there are too many booleans for that.
    Steps(Vec<BoolStep>),
}

impl Meaning {
    /// The most booleans of a table, as in libsepol.
    const MOST: usize = 5;
}

/// The value of an expression that [`Condition::new`] has accepted.
fn evaluate(steps: &[BoolStep], state: impl Fn(BoolId) -> bool) -> bool {
    // The values are the bits of one word, the last one lowest: `new` has bounded their number.
    let mut values = 0u64;
    for step in steps {
        if let BoolStep::Bool(id) = step {
            values = values << 1 | u64::from(state(*id));
            continue;
        }
        if *step == BoolStep::Not {
            values ^= 1;
            continue;
        }
        let (b, a) = (values & 1, values >> 1 & 1);
        let value = match step {
            BoolStep::And => a & b,
            BoolStep::Or => a | b,
            BoolStep::Eq => u64::from(a == b),
            _ => a ^ b,
        };
        values = (values >> 2) << 1 | value;
    }
    values & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use BoolStep::{And, Bool, Neq, Not, Or};

    #[test]
    fn malformed_expressions_are_refused() {
        for steps in [vec![], vec![And], vec![Not], vec![Bool(BoolId(0)), Bool(BoolId(1))]] {
            assert_eq!(Condition::new(steps), Err(ConditionTooDeep));
        }
        let deep = std::iter::repeat_n(Bool(BoolId(0)), 65).chain(std::iter::repeat_n(Or, 64));
        assert_eq!(Condition::new(deep.collect()), Err(ConditionTooDeep));
    }

    #[test]
    fn expressions_evaluate_as_written() {
        let steps = vec![Bool(BoolId(0)), Not, Bool(BoolId(1)), And, Bool(BoolId(2)), Neq];
        let condition = Condition::new(steps).unwrap();
        for bits in 0..8u32 {
            let [a, b, c] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
            assert_eq!(condition.holds(&[a, b, c]), (!a && b) != c);
        }
    }

    #[test]
    fn conditions_that_come_to_the_same_mean_the_same() {
        let meaning = |steps: &[BoolStep]| Condition::new(steps.to_vec()).unwrap().meaning();
        let (p, q) = (Bool(BoolId(7)), Bool(BoolId(2)));
        assert_eq!(meaning(&[p, q, And]), meaning(&[q, p, And]));
        assert_eq!(meaning(&[p, Not]).0, meaning(&[p]).0);
        assert_ne!(meaning(&[p, Not]).1, meaning(&[p]).1);
        assert_ne!(meaning(&[p, q, And]).0, meaning(&[p, q, Or]).0);
        assert_ne!(meaning(&[p]).0, meaning(&[q]).0);
    }
}

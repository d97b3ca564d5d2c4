//! Constraints: expressions over two or three contexts that take permissions away.

use super::{Context, Range};
use crate::BitSet;
use std::sync::Arc;

/// Which context an operand is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The subject (`u1`), or the old context in a `validatetrans`.
    Source,
    /// The object (`u2`), or the new context in a `validatetrans`.
    Target,
    /// The process that relabels (`u3`), in a `validatetrans` only.
    Process,
}

/// Which part of a context is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// The user.
    User,
    /// The role.
    Role,
    /// The type.
    Type,
}

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Neq,
    /// The first dominates the second.
    Dom,
    /// The second dominates the first.
    DomBy,
    /// Neither dominates the other.
    Incomp,
}

/// The two levels that are compared: `l` low and `h` high, 1 of the source and 2 of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelPair {
    /// `l1` and `l2`.
    L1L2,
    /// `l1` and `h2`.
    L1H2,
    /// `h1` and `l2`.
    H1L2,
    /// `h1` and `h2`.
    H1H2,
    /// `l1` and `h1`.
    L1H1,
    /// `l2` and `h2`.
    L2H2,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A part of the source against the same part of the target.
    Symbols(Symbol, Comparison),
    /// Two levels.
    Levels(LevelPair, Comparison),
    /// Whether a part of a context is one of `set` (or, `negated`, is not).
    Names {
        /// The context.
        subject: Subject,
        /// The part.
        symbol: Symbol,
        /// Whether the part must not be in the set.
        negated: bool,
        /// Numbers of users, roles or types.
        set: BitSet,
    },
}

/// A step of a constraint in postfix order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A comparison.
    Test(Expr),
    /// Negates the last value.
    Not,
    /// Joins the last two values.
    And,
    /// Joins the last two values.
    Or,
}

/// Takes `perms` away where `program` does not hold.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The permissions; all of them for a `validatetrans`.
    pub perms: u32,
    /// The condition under which the permissions stay.
    pub program: Program,
    /// Where it was written.
    pub place: Option<super::SourceLine>,
}

/// The steps are malformed or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a constraint expression is malformed or nested too deeply")]
pub struct ConstraintTooDeep;

/// An instruction of a compiled constraint. One flag holds the value so far.
#[derive(Clone, Debug)]
enum Op {
    /// Sets the flag.
    Test(Expr),
    /// Negates the flag.
    Not,
    /// Goes on `skip` instructions further if the flag has value `when`: the operand there cannot
    /// change it.
    SkipIf { when: bool, skip: u32 },
}

/// A constraint's expression, compiled so that operands which cannot change the result are skipped.
#[derive(Clone, Debug)]
pub struct Program {
    // Constraints of many classes share one.
    steps: Arc<[Step]>,
    ops: Arc<[Op]>,
}

impl Program {
    /// The most operands that may be pending at once.
    const DEPTH: usize = 64;

    /// Compiles an expression in postfix order.
    ///
    /// # Errors
    ///
    /// [`ConstraintTooDeep`] when the steps do not leave one value, or keep more than 64.
    pub fn new(steps: Vec<Step>) -> Result<Self, ConstraintTooDeep> {
        let mut pending: Vec<Vec<Op>> = Vec::new();
        for step in &steps {
            match step {
                Step::Test(expr) => pending.push(vec![Op::Test(expr.clone())]),
                Step::Not => pending.last_mut().ok_or(ConstraintTooDeep)?.push(Op::Not),
                Step::And | Step::Or => {
                    let second = pending.pop().ok_or(ConstraintTooDeep)?;
                    let first = pending.last_mut().ok_or(ConstraintTooDeep)?;
                    first.push(Op::SkipIf { when: *step == Step::Or, skip: second.len() as u32 });
                    first.extend(second);
                }
            }
            if pending.len() > Self::DEPTH {
                return Err(ConstraintTooDeep);
            }
        }
        match (pending.pop(), pending.is_empty()) {
            (Some(ops), true) => Ok(Self { steps: steps.into(), ops: ops.into() }),
            _ => Err(ConstraintTooDeep),
        }
    }

    /// The steps that it was compiled from.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the expression holds for the three contexts. `dominates` tells which roles a role
    /// dominates.
    #[must_use]
    pub fn holds(&self, contexts: &Contexts<'_>) -> bool {
        let mut flag = false;
        let mut next = 0;
        while let Some(op) = self.ops.get(next) {
            next += 1;
            match op {
                Op::Test(expr) => flag = expr.holds(contexts),
                Op::Not => flag = !flag,
                Op::SkipIf { when, skip } if *when == flag => next += *skip as usize,
                Op::SkipIf { .. } => {}
            }
        }
        flag
    }
}

/// What a constraint is evaluated over.
#[derive(Clone, Copy, Debug)]
pub struct Contexts<'a> {
    /// The subject, or the old context.
    pub source: &'a Context,
    /// The object, or the new context.
    pub target: &'a Context,
    /// The process that relabels, if any.
    pub process: Option<&'a Context>,
    /// The policy, for role dominance.
    pub policy: &'a super::Policy,
}

impl Expr {
    fn holds(&self, contexts: &Contexts<'_>) -> bool {
        match self {
            Self::Symbols(symbol, comparison) => symbols(contexts, *symbol, *comparison),
            Self::Levels(pair, comparison) => levels(contexts, *pair, *comparison),
            Self::Names { subject, symbol, negated, set } => {
                let context = match subject {
                    Subject::Source => Some(contexts.source),
                    Subject::Target => Some(contexts.target),
                    Subject::Process => contexts.process,
                };
                context.is_some_and(|c| set.contains(part(c, *symbol)) != *negated)
            }
        }
    }
}

fn part(context: &Context, symbol: Symbol) -> usize {
    match symbol {
        Symbol::User => context.user.index(),
        Symbol::Role => context.role.index(),
        Symbol::Type => context.type_.index(),
    }
}

fn symbols(contexts: &Contexts<'_>, symbol: Symbol, comparison: Comparison) -> bool {
    let (a, b) = (part(contexts.source, symbol), part(contexts.target, symbol));
    let dominates = |a: usize, b: usize| {
        let role = contexts.policy.roles.get_index(a);
        symbol == Symbol::Role && role.is_some_and(|(_, role)| role.dominates.contains(b))
    };
    match comparison {
        Comparison::Eq => a == b,
        Comparison::Neq => a != b,
        Comparison::Dom => dominates(a, b),
        Comparison::DomBy => dominates(b, a),
        Comparison::Incomp => !dominates(a, b) && !dominates(b, a),
    }
}

fn levels(contexts: &Contexts<'_>, pair: LevelPair, comparison: Comparison) -> bool {
    let ranges = (contexts.source.range.as_deref(), contexts.target.range.as_deref());
    let (Some(r1), Some(r2)): (Option<&Range>, Option<&Range>) = ranges else { return false };
    let (a, b) = match pair {
        LevelPair::L1L2 => (&r1.low, &r2.low),
        LevelPair::L1H2 => (&r1.low, &r2.high),
        LevelPair::H1L2 => (&r1.high, &r2.low),
        LevelPair::H1H2 => (&r1.high, &r2.high),
        LevelPair::L1H1 => (&r1.low, &r1.high),
        LevelPair::L2H2 => (&r2.low, &r2.high),
    };
    match comparison {
        Comparison::Eq => a == b,
        Comparison::Neq => a != b,
        Comparison::Dom => a.dominates(b),
        Comparison::DomBy => b.dominates(a),
        Comparison::Incomp => !a.dominates(b) && !b.dominates(a),
    }
}

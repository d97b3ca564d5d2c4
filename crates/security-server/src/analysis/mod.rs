//! Questions about a policy as a whole: what `dewar policy check`, `query` and `diff` answer.

mod bounds;
mod diff;
mod facts;
mod matching;
mod neverallow;
mod query;

pub use bounds::Excess;
pub use diff::{Differences, FactChange, How, RuleChange, diff};
pub use facts::SECTIONS;
pub use neverallow::Violation;
pub use query::{MatchingRule, Query, QueryError, Which};

//! Questions about a policy as a whole: what `dewar policy check`, `query` and `diff` answer.

mod diff;
mod neverallow;
mod query;

pub use diff::{Change, diff};
pub use neverallow::Violation;
pub use query::{Found, Query, QueryError, Which};

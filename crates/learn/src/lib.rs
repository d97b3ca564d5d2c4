//! From decisions that were made to the lines of a profile that would grant them.
//!
//! ```text
//!  decisions ──▶ Judge ──▶ Need ──▶ Line ──▶ settle ──▶ Edit
//!  of a run      what a     files,    places     each line    the text of
//!                profile    hosts     of a kind  needed,      a profile,
//!                lacks                           none lacking comments kept
//! ```
//!
//! [`Judge`] is the one reading of "does this profile grant that": the same labels and the same
//! security server as in a run. [`Secrets`] is what no line ever covers unless a person names it.
//! `dewar learn`, `dewar allow` and `dewar explain --toml` are made of these.
#![forbid(unsafe_code)]

mod access;
mod domains;
mod edit;
mod executed;
mod fragment;
mod glob;
mod judge;
mod line;
mod names;
mod need;
mod passing;
mod place;
mod powers;
mod said;
mod search;
mod secrets;
mod settle;
mod widening;
mod within;

pub use access::{Access, copies};
pub use domains::{OwnDomain, as_in, standing_out};
pub use edit::{Edit, EditError};
pub use executed::{holds_trusted, names_of_home};
pub use fragment::{Endpoint, FragmentError, covers_secret, fragment};
pub use judge::{Judge, JudgeError};
pub use line::{Addresses, Line, lines};
pub use names::{is_made_up, temporary};
pub use need::{Need, What, need};
pub use place::{Detail, Scope, literal};
pub use powers::{Power, powers};
pub use said::{Answer, Request, answer, request};
pub use secrets::{FoundSecrets, Secrets};
pub use settle::{Settled, needs, settle, shares_loopback};
pub use widening::{Widening, widening};
pub use within::Bound;

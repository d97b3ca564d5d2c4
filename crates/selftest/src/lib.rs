//! `dewar selftest`: does the wall hold, here, today?
//!
//! ```text
//!  Case ── outside(stage) ─▶ stage: home, workspace, secrets, witnesses, victims
//!    │                          │
//!    └─ attack(scene) ◀─ runs ─ wall: none │ dewar run │ a peer
//!                               │
//!                            judge: looks outside ─▶ Verdict
//! ```
//!
//! A [`Case`](case::Case) is an attack with its judge. The attack runs inside the sandbox, as this
//! program called with [`ATTACK`]; the judge stays outside and believes nothing that the attack
//! says: a secret counts as read when the random word that only the judge knew comes out, a message
//! as sent when the witness has it.

mod attack;
pub mod case;
pub mod cases;
mod outside;
mod scene;
pub mod session;
mod stage;
mod sys;
pub mod verdict;
pub mod wall;

pub use attack::{is_attack, run_attack};
pub use scene::ATTACK;

//! A ratio or an amount with its interval, as figures show it.

use serde::{Deserialize, Serialize};

/// A ratio, or an amount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bar {
    /// What the bars of a group have in common; bars of a group lie together.
    pub group: String,
    /// Its own name; bars of one name have one colour.
    pub name: String,
    /// The ratio, or the amount.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

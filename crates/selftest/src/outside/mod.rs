//! What cases aim at, outside: witnesses that hear, victims that are to stay as they are, and how
//! judges look.

pub(crate) mod look;
pub(crate) mod victim;
pub(crate) mod witness;

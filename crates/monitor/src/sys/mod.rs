//! Raw system calls: the only place of this crate with `unsafe`.

pub(crate) mod launch;

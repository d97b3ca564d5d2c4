//! The warning of programs that enter a domain and can be exchanged by whoever enters it by them.

use crate::output::tell;
use monitor::visible;
use profile::{Compiled, OpenGate};

/// Warns of each such program of a profile, on standard error.
pub(crate) fn warn(compiled: &Compiled) {
    for OpenGate { domain, from, program, grant } in &compiled.open_gates {
        tell!(
            "dewar: WARNING: `{from}` may write, replace or rename what enters the domain `{domain}` ({}), by {}: so it has the \
             rights of `{domain}` as well. Take it out of reach: `files.readonly` for the program, or a program elsewhere",
            visible(&program.to_string()),
            visible(&grant.to_string())
        );
    }
}

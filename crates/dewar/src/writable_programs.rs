//! The warning of programs that enter a domain and can be exchanged by whoever enters it by them.

use crate::output::tell;
use monitor::visible;
use profile::{Compiled, Documents, OpenGate, Origin, Source};
use std::path::Path;

/// Warns of each such program of a profile, on standard error.
pub(crate) fn warn(compiled: &Compiled) {
    let is_told = |gate: &&OpenGate| !is_shipped(&gate.program, &gate.grant);
    for OpenGate { domain, from, program, grant } in compiled.open_gates.iter().filter(is_told) {
        tell!(
            "dewar: WARNING: `{from}` may write, replace or rename what enters the domain `{domain}` ({}), by {}: so it has the \
             rights of `{domain}` as well. Take it out of reach: `files.readonly` for the program, or a program elsewhere",
            visible(&program.to_string()),
            visible(&grant.to_string())
        );
    }
}

/// Warns of each domain of a file that nothing enters, as none of the programs is there that the
/// file names for it.
pub(crate) fn warn_unentered(compiled: &Compiled, documents: &Documents) {
    for (domain, programs) in unentered(compiled, documents) {
        tell!(
            "dewar: WARNING: nothing enters the domain `{domain}`: {} is not there",
            visible(&programs.join(", "))
        );
    }
}

fn unentered<'a>(compiled: &'a Compiled, documents: &Documents) -> Vec<(&'a str, &'a [String])> {
    let texts = documents.texts();
    let is_own = |program: &String| {
        let mut own = texts.iter().filter(|(file, _)| !file.starts_with("profile "));
        own.any(|(_, text)| text.contains(program.as_str()))
    };
    let is_missing = |program: &String| {
        let is_path = program.starts_with('/') && !program.contains(['*', '?', '[', '{', '\\']);
        is_path && is_own(program) && Path::new(program).symlink_metadata().is_err()
    };
    let others = compiled.domains.iter().skip(1).filter(|domain| !domain.programs.is_empty());
    let unentered = others.filter(|domain| domain.programs.iter().all(is_missing));
    unentered.map(|domain| (domain.name.as_str(), &*domain.programs)).collect()
}

/// Whether a shipped profile by itself lets the program be written that it names, as `npm` does
/// with packages' own: there, the domain is for what may be written, and whoever extends the
/// profile can take nothing out of reach.
fn is_shipped(program: &Origin, grant: &Origin) -> bool {
    let Some(name) = program.file.strip_prefix("profile ") else { return false };
    let documents = Documents::read(&Source::Shipped(name.to_owned()));
    documents.is_ok_and(|it| it.texts().iter().any(|(file, _)| *file == grant.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_silent_where_one_shipped_profile_has_it_by_itself() {
        let at = |file: &str| Origin { file: file.into(), line: 1, column: 1, text: String::new() };
        for (program, grant, is) in [
            ("profile npm", "profile workspace", true),
            ("profile go", "profile build", false),
            ("profile npm", "./own.toml", false),
            ("./own.toml", "profile workspace", false),
        ] {
            assert_eq!(is_shipped(&at(program), &at(grant)), is, "{program} {grant}");
        }
    }
}

//! Programs that are called like one of a domain, and lie where the profile does not look for it:
//! they stay in the domain of whoever starts them, and lack what theirs has.

use crate::{fitting::Fitting, names::asks_for_names};
use learn::{Access, Judge, Line};
use monitor::Record;
use profile::{Compiled, Domain};
use std::path::Path;

/// The line by which the program that was denied something enters the domain that has it; `None`
/// where there is none, or where a run could put another program in its place.
pub(crate) fn entry(
    (record, access): (&Record, &Access),
    (fitting, compiled, judge): (&Fitting, &Compiled, &Judge),
) -> Option<Line> {
    let program = Path::new(&record.program);
    let name = program.file_name()?.to_str()?;
    let own = flask::domain_of(&record.scontext);
    let is_its = |domain: &&Domain| {
        let enters = domain.from.as_ref().is_none_or(|from| from.iter().any(|it| it == own));
        let is_called = |program: &String| program.rsplit('/').next() == Some(name);
        domain.name != own && enters && domain.programs.iter().any(is_called)
    };
    // Of the first domain, programs are those that enter no other.
    let mut others = compiled.domains.iter().skip(1).filter(is_its);
    let domain = others.find(|domain| has(domain, (record, access), judge))?;
    if program.ancestors().any(|path| judge.is_writable(path)) {
        return None;
    }
    Some(Line {
        domain: Some(domain.name.clone()),
        key: "exec".into(),
        value: fitting.scope.text(program),
        ..Line::default()
    })
}

/// Whether a domain has what another was denied. Its hosts may have other addresses by now.
fn has(domain: &Domain, (record, access): (&Record, &Access), judge: &Judge) -> bool {
    let sockets = ["endpoint", "tcp_socket", "udp_socket"];
    if sockets.contains(&record.tclass.as_str()) || asks_for_names(record) {
        return !domain.connect.is_empty();
    }
    let scontext = record.scontext.replace(flask::type_of(&record.scontext), &domain.type_name);
    judge.missing(&Access { scontext, ..access.clone() }).is_empty()
}

/// What is said of such a line.
pub(crate) fn told(line: &Line) -> Option<String> {
    let domain = line.domain.as_ref().filter(|_| is_entry(line))?;
    Some(format!(
        "so it runs in the domain {domain}, which has what was denied; nothing else gets that"
    ))
}

/// Whether a line names a program that enters a domain.
pub(crate) fn is_entry(line: &Line) -> bool {
    line.key == "exec" && line.domain.is_some()
}

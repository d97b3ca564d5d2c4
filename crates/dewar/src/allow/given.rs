//! Lines of a profile, given to a running sandbox.

use crate::{
    control::{Request, Run},
    failure::Failed,
    proposal::Proposal,
    receipt,
};
use anyhow::bail;
use learn::Line;
use monitor::{RevokeMode, visible};
use profile::{AmendedObject, Amendment, AmendmentKind};

/// Gives what is proposed to a running sandbox; says at the end if some of it was not given.
pub(super) fn give(mut run: Run, proposal: &Proposal<'_>) -> anyhow::Result<()> {
    let mut failed = None;
    for line in &proposal.lines {
        if let Err(error) = give_line(&mut run, line, proposal) {
            // What another line says is not for this one to keep back.
            if !error.is::<Failed>() {
                return Err(error);
            }
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn give_line(run: &mut Run, line: &Line, proposal: &Proposal<'_>) -> anyhow::Result<()> {
    let Some(amendment) = amendment(line, proposal) else {
        bail!(Failed(format!(
            "`{}` cannot be given to a running sandbox; --write puts it into a profile for the next",
            visible(&line.alone())
        )));
    };
    let change = run.change(Request::Amend(amendment, RevokeMode::Repair))?;
    receipt::print(&change, false)
}

/// An endpoint of a profile, where no protocol is TCP, for an amendment, where it is any.
pub(crate) fn one_protocol(endpoint: String) -> String {
    match endpoint.ends_with("/udp") || endpoint.ends_with("/tcp") {
        true => endpoint,
        false => endpoint + "/tcp",
    }
}

/// What gives a line to its domain alone, in a running sandbox; `None` if nothing does.
pub(crate) fn amendment(line: &Line, proposal: &Proposal<'_>) -> Option<Amendment> {
    let value = line.value.clone();
    let object = match line.key.as_str() {
        "files.read" => AmendedObject::Files(value),
        "files.write" => AmendedObject::Write(value),
        "network.connect" => match value.strip_prefix("unix:") {
            Some(name) => AmendedObject::Unix(name.to_owned()),
            None if value.starts_with("unixgram:") || proposal.is_offline => return None,
            None => {
                let (addresses, endpoint) = (proposal.addresses(&value), one_protocol(value));
                AmendedObject::Network { endpoint, addresses }
            }
        },
        // What can be executed was settled when the run started.
        _ => return None,
    };
    // Without a name, an amendment is about all domains; a line without one is about the first.
    let domain = Some(line.domain.clone().unwrap_or_else(|| "main".into()));
    Some(Amendment::new(AmendmentKind::Grant, domain, object))
}

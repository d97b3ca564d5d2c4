//! What a program inside proposes, looked at from outside: whether it may be proposed at all, and
//! what it would grant.

use super::error::AskError;
use crate::{allow::one_protocol, fitting::Fitting, machine, run::is_trusted_outside};
use learn::{Judge, Line, Widening, covers_secret, widening};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled};
use rustix::io::Errno;
use std::{
    io,
    net::{IpAddr, UdpSocket},
    path::Path,
};

/// A proposal that may be granted.
pub(super) struct Proposed {
    /// What gives it to the running sandbox. Names of hosts have no addresses yet.
    pub(super) amendments: Vec<Amendment>,
    /// The profile with that.
    pub(super) amended: Compiled,
    /// What it grants that exists already.
    pub(super) also: Widening,
}

impl Proposed {
    /// # Errors
    ///
    /// Why not, for the program inside.
    pub(super) fn of(fitting: &Fitting, lines: &[Line]) -> Result<Self, AskError> {
        // What is wrong in the profile is not for the program.
        let failed = |_: anyhow::Error| AskError::Unjudged;
        let current = fitting.compile(&[]).map_err(failed)?;
        let is_file = |line: &&Line| line.key.starts_with("files.");
        let files: Vec<Line> = lines.iter().filter(is_file).cloned().collect();
        let offline = current.domains.iter().all(profile::Domain::is_offline);
        if files.len() < lines.len() && offline {
            return Err(AskError::Offline);
        }
        let old = Judge::new(&current).map_err(|error| failed(error.into()))?;
        if covers_secret(lines, &fitting.scope) || files.iter().any(|it| is_kept(it, &old, fitting))
        {
            return Err(AskError::Secret);
        }
        // Of files alone: a name server would hear of every host that is proposed.
        let new = fitting.judge(&files).map_err(failed)?;
        let also = widening(&files, (&old, &new), &fitting.scope, &[]);
        if !also.secrets.is_empty() || also.more {
            return Err(AskError::Secret);
        }
        let amendments: Vec<Amendment> = lines.iter().map(amendment).collect();
        let amended = fitting.amended(&amendments).map_err(failed)?;
        Ok(Self { amendments, amended, also })
    }
}

/// Whether a person has said already who gets that: by the profile, or because others trust it.
fn is_kept(line: &Line, judge: &Judge, fitting: &Fitting) -> bool {
    let Some(path) = fitting.scope.path(&line.value) else { return true };
    let touches = |own: &Path| own.starts_with(&path) || path.starts_with(own);
    let writes = line.key == "files.write";
    let variables = &fitting.variables;
    judge.withholds(&path, line.domain.as_deref())
        || variables.kept.iter().any(|own| touches(own))
        || writes && variables.fixed.iter().any(|own| touches(own))
        || writes && is_trusted_outside(&path, &fitting.scope)
}

fn amendment(line: &Line) -> Amendment {
    let value = line.value.clone();
    let object = match line.key.as_str() {
        "files.read" => AmendedObject::Files(value),
        "files.write" => AmendedObject::Write(value),
        _ => AmendedObject::Network { endpoint: one_protocol(value), addresses: Vec::new() },
    };
    // Without a name, an amendment is about all domains; a line without one is about the first.
    let domain = Some(line.domain.clone().unwrap_or_else(|| "main".into()));
    Amendment::new(AmendmentKind::Grant, domain, object)
}

/// The same, with the addresses of names: looked up only when it is granted.
///
/// # Errors
///
/// A name has none, or leads to this machine or its link, which its name does not say.
pub(super) fn addressed(amendments: &[Amendment]) -> Result<Vec<Amendment>, AskError> {
    let mut all = amendments.to_vec();
    for amendment in &mut all {
        let Some(name) = amendment.host() else { continue };
        let AmendedObject::Network { addresses, .. } = &mut amendment.object else { continue };
        if addresses.is_empty() {
            *addresses = machine::resolve_one(&name)
                .map_err(|why| AskError::NoAddress { name: name.clone(), why })?;
            let mut near = addresses.iter().filter(|address| is_near(address.to_canonical()));
            if let Some(&address) = near.next() {
                return Err(AskError::Near { name, address });
            }
        }
    }
    Ok(all)
}

/// Whether an address is one of this machine, or of what is on its link.
fn is_near(address: IpAddr) -> bool {
    let is_near = match address {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    is_near
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || is_own(address)
}

/// Whether an address is one of this machine: a socket can have it. In doubt, it is.
fn is_own(address: IpAddr) -> bool {
    let not_own = [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT];
    let of_another =
        |error: &io::Error| not_own.iter().any(|it| Errno::from_io_error(error) == Some(*it));
    !UdpSocket::bind((address, 0)).is_err_and(|error| of_another(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_server_hears_of_what_is_proposed() {
        let variables = machine::variables(None, "/tmp".into()).unwrap();
        let text = "extends = 'workspace'\nnetwork.connect = ['192.0.2.1:443']\n".to_owned();
        let fitting = Fitting::of(text, "p.toml".into(), "/".into(), variables).unwrap();
        let text = "network.connect = ['what-is-known.example.org:443']";
        let lines = learn::fragment(text, None).unwrap();
        let proposed = Proposed::of(&fitting, &lines).unwrap();
        assert_eq!(proposed.amendments.len(), 1);
        assert_eq!(fitting.looked_up(), [""; 0]);
    }

    #[test]
    fn a_name_that_leads_to_this_machine_is_not_taken_for_a_host() {
        for (address, near) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("fe80::1", true),
            ("198.51.100.1", false),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(is_near(ip.to_canonical()), near, "{address}");
        }
        // Whatever this machine is called, where it has a way to others.
        let way = UdpSocket::bind("0.0.0.0:0").unwrap();
        if way.connect("192.0.2.1:9").is_ok() {
            assert!(is_near(way.local_addr().unwrap().ip()), "{way:?}");
        }
    }
}

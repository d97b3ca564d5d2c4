//! Whether a profile grants what a run asked for.

use crate::access::{Access, is_file};
use flask::{
    AccessVector, Class, FileKind, FileRule, InitialSid, Protocol, Question, SecurityServer as _,
    Sid,
};
use labelling::{Networks, PathRules, stem_dir};
use profile::{Compiled, PathRights};
use security_server::Server;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// Why a profile cannot be judged by.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The compiler of profiles has made a policy that the security server does not take.
    #[error("its policy is unusable: {0}")]
    Policy(#[from] security_server::PolicyErrors),
    /// A labelling rule is no regular expression.
    #[error("its labelling rules are unusable: {0}")]
    Rules(#[from] labelling::BadRule),
    /// The security server does not answer.
    #[error(transparent)]
    Unreachable(#[from] flask::Unreachable),
}

/// A profile that is asked without a sandbox: its policy, and the labels that it gives.
pub struct Judge {
    server: Server,
    labels: PathRules,
    networks: Networks,
    /// Rules of [`Compiled::paths`], by index.
    places: PathRules,
    rights: Vec<Vec<PathRights>>,
    withheld: Vec<Vec<bool>>,
    /// Where each of them lies: the path, or the directory around all of a pattern.
    tops: Vec<PathBuf>,
    /// [`Compiled::temporary`].
    temporary: Vec<PathBuf>,
    domains: Vec<String>,
}

impl Judge {
    /// A judge by `compiled`.
    ///
    /// # Errors
    ///
    /// [`JudgeError`] if its policy cannot be used.
    pub fn new(compiled: &Compiled) -> Result<Self, JudgeError> {
        let server = Server::from_cil(&[("policy", compiled.cil.as_str())])?;
        let rules = server.label_rules()?;
        let place = |rule: &profile::PathRule| FileRule {
            path: rule.regex.clone(),
            kind: FileKind::Any,
            sid: None,
        };
        let places: Vec<FileRule> = compiled.paths.iter().map(place).collect();
        Ok(Self {
            labels: PathRules::new(&rules.files)?,
            networks: Networks::new(&rules),
            places: PathRules::new(&places)?,
            rights: compiled.paths.iter().map(|path| path.rights.clone()).collect(),
            withheld: compiled.paths.iter().map(|path| withheld(compiled, path)).collect(),
            tops: compiled.paths.iter().map(top).collect(),
            temporary: compiled.temporary.clone(),
            domains: compiled.domains.iter().map(|domain| domain.name.clone()).collect(),
            server,
        })
    }

    /// What of an access the profile does not grant, by the names of permissions. All of it, if
    /// subject or object mean nothing to the profile.
    #[must_use]
    pub fn missing(&self, access: &Access) -> Vec<String> {
        let all = || access.requested.clone();
        let Some(class) = Class::by_name(&access.tclass) else { return all() };
        let Ok(ssid) = self.server.context_to_sid(&access.scontext) else { return all() };
        // What is taken out of a directory is asked about by itself: its name may be granted alone.
        if class == Class::Dir && access.wants("remove_name") {
            return Vec::new();
        }
        let Some(tsid) = self.label(access, class) else { return all() };
        let missing = self.denied(Question { ssid, tsid, tclass: class }, &access.requested);
        let is_new = class == Class::Dir && access.wants("add_name");
        if is_new && !missing.is_empty() && self.owns_name(access, ssid, tsid) {
            return Vec::new();
        }
        missing
    }

    /// What a domain may do with a path of the machine; `None` for the base domain.
    #[must_use]
    pub fn rights(&self, path: &Path, domain: Option<&str>) -> PathRights {
        let rule = self.rule(path, domain).filter(|(rule, _)| self.is_about(*rule, path));
        rule.map(|(rule, domain)| self.rights[rule][domain]).unwrap_or_default()
    }

    /// Whether a rule speaks of a path as the machine has it. Where a run has directories of its
    /// own for temporary files, a path in one is the machine's only by a rule that lies in it, too.
    fn is_about(&self, rule: usize, path: &Path) -> bool {
        let lies_in =
            |path: &Path, directory: &Path| path.starts_with(directory) && path != directory;
        let mut around = self.temporary.iter().filter(|directory| lies_in(path, directory));
        around.all(|directory| lies_in(&self.tops[rule], directory))
    }

    /// Whether it is a directory of which a run may have its own, or has one in it.
    pub(crate) fn holds_own(&self, path: &Path) -> bool {
        self.temporary.iter().any(|directory| directory.starts_with(path))
    }

    /// Whether a line of the profile denies or hides a path; `None` for the base domain. What the
    /// profile says nothing about is not withheld.
    #[must_use]
    pub fn withholds(&self, path: &Path, domain: Option<&str>) -> bool {
        self.rule(path, domain).is_some_and(|(rule, domain)| self.withheld[rule][domain])
    }

    /// The rule that decides a path, and the index of the domain.
    fn rule(&self, path: &Path, domain: Option<&str>) -> Option<(usize, usize)> {
        let domain = domain.unwrap_or("main");
        let domain = self.domains.iter().position(|name| name == domain)?;
        Some((self.places.rule(path, FileKind::Any)?, domain))
    }

    /// Whether some domain may write to a path.
    #[must_use]
    pub fn is_writable(&self, path: &Path) -> bool {
        let rule = self.places.rule(path, FileKind::Any).filter(|rule| self.is_about(*rule, path));
        rule.is_some_and(|rule| self.rights[rule].iter().any(|rights| rights.write))
    }

    /// Whether a domain may connect or send to `address`, which is a path, `@NAME` or
    /// `ADDRESS:PORT`; `None` for the base domain.
    #[must_use]
    pub fn reaches(&self, address: &str, domain: Option<&str>) -> bool {
        let scontext = format!("dewar_u:dewar_r:{}_t", domain.unwrap_or("main"));
        let asked = |tclass: &str, object: String, permission: &str| Access {
            tclass: tclass.into(),
            requested: vec![permission.into()],
            scontext: scontext.clone(),
            object,
            ..Access::default()
        };
        let asked = match address.starts_with(['/', '@']) {
            true => vec![
                asked("unix_stream_socket", format!("unix:{address}"), "connectto"),
                asked("unix_dgram_socket", format!("unix:{address}"), "sendto"),
            ],
            false => vec![asked("endpoint", address.to_owned(), "name_connect")],
        };
        asked.iter().any(|access| self.missing(access).is_empty())
    }

    fn denied(&self, question: Question, requested: &[String]) -> Vec<String> {
        let allowed = self.server.compute_av(question);
        let allowed = allowed.map_or(AccessVector::NONE, |decision| decision.allowed);
        let grants = |name: &&String| {
            let bit = question.tclass.permission(name);
            bit.is_some_and(|bit| bit.0 & !allowed.0 == 0)
        };
        requested.iter().filter(|name| !grants(name)).cloned().collect()
    }

    /// Whether the name of a new entry is granted by itself, whatever holds for its directory.
    fn owns_name(&self, access: &Access, ssid: Sid, directory: Sid) -> bool {
        let is_dir = access.call.starts_with("mkdir");
        let (class, kind, changes) = match is_dir {
            true => (Class::Dir, FileKind::Dir, ["create", "rmdir"]),
            false => (Class::File, FileKind::File, ["create", "unlink"]),
        };
        let tsid = self.labels.sid(Path::new(&access.object), kind);
        let question = Question { ssid, tsid, tclass: class };
        tsid != directory && self.denied(question, &changes.map(str::to_owned)).is_empty()
    }

    fn label(&self, access: &Access, class: Class) -> Option<Sid> {
        if is_file(class.name()) {
            let path = access.path()?;
            return Some(match access.wants("add_name") {
                true => self.labels.sid(path.parent().unwrap_or(path), FileKind::Dir),
                false => self.labels.sid(path, kind_of(class)),
            });
        }
        if class == Class::Endpoint {
            return self.endpoint(access);
        }
        if access.is_about_a_process() {
            return self.server.context_to_sid(&access.tcontext).ok();
        }
        let name = access.object.strip_prefix("unix:")?;
        let sid = self.labels.sid(Path::new(name), FileKind::Socket);
        let is_file = name.starts_with('/') || sid != InitialSid::File.into();
        Some(if is_file { sid } else { InitialSid::AnySocket.into() })
    }

    fn endpoint(&self, access: &Access) -> Option<Sid> {
        let (address, protocol) = endpoint(&access.object)?;
        let ip = if access.wants("name_bind") { address.ip() } else { reached(address.ip()) };
        let endpoint = (protocol, ip.to_canonical(), address.port());
        self.networks.endpoint(&self.server, endpoint).ok()
    }
}

fn top(rule: &profile::PathRule) -> PathBuf {
    rule.path.clone().unwrap_or_else(|| stem_dir(&rule.regex))
}

fn withheld(compiled: &Compiled, path: &profile::PathRule) -> Vec<bool> {
    let domains = compiled.domains.iter();
    domains.map(|it| compiled.withheld(&it.type_name, &path.type_name).is_some()).collect()
}

/// Address and protocol of an endpoint as records name it: `192.0.2.1:443`, `[::1]:53/udp`.
pub(crate) fn endpoint(object: &str) -> Option<(SocketAddr, Protocol)> {
    let (address, protocol) = match object.strip_suffix("/udp") {
        Some(address) => (address, Protocol::Udp),
        None => (object, Protocol::Tcp),
    };
    Some((address.parse().ok()?, protocol))
}

/// Whom the kernel reaches by an address: by none at all, this machine.
fn reached(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

fn kind_of(class: Class) -> FileKind {
    match class {
        Class::File => FileKind::File,
        Class::Dir => FileKind::Dir,
        Class::LnkFile => FileKind::Symlink,
        Class::ChrFile => FileKind::Char,
        Class::BlkFile => FileKind::Block,
        Class::FifoFile => FileKind::Pipe,
        Class::SockFile => FileKind::Socket,
        _ => FileKind::Any,
    }
}

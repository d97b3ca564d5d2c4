//! What a profile grants, as data: for `dewar policy show`.

use profile::{Compiled, Domain, EndpointRule, PathRule, Variables};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path};

/// The version of the document that `--json` prints.
pub(crate) const SCHEMA: &str = "dewar/profile/1";

/// All of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Grants {
    /// Which document this is, and in which version.
    pub(crate) schema: &'static str,
    /// The file, or `profile NAME`.
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// `all` or `fast`.
    pub(crate) mode: String,
    /// `content` or `strict`.
    pub(crate) hiding: String,
    /// Names that programs outside trust are looked after.
    pub(crate) guarded: bool,
    /// Programs inside may propose lines.
    pub(crate) proposes: bool,
    /// What `${workspace}` and `${home}` stand for.
    pub(crate) workspace: String,
    pub(crate) home: String,
    /// The first is the one in which a run starts.
    pub(crate) domains: Vec<DomainGrants>,
    pub(crate) environment: EnvironmentGrants,
    pub(crate) limits: LimitGrants,
}

/// What one domain may do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DomainGrants {
    pub(crate) name: String,
    pub(crate) files: Vec<FileGrant>,
    pub(crate) connect: Vec<EndpointGrant>,
    pub(crate) bind: Vec<EndpointGrant>,
    /// The run has a loopback of its own, and no other network.
    pub(crate) private_loopback: bool,
    /// It may bind ports of this machine's loopback, and connect to those that the run has bound.
    pub(crate) own_ports: bool,
    /// It may connect to some unix socket by name.
    pub(crate) unix_sockets: bool,
    /// Which: `unix:` or `unixgram:` with a path, `@NAME`, or a pattern of paths.
    pub(crate) unix_names: Vec<String>,
    /// It may ask the kernel by netlink, for example for interfaces and routes.
    pub(crate) netlink: bool,
    /// By which protocols.
    pub(crate) netlink_protocols: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    /// Programs that lead into another domain.
    pub(crate) entry_points: Vec<EntryPoint>,
}

/// Where in the file system something lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    /// Below the workspace, or for temporary files.
    Workspace,
    /// Below the home.
    Yours,
    System,
}

/// What may be done with the files of one pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FileGrant {
    /// A path, for itself and everything below; or a pattern as profiles write it.
    pub(crate) files: String,
    pub(crate) is_pattern: bool,
    pub(crate) group: Group,
    /// `hidden`, `denied`, `list`, or some of `r`, `w`, `x`.
    pub(crate) rights: String,
}

/// Hosts and ports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EndpointGrant {
    pub(crate) host: String,
    pub(crate) first_port: u16,
    pub(crate) last_port: u16,
    /// `tcp` or `udp`.
    pub(crate) protocol: String,
    /// Why the host has no address, if it was looked for.
    pub(crate) unresolved: Option<String>,
}

/// A way into another domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EntryPoint {
    pub(crate) program: String,
    pub(crate) domain: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EnvironmentGrants {
    /// Patterns of names that pass.
    pub(crate) pass: Vec<String>,
    /// Patterns of names that are kept out.
    pub(crate) drop: Vec<String>,
    pub(crate) set: BTreeMap<String, String>,
}

/// Bounds; `null` leaves the system's own.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LimitGrants {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) cpu_percent: Option<u64>,
    pub(crate) time_seconds: Option<f64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_size_bytes: Option<u64>,
}

impl Grants {
    /// Of a profile under `variables`.
    pub(crate) fn of(compiled: &Compiled, variables: &Variables) -> Self {
        let domains = compiled.domains.iter().enumerate();
        let limits = &compiled.limits;
        let rules = |passes| {
            let named = compiled.environment.rules().filter(move |(_, pass)| *pass == passes);
            named.map(|(name, _)| name.to_owned()).collect()
        };
        Self {
            schema: SCHEMA,
            name: compiled.name.clone(),
            description: compiled.description.clone(),
            mode: format!("{:?}", compiled.mode).to_lowercase(),
            hiding: format!("{:?}", compiled.hiding).to_lowercase(),
            guarded: compiled.guarded,
            proposes: compiled.proposes,
            workspace: variables.workspace.display().to_string(),
            home: variables.home.display().to_string(),
            domains: domains.map(|it| domain(compiled, variables, it)).collect(),
            environment: EnvironmentGrants {
                pass: rules(true),
                drop: rules(false),
                set: compiled.environment.set.clone(),
            },
            limits: LimitGrants {
                memory_bytes: limits.memory_bytes,
                processes: limits.processes,
                cpu_percent: limits.cpu_percent,
                time_seconds: limits.time.map(|time| time.as_secs_f64()),
                open_files: limits.files,
                file_size_bytes: limits.file_size_bytes,
            },
        }
    }
}

fn domain(
    compiled: &Compiled,
    variables: &Variables,
    (index, domain): (usize, &Domain),
) -> DomainGrants {
    // What a guard says of names is the same for every profile, and what is about links alone is
    // nobody's grant.
    let told = compiled.paths.iter().filter(|rule| !rule.by_name && !rule.is_way);
    let endpoints = |rules: &[EndpointRule]| {
        let mut all: Vec<EndpointGrant> = rules.iter().map(|it| endpoint(compiled, it)).collect();
        all.dedup();
        all
    };
    let mut files: Vec<FileGrant> = told.map(|rule| grant(rule, index, variables)).collect();
    files.sort_by(|a, b| a.files.cmp(&b.files));
    let entry_points = entry_points(compiled, &domain.type_name);
    // Executing them is granted, if only to leave the domain.
    files.retain(|file| entry_points.iter().all(|entry| entry.program != file.files));
    DomainGrants {
        name: domain.name.clone(),
        files,
        connect: endpoints(&domain.connect),
        bind: endpoints(&domain.bind),
        private_loopback: compiled.private_loopback == Some(true),
        own_ports: compiled.own_ports,
        unix_sockets: !domain.unix.is_empty(),
        unix_names: domain.unix.clone(),
        netlink: !domain.netlink.is_empty(),
        netlink_protocols: domain.netlink.clone(),
        capabilities: domain.capabilities.clone(),
        entry_points,
    }
}

fn grant(rule: &PathRule, domain: usize, variables: &Variables) -> FileGrant {
    let rights = rule.rights[domain];
    let letters = [(rights.read, 'r'), (rights.write, 'w'), (rights.exec, 'x')];
    let letters: String = letters.iter().filter(|(granted, _)| *granted).map(|(_, l)| *l).collect();
    let rights = match (rights.hidden, letters.is_empty(), rights.list) {
        (true, ..) => "hidden".to_owned(),
        (_, false, _) => letters,
        (.., true) => "list".to_owned(),
        _ => "denied".to_owned(),
    };
    let (files, is_pattern) = match &rule.path {
        Some(path) => (path.display().to_string(), false),
        None => (rule.glob.clone(), true),
    };
    FileGrant { group: group(&files, variables), files, is_pattern, rights }
}

fn group(files: &str, variables: &Variables) -> Group {
    // Of a pattern, its literal beginning says where.
    let path = Path::new(files.split(['[', '*', '?', '\\']).next().unwrap_or(files));
    let temporary = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|it| path.starts_with(it));
    if path.starts_with(&variables.workspace) || path.starts_with(&variables.tmp) || temporary {
        Group::Workspace
    } else if path.starts_with(&variables.home) {
        Group::Yours
    } else {
        Group::System
    }
}

fn endpoint(compiled: &Compiled, rule: &EndpointRule) -> EndpointGrant {
    let host = &compiled.hosts[rule.host];
    EndpointGrant {
        host: host.host.to_string(),
        first_port: rule.low,
        last_port: rule.high,
        protocol: format!("{:?}", rule.protocol).to_lowercase(),
        unresolved: host.error.clone(),
    }
}

/// The programs that lead out of the domain of type `from`, as the policy's own transitions say.
fn entry_points(compiled: &Compiled, from: &str) -> Vec<EntryPoint> {
    let words =
        compiled.cil.lines().filter_map(|line| line.trim().strip_prefix("(typetransition "));
    let ways = words.filter_map(|rest| {
        let words: Vec<&str> = rest.trim_end_matches(')').split_whitespace().collect();
        let [source, object, "process", into] = words[..] else { return None };
        let into = compiled.domains.iter().find(|domain| domain.type_name == into)?;
        let program = compiled.paths.iter().find(|rule| rule.type_name == object)?;
        (source == from).then(|| EntryPoint {
            program: program
                .path
                .as_ref()
                .map_or(program.glob.clone(), |it| it.display().to_string()),
            domain: into.name.clone(),
        })
    });
    ways.collect()
}

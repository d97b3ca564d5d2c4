//! What a profile stands for: a policy, and what the launcher needs beside it.

use crate::amended::Taken;
use crate::amendment::{Clause, everything};
use crate::domain::Domain;
use crate::environment::Environment;
use crate::hosts::{Addresses, ResolvedHost};
use crate::limits::Limits;
use crate::merged::{Hiding, Mode, Profile};
use crate::network::Host;
use crate::policy::Policy;
use crate::rights::Rights;
use crate::source::{Origin, Sources, TextSpan};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A profile, compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The file, or `profile NAME`.
    pub name: String,
    /// What the profile says about itself.
    pub description: Option<String>,
    /// How much the monitor decides itself.
    pub mode: Mode,
    /// What is hidden where no view can leave it out.
    pub hiding: Hiding,
    /// Programs inside may read their denials, and propose lines: [`crate::Documents::bound`].
    pub proposes: bool,
    /// The policy, for a security server or `secilc`.
    pub cil: String,
    /// Some domain is guarded: what happens to names that programs outside trust is told.
    pub guarded: bool,
    /// Which environment variables pass.
    pub environment: Environment,
    /// How much the run may use.
    pub limits: Limits,
    /// Whether the run has a loopback of its own, and no other network; `None` if it asks for none.
    pub private_loopback: Option<bool>,
    /// Whether it may have ports of its own on the loopback of the machine.
    pub own_ports: bool,
    /// Directories that are to be made if they are not there, sorted.
    pub directories: Vec<PathBuf>,
    /// Tools whose registries it names, for whatever domain.
    pub registries: Vec<String>,
    /// The domains; the first is `main`, in which a run starts.
    pub domains: Vec<Domain>,
    /// The file patterns of the policy in the order of its labelling rules.
    pub paths: Vec<PathRule>,
    /// The hosts of network rules with their addresses.
    pub hosts: Vec<ResolvedHost>,
    /// Of the amendments, those that are enough: the others have been cancelled, or come to
    /// nothing more. Without them the policy is the same, now and after any further amendment.
    pub amendments: Vec<usize>,
    /// Programs by which a domain is entered, and which whoever enters it by them may exchange, so
    /// that it gains the domain's rights.
    pub open_gates: Vec<OpenGate>,
    /// The line of the profile that denies or hides all that the last amendment grants.
    pub granted_in_vain: Option<String>,
    /// The last revocation that may have taken something that the last amendment grants.
    pub given_back: Option<String>,
    /// [`Variables::temporary`](crate::Variables::temporary) of the run that it was compiled for.
    pub temporary: Vec<PathBuf>,
    sources: Sources,
    origins: Vec<Option<TextSpan>>,
    /// For each of `paths`, and each of `domains`, what denies or hides it.
    withheld: Vec<Vec<Option<TextSpan>>>,
    /// For each of `paths`, and each of `domains`, what lets it be looked into.
    shown: Vec<Vec<Option<TextSpan>>>,
    /// For each of `paths`, and each of `domains`, what amendments took.
    taken: Vec<Vec<Taken>>,
    /// Domain, type of an endpoint or abstract name, and the amendment that took it.
    taken_names: Vec<(usize, String, TextSpan)>,
    /// For each of `domains`, the amendment that took everything.
    taken_everything: Vec<Option<TextSpan>>,
}

/// A program that enters a domain, and that may be written from where it does so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenGate {
    /// The domain that is entered.
    pub domain: String,
    /// The domain that enters it, and may write the program, replace or rename it.
    pub from: String,
    /// Where the profile names the program.
    pub program: Origin,
    /// What grants writing it.
    pub grant: Origin,
}

/// The files of one pattern and what each domain may do with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Regular expression over whole paths, as in the policy.
    pub regex: String,
    /// The same as a profile writes it.
    pub glob: String,
    /// The path, if the pattern has no globs: it and everything below it; it alone, if all it
    /// grants is `list`.
    pub path: Option<PathBuf>,
    /// It is about what leads elsewhere alone: a link or a file at this path, where a directory
    /// would be if there were something in it.
    pub is_way: bool,
    /// It is about names, at any depth and in any case, among the files of another rule.
    pub by_name: bool,
    /// The type of these files.
    pub type_name: String,
    /// Rights for each of [`Compiled::domains`].
    pub rights: Vec<PathRights>,
}

/// What a domain may do with files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathRights {
    /// List them, if they are directories.
    pub list: bool,
    /// Read them.
    pub read: bool,
    /// Write, make and remove them.
    pub write: bool,
    /// Execute them without leaving the domain, or to leave it.
    pub exec: bool,
    /// They do not exist for it.
    pub hidden: bool,
}

impl Compiled {
    /// Where the rule in line `line` (from 1) of [`Compiled::cil`] comes from; `None` for rules
    /// that every policy has.
    #[must_use]
    pub fn origin(&self, line: usize) -> Option<Origin> {
        let place = self.origins.get(line.checked_sub(1)?)?;
        self.sources.origin((*place)?)
    }

    /// A [`Resolver`](crate::Resolver) that knows the names of this profile: to compile it again
    /// with the same addresses, without asking anybody.
    #[must_use]
    pub fn addresses(&self, names: &[&str]) -> Vec<Addresses> {
        let missing = |why: &str| Err(std::io::Error::other(why.to_owned()));
        let one = |name: &&str| {
            let is_named =
                |host: &&ResolvedHost| matches!(&host.host, Host::Name(it) if it == name);
            match self.hosts.iter().find(is_named) {
                None => missing("it was not resolved"),
                Some(ResolvedHost { error: Some(why), .. }) => missing(why),
                Some(host) => Ok(host.networks.iter().map(|network| network.0).collect()),
            }
        };
        names.iter().map(one).collect()
    }

    /// The hosts that it names, and their addresses: none for one that was not found.
    pub fn named_hosts(&self) -> impl Iterator<Item = (&str, Vec<IpAddr>)> {
        self.hosts.iter().filter_map(|host| match &host.host {
            Host::Name(name) => Some((&**name, host.networks.iter().map(|it| it.0).collect())),
            _ => None,
        })
    }

    /// Where the profile denies or hides objects of type `object` from processes of type `subject`.
    /// No rule of the policy says so: it is the absence of rules.
    #[must_use]
    pub fn withheld(&self, subject: &str, object: &str) -> Option<Origin> {
        self.origin_of(&self.withheld, subject, object)
    }

    /// Where the profile lets processes of type `subject` look into objects of type `object`: what
    /// else they may do there is said in the same place, or nowhere.
    #[must_use]
    pub fn shown(&self, subject: &str, object: &str) -> Option<Origin> {
        self.origin_of(&self.shown, subject, object)
    }

    /// Where the profile keeps the first domain from `path`: by hiding or denying the innermost of
    /// the places around it that are named in full.
    #[must_use]
    pub fn keeps_back(&self, path: &Path) -> Option<Origin> {
        let named = |rule: &PathRule| rule.path.as_ref().filter(|it| path.starts_with(it)).cloned();
        let around = self.paths.iter().enumerate().filter_map(|(n, it)| Some((named(it)?, n)));
        let (_, innermost) = around.max_by_key(|(path, _)| path.components().count())?;
        self.sources.origin((*self.withheld.get(innermost)?.first()?)?)
    }

    fn origin_of(
        &self,
        places: &[Vec<Option<TextSpan>>],
        subject: &str,
        object: &str,
    ) -> Option<Origin> {
        let domain = self.domains.iter().position(|domain| domain.type_name == subject)?;
        let path = self.paths.iter().position(|path| path.type_name == object)?;
        self.sources.origin((*places.get(path)?.get(domain)?)?)
    }

    /// The amendment that took `permissions`, or some of them, on objects of type `object` from
    /// processes of type `subject`.
    #[must_use]
    pub fn revoked(&self, subject: &str, object: &str, permissions: &[&str]) -> Option<Origin> {
        let domain = self.domains.iter().position(|domain| domain.type_name == subject)?;
        let of_name =
            self.taken_names.iter().find(|(index, name, _)| *index == domain && name == object);
        let place = self.taken_everything[domain].or(of_name.map(|(_, _, place)| *place));
        let of_path = || {
            let path = self.paths.iter().position(|path| path.type_name == object)?;
            let (taken, right) = (&self.taken[path][domain], &self.paths[path].rights[domain]);
            let is = |name: &str| permissions.contains(&name);
            let of_use = if is("connectto") || is("sendto") {
                taken.connect
            } else if is("execute") || is("execute_no_trans") || is("entrypoint") {
                taken.exec
            } else if !right.write && permissions.iter().any(|name| changes(name)) {
                taken.write
            } else {
                None
            };
            taken.everything.or(of_use)
        };
        self.sources.origin(place.or_else(of_path)?)
    }

    pub(crate) fn new(
        name: String,
        profile: Profile,
        hosts: Vec<ResolvedHost>,
        (policy, (clauses, amendments, count)): (Policy, (&[Clause], Vec<usize>, usize)),
        sources: Sources,
    ) -> Self {
        let taken_everything =
            (0..profile.domains.len()).map(|domain| everything(clauses, domain)).collect();
        let domains = profile.domains.iter().zip(policy.types);
        let outside = profile.private_loopback != Some(true);
        let reached: &[ResolvedHost] = if outside { &hosts } else { &[] };
        let domains = domains.map(|(domain, name)| Domain::new(domain, name, reached)).collect();
        let is_last = amendments.last().is_some_and(|last| last + 1 == count);
        let in_vain = policy.in_vain.filter(|_| is_last);
        let granted_in_vain = in_vain.and_then(|place| sources.origin(place));
        let granted_in_vain = granted_in_vain.map(|origin| origin.to_string());
        let gate = |gate: &crate::policy::WritableEntrypoint| {
            Some(OpenGate {
                domain: profile.domains[gate.into].name.clone(),
                from: profile.domains[gate.from].name.clone(),
                program: sources.origin(gate.program)?,
                grant: sources.origin(gate.grant)?,
            })
        };
        let open_gates = policy.writable_entrypoints.iter().filter_map(gate).collect();
        let places = |of: fn(&Rights) -> Option<TextSpan>| {
            policy.nodes.iter().map(|node| node.rights.iter().map(of).collect()).collect()
        };
        let withheld = places(Rights::withheld);
        let shown = places(|rights| rights.readable().or(rights.list));
        let taken = policy.nodes.iter().map(|node| node.taken.clone()).collect();
        Self {
            name,
            description: profile.description,
            mode: profile.mode.unwrap_or_default(),
            hiding: profile.hiding.unwrap_or_default(),
            proposes: profile.proposes,
            cil: policy.cil,
            guarded: profile.domains.iter().any(|domain| domain.guard.action().is_some()),
            environment: profile.environment,
            limits: profile.limits,
            private_loopback: profile.private_loopback,
            own_ports: profile.own_ports.is_some(),
            directories: profile.directories.into_iter().map(PathBuf::from).collect(),
            registries: profile.registries,
            domains,
            paths: policy.nodes.into_iter().map(path_rule).collect(),
            hosts,
            amendments,
            open_gates,
            granted_in_vain,
            given_back: None,
            temporary: Vec::new(),
            sources,
            origins: policy.origins,
            withheld,
            shown,
            taken,
            taken_names: policy.taken,
            taken_everything,
        }
    }
}

/// Whether a permission on a file belongs to `files.write`.
fn changes(permission: &str) -> bool {
    !["read", "open", "watch", "getattr", "search", "execute"].contains(&permission)
}

fn path_rule(node: crate::policy::Node) -> PathRule {
    let rights = node.rights.iter().map(|rights| PathRights {
        list: rights.list.or(rights.readable()).is_some(),
        read: rights.readable().is_some(),
        write: rights.write.is_some(),
        exec: rights.exec.is_some(),
        hidden: rights.hidden.is_some(),
    });
    PathRule {
        regex: node.regex().to_owned(),
        glob: node.pattern.glob(),
        path: node.pattern.literal().filter(|_| node.by_name.is_none()).map(PathBuf::from),
        is_way: node.is_way(),
        by_name: node.by_name.is_some(),
        rights: rights.collect(),
        type_name: node.type_name,
    }
}

//! A profile as its documents say it together: domains, their rights and rules.

use crate::environment::Environment;
use crate::guard::Guard;
use crate::limits::Limits;
use crate::network::NetworkObject;
use crate::pattern::Pattern;
use crate::rights::{Entries, List, ListedPattern};
use crate::source::{Located, TextSpan};
use std::{collections::HashSet, path::PathBuf};

/// In `exec` of a domain: whatever may be executed, and is no program of who executes it.
pub(crate) const ALL_ELSE: &str = "*";

/// How much the monitor decides itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every open is decided and counted.
    #[default]
    All,
    /// What all domains may read is left to the kernel; writing, executing, the network and hidden
    /// things are decided.
    Fast,
}

/// What is hidden where no view can leave it out, as a machine without mount namespaces has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hiding {
    /// The content. That something exists, and its attributes, can be seen.
    #[default]
    Content,
    /// Everything, at the price of deciding each look at a file.
    Strict,
}

/// Which loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loopback {
    /// One of the run's own network, which nobody else is on.
    Private,
    /// That of the machine, with all that listens on it.
    Machine,
    /// Ports of the machine's that the run has bound itself.
    Own,
}

/// A profile, read and merged.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) description: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) hiding: Option<Hiding>,
    pub(crate) proposes: bool,
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    /// Where it asks for a loopback of its own.
    pub(crate) loopback: Option<(Loopback, TextSpan)>,
    /// Whether it gets that, if it asks for it. Then all rules for endpoints are about it.
    pub(crate) private_loopback: Option<bool>,
    /// Where it asks for ports of its own on the loopback of the machine, if it gets some.
    pub(crate) own_ports: Option<TextSpan>,
    /// The base domain first.
    pub(crate) domains: Vec<Domain>,
    /// Directories that it wants to be there.
    pub(crate) directories: Vec<String>,
    /// Directories in whose place no link may come to be, and why not.
    pub(crate) left: Vec<(Pattern, TextSpan)>,
    /// Tools whose registries it names, each once.
    pub(crate) registries: Vec<String>,
    /// The run's own directory for temporary files.
    pub(crate) tmp: String,
    /// [`Variables::temporary`](crate::Variables::temporary).
    pub(crate) temporary: Vec<PathBuf>,
    /// [`Variables::shares_temporary`](crate::Variables::shares_temporary).
    pub(crate) shares_temporary: bool,
}

/// A domain as its profile describes it.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) name: String,
    pub(crate) place: Option<TextSpan>,
    /// The programs that enter it.
    pub(crate) programs: Vec<(Pattern, TextSpan)>,
    /// Where it says that all else enters it which may be executed.
    pub(crate) all_else: Option<TextSpan>,
    pub(crate) from: Option<Vec<Located<String>>>,
    /// The domains whose environment its programs believe.
    pub(crate) noatsecure: Vec<Located<String>>,
    /// The domains that may connect to ports that it has bound, though they have other rights.
    pub(crate) serves: Vec<Located<String>>,
    pub(crate) inherit: bool,
    pub(crate) capabilities: Vec<Located<String>>,
    pub(crate) own: Vec<ListedPattern>,
    /// The rights to files, those of the base domain included.
    pub(crate) entries: Entries,
    pub(crate) network: Vec<NetworkRule>,
    pub(crate) netlink: Option<Located<Vec<String>>>,
    /// What keeps names that programs outside trust.
    pub(crate) guard: Guard,
}

impl Domain {
    pub(crate) fn new(name: &str, place: Option<TextSpan>) -> Self {
        Self {
            name: name.to_owned(),
            place,
            programs: Vec::new(),
            all_else: None,
            from: None,
            noatsecure: Vec::new(),
            serves: Vec::new(),
            inherit: true,
            capabilities: Vec::new(),
            own: Vec::new(),
            entries: Entries::default(),
            network: Vec::new(),
            netlink: None,
            guard: Guard::default(),
        }
    }

    /// The programs that enter it, as a profile writes them.
    pub(crate) fn program_names(&self) -> Vec<String> {
        let all_else = self.all_else.map(|_| ALL_ELSE.to_owned());
        self.programs.iter().map(|(pattern, _)| pattern.to_string()).chain(all_else).collect()
    }

    pub(crate) fn forget_network(&mut self) {
        self.network.clear();
        self.netlink = None;
    }

    /// The patterns of every list, program and socket of it, with whether the list restricts.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (Pattern, bool)> {
        let files = self.entries.iter().filter(|it| !it.beside);
        let files = files.map(|it| (it.pattern.clone(), it.list.restricts()));
        files.chain(self.programs_and_sockets().map(|pattern| (pattern.clone(), false)))
    }

    /// The patterns of the programs that enter it, and of the sockets that it may connect to.
    pub(crate) fn programs_and_sockets(&self) -> impl Iterator<Item = &Pattern> {
        let programs = self.programs.iter().map(|(pattern, _)| pattern);
        let sockets = self.network.iter().flat_map(|rule| match &rule.target {
            NetworkObject::Unix(_, patterns) => patterns.as_slice(),
            _ => &[],
        });
        programs.chain(sockets)
    }

    /// The parts of its lists' patterns that others name.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Pattern, bool)> {
        let parts = self.entries.iter().filter(|it| it.beside);
        parts.map(|it| (it.pattern.clone(), it.list.restricts()))
    }

    /// Whether a process of domain `name` enters this one by executing one of its programs.
    pub(crate) fn is_entered_from(&self, name: &str) -> bool {
        name != self.name && (self.from.is_none() || self.names_in_from(name))
    }

    /// Whether `from` names domain `name`.
    pub(crate) fn names_in_from(&self, name: &str) -> bool {
        self.from.iter().flatten().any(|domain| domain.value == name)
    }

    /// Whether domain `name` may connect to its ports, as it says itself.
    pub(crate) fn serves(&self, name: &str) -> bool {
        self.serves.iter().any(|domain| domain.value == name)
    }

    /// What profiles say of it, by where they do.
    pub(crate) fn said(&self) -> Said {
        let entries = self.entries.iter().filter(|it| it.rank.is_none());
        let (restricts, grants) =
            entries.map(|it| (it.list, it.place)).partition(|(list, _)| list.restricts());
        let endpoints = self.network.iter().map(|it| (it.direction, it.place)).collect();
        Said { grants, restricts, endpoints }
    }

    /// The protocols of netlink that it may use, and where that is said.
    pub(crate) fn netlink(&self) -> Option<(TextSpan, &[String])> {
        let netlink = self.netlink.as_ref().filter(|netlink| !netlink.value.is_empty())?;
        Some((netlink.place, &netlink.value))
    }
}

/// What profiles say of a domain: which list, and where.
#[derive(Debug)]
pub(crate) struct Said {
    grants: HashSet<(List, TextSpan)>,
    restricts: HashSet<(List, TextSpan)>,
    endpoints: HashSet<(Direction, TextSpan)>,
}

impl Said {
    /// Whether both have the same rights, by what profiles grant. Then neither has a secret from
    /// the other, and neither gets anything by what the other does for it.
    pub(crate) fn is_equal_to(&self, other: &Self) -> bool {
        // What was only taken from writing was taken from all that wrote there.
        let of_profiles =
            |it: &Self| it.restricts.iter().filter(|it| it.0 != List::Unwritten).copied().collect();
        let [own, others]: [HashSet<(List, TextSpan)>; 2] = [self, other].map(of_profiles);
        self.grants == other.grants && own == others && self.endpoints == other.endpoints
    }
}

/// A network rule of one domain.
#[derive(Clone, Debug)]
pub(crate) struct NetworkRule {
    pub(crate) target: NetworkObject,
    pub(crate) direction: Direction,
    pub(crate) place: TextSpan,
}

/// Who starts the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Connect,
    Bind,
}

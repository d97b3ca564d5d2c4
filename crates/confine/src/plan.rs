//! What a policy means for the kernel: the domains that a run can reach, the envelope around them,
//! and where that envelope is exact.

mod actors;
mod domains;
mod made;
mod rights;
mod sockets;
mod withhold;

pub(crate) use domains::file_types;
use domains::{Closure, moves};
pub use domains::{computed, entered};
pub use rights::Rights;

use actors::Actors;
use made::{Made, made};
use rights::{Granted, KnownRights};
use sockets::connects;

use flask::{FileKind, InitialSid, LabelRules, SecurityServer, Sid, Unreachable};
use labelling::{NameRule, Tree, literal, stem_dir};
use landlock::{Access, AccessFs, BitFlags, make_bitflags};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

/// A subtree of the file system with one label, and what the reachable domains together may do
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// Index of the labelling rule.
    pub rule: usize,
    /// The regular expression of the rule.
    pub regex: String,
    /// The rule is a pattern, and `tree` only the directory that its files lie below.
    pub is_pattern: bool,
    /// The files that the rule is about.
    pub kind: FileKind,
    /// The one path that the rule is about.
    pub only: Option<PathBuf>,
    /// How many levels below `tree` the files of a pattern lie, if they all lie on one.
    pub depth: Option<usize>,
    /// The files that it is about.
    pub tree: Tree,
    /// What some domain may do.
    pub any: Rights,
    /// What every domain may do, on files of every class.
    pub all: Rights,
    /// What some domain may do in the place that surrounds this one, if it is literal.
    pub around: Rights,
    /// Some domain must not even know that it exists.
    pub hidden: bool,
}

/// What follows from the policy alone.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The domain of the command; then every other that an exec can lead to.
    pub domains: Vec<Sid>,
    /// Literal places, outermost first.
    pub places: Vec<Subtree>,
    /// Where in `places` a path stands.
    by_path: HashMap<PathBuf, usize>,
    /// Places known only by pattern, with the directory that they lie below.
    pub patterns: Vec<Subtree>,
    /// Labels of directories that can be listed, while nothing in them is granted. No envelope can
    /// say so; the monitor opens them.
    pub listed: Vec<Sid>,
    /// Those of these directories that are named in full.
    pub(crate) listings: Vec<PathBuf>,
    /// Rights that some file without a rule has: no envelope can be exact for them.
    pub unruled: Rights,
    /// New files that get another label than their directory.
    pub made: Vec<Made>,
    /// Where some domain may connect to a socket.
    pub(crate) sockets: Vec<PathBuf>,
    /// For some file that can be executed, policy computes another domain: whether it may be
    /// entered or not.
    pub moves: bool,
    /// What each domain may do on files of each label.
    granted: Granted,
}

/// What opening for reading takes.
pub const READS: Rights = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// What opening for writing takes.
pub const WRITES: Rights = make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg});

/// What changes nothing.
const KEPT: Rights = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute | IoctlDev});

impl Plan {
    /// Reads the policy through the security server.
    pub(crate) fn new(
        server: &dyn SecurityServer,
        labels: &LabelRules,
    ) -> Result<Self, Unreachable> {
        let closure = Closure::new(server, file_types(&labels.files))?;
        Self::of(server, labels, &closure, Actors { own: &closure.domains, others: &[] })
    }

    /// The same policy for the first domain alone; but what any domain may execute, the kernel
    /// executes for all.
    pub(crate) fn of_first(
        &self,
        server: &dyn SecurityServer,
        labels: &LabelRules,
    ) -> Result<Self, Unreachable> {
        let (own, others) = self.domains.split_at(1);
        if others.is_empty() {
            return Ok(self.clone());
        }
        let closure = Closure::new(server, file_types(&labels.files))?;
        Self::of(server, labels, &closure, Actors { own, others })
    }

    fn of(
        server: &dyn SecurityServer,
        labels: &LabelRules,
        closure: &Closure,
        actors: Actors<'_>,
    ) -> Result<Self, Unreachable> {
        let domains = actors.own.to_vec();
        let asked = KnownRights::new(server);
        let (mut places, mut patterns, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        for (index, rule) in labels.files.iter().enumerate() {
            let sid = rule.sid.unwrap_or_else(|| InitialSid::File.into());
            let tree = literal(&rule.path);
            // A grant to a directory alone is none that Landlock could express.
            let is_pattern = tree.as_ref().is_none_or(|tree| !tree.deep);
            let (kind, only) = (rule.kind, tree.as_ref().filter(|tree| !tree.deep));
            let only = only.map(|tree| tree.path.clone());
            let depth = labelling::depth(&rule.path);
            let tree = tree.unwrap_or_else(|| Tree { path: stem_dir(&rule.path), deep: true });
            let mut place = place(&asked, actors, tree, sid)?;
            if NameRule::is_one(&rule.path) {
                // Whether somebody changes these, and by which name, the monitor wants to know even
                // where policy grants it.
                place.any &= KEPT;
                place.all &= KEPT;
            }
            if !is_pattern && connects(server, actors, sid)? {
                sockets.push(place.tree.path.clone());
            }
            let regex = rule.path.clone();
            let place = Subtree { rule: index, regex, is_pattern, kind, only, depth, ..place };
            if is_pattern { patterns.push(place) } else { places.push(place) }
        }
        places.sort_by_cached_key(|place: &Subtree| place.tree.path.components().count());
        let rest = Tree { path: "/".into(), deep: true };
        let rest = place(&asked, actors, rest, InitialSid::File.into())?;
        let made = made(&asked, actors.own, &closure.relabels)?;
        let moves = moves(server, &domains, &closure.types)?;
        // Of several rules for one path the last decides.
        let by_path = places.iter().enumerate();
        let by_path = by_path.map(|(index, place)| (place.tree.path.clone(), index)).collect();
        let mut plan = Self {
            domains,
            places,
            by_path,
            patterns,
            listed: Vec::new(),
            listings: Vec::new(),
            unruled: rest.any,
            made,
            sockets,
            moves,
            granted: asked.granted(),
        };
        plan.look_around();
        plan.set_listings_aside(labels);
        Ok(plan)
    }

    /// Moves from `patterns` to `listed` what grants listing alone, where nothing is granted around
    /// it.
    fn set_listings_aside(&mut self, labels: &LabelRules) {
        let patterns = std::mem::take(&mut self.patterns);
        let stands_alone = |pattern: &Subtree| {
            let around = self.innermost(&pattern.tree.path);
            pattern.any == BitFlags::from(AccessFs::ReadDir)
                && !pattern.hidden
                && self.unruled.is_empty()
                && around.is_none_or(|around| around.any.is_empty())
        };
        let (listed, rest): (Vec<Subtree>, _) = patterns.into_iter().partition(stands_alone);
        self.listed = listed.iter().filter_map(|place| labels.files[place.rule].sid).collect();
        self.listings = listed.into_iter().filter_map(|place| place.only).collect();
        self.patterns = rest;
    }

    /// Whether the kernel, told what follows from the one policy, also does what follows from the
    /// other.
    #[must_use]
    pub fn same_files(&self, other: &Self) -> bool {
        let same = (&self.domains, &self.places, &self.patterns, &self.listed)
            == (&other.domains, &other.places, &other.patterns, &other.listed);
        same && (self.unruled, &self.made) == (other.unruled, &other.made)
    }

    /// The labels of files of which this policy takes from a domain what it goes on granting it on
    /// others, and `before` granted.
    #[must_use]
    pub fn taken_labels(&self, before: &Self) -> HashSet<Sid> {
        self.granted.taken_since(&before.granted)
    }

    /// The literal place that `path` itself lies in.
    pub(crate) fn innermost(&self, path: &Path) -> Option<&Subtree> {
        let place = path.ancestors().find_map(|ancestor| self.by_path.get(ancestor));
        place.map(|&index| &self.places[index])
    }

    /// Whether some domain may open something at or below `path`.
    pub(crate) fn grants_in(&self, path: &Path) -> bool {
        let mut below = self.places.iter().filter(|place| place.tree.path.starts_with(path));
        let grants = |place: &Subtree| !place.any.is_empty();
        !self.unruled.is_empty() || self.innermost(path).is_some_and(grants) || below.any(grants)
    }

    /// The rights that the kernel enforces exactly as policy decides them, once it grants `any`
    /// below every place. `shielded` are the rights to a place that the kernel refuses for another
    /// reason than the envelope.
    pub(crate) fn exact(&self, shielded: &dyn Fn(&Subtree) -> Rights) -> Rights {
        // What shields a place is asked of the file system, so only where it makes a difference.
        let kept = |exact: Rights, refused: Rights, place: &Subtree| {
            if refused.contains(exact) { exact } else { exact & (refused | shielded(place)) }
        };
        let mut exact = !self.unruled;
        for place in &self.places {
            exact &= place.all | !place.any;
            exact = kept(exact, !place.around | place.any, place);
        }
        for pattern in &self.patterns {
            let around =
                self.innermost(&pattern.tree.path).map_or(Rights::empty(), |place| place.any);
            exact &= pattern.all | !pattern.any;
            // More than around it, the envelope could only grant to everything there.
            exact &= !pattern.any | around;
            exact = kept(exact, !around | pattern.any, pattern);
        }
        for made in &self.made {
            exact &= made.all | !made.around;
            if made.around.contains(AccessFs::MakeReg) {
                // What the program makes itself nobody labels.
                exact &= !BitFlags::from(AccessFs::MakeReg);
            }
        }
        exact
    }

    /// Labels that no rule gives, only making: no envelope can speak of such files.
    pub(crate) fn labels_of_its_own(&self, rules: &[flask::FileRule]) -> Vec<Sid> {
        let ruled = file_types(rules);
        let labels = self.made.iter().filter_map(|made| made.label);
        labels.filter(|label| !ruled.contains(label)).collect()
    }

    /// What the envelope grants: each place with those rights of some domain that the program uses
    /// itself.
    pub(crate) fn envelope(&self, used: Rights) -> Vec<(PathBuf, Rights)> {
        let places = self.places.iter().chain(&self.patterns);
        let all = places.map(|place| (place.tree.path.clone(), granted(place.any, used)));
        let rest = std::iter::once(("/".into(), granted(self.unruled, used)));
        all.chain(rest).filter(|(_, rights)| !rights.is_empty()).collect()
    }
}

/// Of the rights `any`, those that the program uses itself. The kernel reads what it executes on
/// the program's behalf.
fn granted(any: Rights, used: Rights) -> Rights {
    let executes = (any & used).contains(AccessFs::Execute);
    let read = if executes { AccessFs::ReadFile.into() } else { Rights::empty() };
    any & (used | read)
}

fn place(
    asked: &KnownRights<'_>,
    actors: Actors<'_>,
    tree: Tree,
    sid: Sid,
) -> Result<Subtree, Unreachable> {
    let all = AccessFs::from_all(landlock::ABI::V5);
    let (any, around) = (Rights::empty(), Rights::empty());
    let mut place = Subtree {
        rule: usize::MAX,
        regex: String::new(),
        is_pattern: false,
        kind: FileKind::Any,
        only: None,
        depth: None,
        tree,
        any,
        all,
        around,
        hidden: false,
    };
    for &ssid in actors.own {
        let rights = asked.rights(ssid, sid)?;
        place.any |= rights.any;
        place.all &= rights.all;
        place.hidden |= !rights.is_seen;
    }
    for &ssid in actors.others {
        let any = asked.rights(ssid, sid)?.any;
        if any.contains(AccessFs::Execute) {
            place.any |= any & (AccessFs::Execute | AccessFs::ReadFile);
        }
    }
    if !actors.others.is_empty() && place.tree.path.starts_with("/proc") {
        // What is opened there shows, or changes, its process also when that is in another domain:
        // the monitor has to know of it.
        place.any &= !(READS | WRITES);
    }
    if Path::new("/dev").starts_with(&place.tree.path) {
        // Devices with the file systems below all labels, which policy grants to nobody.
        place.all &= !(AccessFs::ReadFile | AccessFs::WriteFile);
    }
    Ok(place)
}

//! Directories for temporary files and shared memory, where the run has none of its own: it makes
//! names there, and has what it has made. What others have made is none of its own.

use super::files::{Node, READ, WRITE};
use super::writer::{PermissionSet, Writer};
use crate::merged::Profile;
use crate::rights::Rights;
use std::path::Path;

/// What a domain may do with the directory, whose label all has that others have made in it: put
/// names in and take them out, and not list it. Taking out needs a right to the file as well.
pub(super) const ENTRIES: PermissionSet =
    PermissionSet { name: "files_entries", classes: &[("dir", "add_name remove_name")] };

/// The classes of files that take another label when they are made.
const CLASSES: [&str; 5] = ["file", "dir", "lnk_file", "fifo_file", "sock_file"];

/// The type of the directory, and that of what the run makes in it.
pub(super) struct Shared {
    theirs: String,
    own: String,
}

impl Shared {
    /// Declares the types of what the run makes: for each such directory that a rule is about;
    /// none where they are the run's own.
    pub(super) fn all(profile: &Profile, nodes: &[Node], out: &mut Writer) -> Vec<Self> {
        if !profile.shares_temporary {
            return Vec::new();
        }
        let directories = profile.temporary.iter().filter(|it| it.as_os_str() != &*profile.tmp);
        let of = |directory: &Path| {
            let is =
                |node: &&Node| node.pattern.literal().is_some_and(|it| directory == Path::new(&it));
            nodes.iter().find(is).map(|node| node.type_name.clone())
        };
        let theirs: Vec<String> = directories.filter_map(|it| of(it)).collect();
        let declared = theirs.into_iter().map(|theirs| {
            let own = out.names.fresh(theirs.trim_end_matches("_t"), "own_t");
            out.object_type(&own);
            Self { theirs, own }
        });
        declared.collect()
    }

    pub(super) fn is(&self, node: &Node) -> bool {
        node.type_name == self.theirs
    }

    /// What `domain` may do, which the profile lets write there.
    pub(super) fn write(&self, domain: &str, rights: &Rights, out: &mut Writer) {
        let Some(place) = rights.write else { return };
        out.allow_set(Some(place), domain, &self.theirs, ENTRIES);
        let exist = [("dir", "getattr search"), ("file", "getattr"), ("lnk_file", "getattr")];
        let others = [("fifo_file", "getattr"), ("sock_file", "getattr")];
        out.allow(Some(place), domain, &self.own, &[&exist[..], &others].concat());
        out.allow_set(Some(place), domain, &self.own, READ);
        out.allow_set(Some(place), domain, &self.own, WRITE);
        let Self { theirs, own } = self;
        for class in CLASSES {
            out.rule(Some(place), format_args!("(typetransition {domain} {theirs} {class} {own})"));
        }
    }
}

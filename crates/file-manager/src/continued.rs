//! Opens that the program makes itself: where the envelope refuses exactly what policy refuses.

use super::{
    FileAsker,
    entry::adds,
    object::{Seen, class_of, has_name},
    open::Open,
    path_cache::CachedPath,
};
use flask::{Class, Question, Sid};
use inode_labels::FileRef;
use mediation::call::{Answer, CallResult};
use rustix::{fs::OFlags, io::Errno};
use std::{os::fd::AsFd, sync::Arc};
use supervisor::{WalkedPath, resolve_for_caller};

impl Open {
    /// Decides, and lets the program open the file itself.
    ///
    /// Sound because the envelope refuses for these rights what policy refuses (`Plan::exact`):
    /// other bytes in the path, or other links on the way, reach nothing that is not granted.
    pub(super) fn leave_to_kernel(&self, asker: FileAsker<'_>) -> CallResult {
        let paths = &self.paths;
        if let Some(known) = self.known(asker) {
            known.allow(*asker, |class| self.requested(class))?;
            return Ok(Answer::Continue);
        }
        if self.is_plainly_granted(asker) {
            return Ok(Answer::Continue);
        }
        let (found, is_own) = resolve_for_caller(asker.caller, self.name());
        asker.files.paths.directories.remember(asker.caller);
        match found {
            Ok(WalkedPath { object: None, entry: Some((parent, name)), .. }) if self.creates() => {
                let label = self.allow_new(asker, &parent, &name)?;
                if self.is_withheld(asker, label, Class::File) || !adds(asker, &parent)? {
                    return self.make(asker);
                }
            }
            found => match found.and_then(WalkedPath::existing) {
                // A pipe, a socket or memory, by a magic link: its process holds it already.
                Ok(fd) if is_own && !has_name(*asker, &fd)? => {}
                Ok(fd)
                    if self.is_made_in_proc(asker)
                        && asker.state.targets.tree.is_proc(fd.as_fd())? =>
                {
                    return self.make(asker);
                }
                Ok(fd) if self.is_temporary() => drop(self.allow_temporary(asker, &fd)?),
                Ok(fd) => {
                    let seen = Seen::of(*asker, fd.as_fd())?;
                    if self.writes_directory(asker, &seen) {
                        return Err(Errno::ISDIR);
                    }
                    // What its process holds already, if nothing else.
                    if is_own && !seen.grants(*asker, self.requested(seen.class)) {
                        return self.make(asker);
                    }
                    seen.allow(*asker, self.requested(seen.class), &fd)?;
                    if self.is_withheld(asker, seen.label.sid, seen.class) {
                        return self.make(asker);
                    }
                    if !is_own {
                        paths.found(asker.state, self.name(), &fd, &seen)?;
                    }
                }
                // What stops the walk stops the program's own.
                Err(errno) => {
                    let ended = self.missing_name().ended(asker, errno);
                    if ended.errno != errno {
                        return Err(ended.errno);
                    }
                    if errno == Errno::NOENT && !self.creates() && !is_own && !ended.refused {
                        paths.missing(asker.state, self.name());
                    }
                }
            },
        }
        Ok(Answer::Continue)
    }

    /// Whether the envelope refuses this open in `/proc`, though policy may not: see
    /// [`Plan::of_first`].
    ///
    /// [`Plan::of_first`]: confine::Plan::of_first
    fn is_made_in_proc(&self, asker: FileAsker<'_>) -> bool {
        !asker.state.subjects.cannot_differ_yet() && !self.flags.contains(OFlags::PATH)
    }

    /// Whether one `stat` is enough: policy grants all of an existing object, and wants no record.
    /// Wherever else the program's own walk leads, the kernel refuses what policy refuses.
    fn is_plainly_granted(&self, asker: FileAsker<'_>) -> bool {
        let state = asker.state;
        let makes = self.creates() || self.is_temporary();
        if makes || self.writes() || state.records.audit.wants_everything() {
            return false;
        }
        let Some(status) = asker.files.paths.directories.stat(asker.caller, self.name()) else {
            return false;
        };
        let Ok(label) = state.labels.of_file(&status, FileRef::None, || Err(Errno::NODATA)) else {
            return false;
        };
        let tclass = class_of(status.kind);
        let question = Question { ssid: asker.ssid, tsid: label.sid, tclass };
        label.also().is_empty()
            && !self.is_withheld(asker, label.sid, tclass)
            && state.caches.file.passes(question, self.requested(tclass), &label.hint)
    }

    /// What the path is known to lead to; nothing is made there.
    fn known(&self, asker: FileAsker<'_>) -> Option<Arc<CachedPath>> {
        let makes = self.creates() || self.is_temporary();
        let known = if makes { None } else { self.paths.get(self.name()) };
        known.filter(|known| !known.is(|sid, class| self.is_withheld(asker, sid, class)))
    }

    /// Whether the envelope refuses this open of what has a label, though policy may not.
    fn is_withheld(&self, asker: FileAsker<'_>, label: Sid, class: Class) -> bool {
        !self.flags.contains(OFlags::PATH) && asker.state.policy.load().opens(label, class)
    }
}

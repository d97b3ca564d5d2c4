//! The beginning of a change: the new policy is compared with the old one and put in force.

use super::{PolicyTransition, SLOW_CALL};
use crate::{
    gate::Gate,
    revoke::{
        ApplyError,
        held::{Comparison, Taking},
        naming::NamedFiles,
        receipt::{Receipt, RevokeMode},
        relabel::{changed, relabel},
    },
};
use confine::{Exactness, KernelPolicy, PolicyState, Rights, refuse_taken};
use flask::{Seqno, Sid};
use inode_labels::RuleChange;
use labelling::Tree;
use rustix::io::Result;
use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
    sync::Arc,
    time::Instant,
};
use supervisor::{Stopped, memory::sealed_nothing};

impl<'a> PolicyTransition<'a> {
    /// Puts the new policy, which was asked for at `asked`, in force for everything that is asked
    /// from now on, and stops the sandbox.
    pub(super) fn begin(
        gate: &'a Arc<Gate>,
        (mode, named): (RevokeMode, NamedFiles),
        asked: Instant,
    ) -> std::result::Result<Self, ApplyError> {
        let policy = KernelPolicy::new(&*gate.state.server)?;
        let taken = gate.settled.compare(&*gate.state.server, &policy)?;
        refuse_taken(&taken, mode.kills())?;
        let mut ending = gate.settled.ending(&*gate.state.server, &policy, &taken)?;
        let old = gate.state.policy.load_full();
        let given = |path: &Path| named.gives_at(path);
        let out_of_reach = gate.settled.out_of_reach(&old.plan, &policy.plan, given);
        let nothing = sealed_nothing()?;
        // A file that lies there may have another label by another name, or by where it lay.
        let lost = if named.change == RuleChange::Gives {
            HashSet::new()
        } else {
            policy.plan.taken_labels(&old.plan)
        };
        let earlier = gate.state.labels.unfinished();
        let changed = changed((&old.files, &policy.labels.files), &lost, earlier);
        let (prepared, began) = (asked.elapsed(), Instant::now());
        let changes_files =
            !(policy.plan.same_files(&old.plan) && policy.first.same_files(&old.first));
        let seqno = gate.state.server.seqno()?;
        let stuck = gate.state.targets.quiesce.close(SLOW_CALL);
        let exactness = still_exact(&old.exactness, changes_files);
        put_in_force(gate, policy, exactness, (named.change, lost, seqno));
        let receipt = Receipt {
            prepared,
            out_of_reach,
            seqno: seqno.0,
            complete: true,
            ..Receipt::default()
        };
        let relabels = !changed.is_empty();
        let (known, watching) = (OnceCell::new(), OnceCell::new());
        let taking = Taking { relabels, old: Arc::clone(&old), known, watching };
        let comparison = Comparison::new(gate, taking, named);
        if mode == RevokeMode::End {
            let losing = old.plan.domains.iter().filter(|ssid| comparison.loses(**ssid));
            ending.splice(..0, losing.map(|ssid| (*ssid, "everything".to_owned())));
        }
        let mut change = Self {
            gate,
            mode,
            began,
            stopped: Stopped::new(&gate.state.targets),
            receipt,
            comparison,
            nothing,
            late: BTreeMap::new(),
            stuck: BTreeMap::new(),
            killed: BTreeSet::new(),
            told: BTreeSet::new(),
            names: HashMap::new(),
            changes_files,
            ending,
        };
        change.stop_and_relabel(&stuck, &changed)?;
        Ok(change)
    }

    /// Stops the sandbox, but for the calls of `stuck`, which end, and labels anew the files in
    /// `changed`.
    fn stop_and_relabel(&mut self, stuck: &[(u64, u32)], changed: &[Tree]) -> Result<()> {
        let labels = &self.gate.state.labels;
        // Also if it comes to nothing here.
        labels.leave_unfinished(changed.to_vec());
        self.end_calls(stuck);
        if let Err(error) = self.stop() {
            Gate::reopen(self.gate);
            return Err(error);
        }
        self.receipt.threads = self.stopped.count() as u32;
        self.receipt.stopped = self.began.elapsed();
        // Nobody uses meanwhile what is taken: the run may have made many files there.
        let unfinished = relabel(self.gate, changed);
        self.receipt.complete &= unfinished.is_empty();
        labels.leave_unfinished(unfinished);
        Ok(())
    }
}

/// What of the envelope is as exact under a new policy as it was: nothing on files, if policy on
/// them changes.
fn still_exact(old: &Exactness, changes_files: bool) -> Exactness {
    let still = |exact| if changes_files { Rights::empty() } else { exact };
    let withheld = old.withheld.clone();
    Exactness { all: still(old.all), first: still(old.first), withheld }
}

/// Has labels, and everything that is decided from now on, follow a new policy.
fn put_in_force(
    gate: &Gate,
    policy: KernelPolicy,
    exactness: Exactness,
    (change, taken, seqno): (RuleChange, HashSet<Sid>, Seqno),
) {
    gate.state.inside.policy_changes();
    let KernelPolicy { plan, first, labels, rules, .. } = policy;
    gate.state.labels.change(rules, change, taken);
    gate.sockets.endpoints.change(&labels);
    let now = PolicyState { plan, first, exactness, files: labels.files };
    gate.state.policy.store(Arc::new(now));
    gate.files.paths.forget();
    gate.state.caches.reset(seqno);
    gate.state.targets.quiesce.overtake();
}

//! Runs of the last daemon that go on: their policies are compiled while others are served.

use super::{Shared, say};
use crate::{
    error::{ChangeError, RequestError},
    hosted::Hosted,
    process,
    quota::Amount,
    registry::{Registry, Returning, Run},
    state::{SavedServer, State, StateError},
};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

/// Policies that are compiled at once: one of each user at most.
pub(crate) const COMPILERS: usize = 4;

/// How long a client waits for its runs. It waits for the answer for five seconds.
const WAIT: Duration = Duration::from_secs(3);

/// What is not compiled yet, by user: whoever is compiled for goes to the end.
pub(crate) struct Left(Mutex<Users>);

type Users = VecDeque<(u32, VecDeque<SavedServer>)>;

impl Left {
    fn users(&self) -> MutexGuard<'_, Users> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs that go on, and the servers that they had. What has ended is forgotten.
pub(crate) fn find(state: &State) -> Result<(Registry, Left), StateError> {
    let mut registry = Registry::default();
    let (servers, runs) = state.load()?;
    let mut owners = BTreeMap::new();
    let kept: HashSet<_> = servers.iter().map(|server| server.id).collect();
    for run in runs {
        match process::open(run.pid, run.started).ok().filter(|_| kept.contains(&run.server)) {
            Some(pidfd) => {
                owners.insert(run.server, run.uid);
                registry.expect(Returning { kept: run, pidfd });
            }
            None => state.remove_run(&run.id)?,
        }
    }
    let mut users: BTreeMap<u32, VecDeque<SavedServer>> = BTreeMap::new();
    for server in servers {
        match owners.get(&server.id) {
            Some(uid) => users.entry(*uid).or_default().push_back(server),
            None => state.remove_server(server.id)?,
        }
    }
    Ok((registry, Left(Mutex::new(users.into_iter().collect()))))
}

impl Shared {
    /// Compiles what is left, users in turns, until nothing is or the daemon stops.
    pub(crate) fn take_back(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            let Some((uid, mut servers)) = self.left.users().pop_front() else { return };
            let Some(server) = servers.pop_front() else { continue };
            if let Err(error) = self.serve_again(uid, &server) {
                say(format_args!("{error}"));
            }
            self.left.users().push_back((uid, servers));
        }
    }

    /// Gives the runs of a server that was served before theirs again.
    fn serve_again(&self, uid: u32, server: &SavedServer) -> Result<(), RequestError> {
        let hosted = Hosted::restore(&self.state, (uid, self.quota.labels(uid)), server);
        let mut ended = Vec::new();
        let mut registry = self.registry();
        let runs = registry.returning_to(server.id);
        let counted = hosted.map_err(ChangeError::from).and_then(|hosted| {
            let wanted = Amount { runs: 0, bytes: hosted.size() };
            self.quota.reserve(uid, wanted, registry.held(uid))?;
            Ok(hosted)
        });
        match counted {
            Ok(hosted) => {
                registry.servers.push(hosted.clone());
                for Returning { kept, pidfd } in runs {
                    let id = kept.id.clone();
                    // It has applied some state; until it says which, none is assumed.
                    match Run::new(kept, pidfd, hosted.clone(), flask::Seqno(0)) {
                        Ok(run) => registry.add_returned(run),
                        Err(_) => ended.push(id),
                    }
                }
            }
            Err(error) => {
                say(format_args!("a policy of the last daemon is not served: {error}"));
                ended.extend(runs.into_iter().map(|run| run.kept.id));
            }
        }
        ended.iter().for_each(|id| registry.remove(id));
        drop(registry);
        self.returned.notify_all();
        ended.iter().try_for_each(|id| self.state.remove_run(id))?;
        self.forget_idle()
    }

    /// Waits until all runs of a user have their servers again.
    pub(crate) fn wait_for_all_of(&self, uid: u32) -> Result<(), RequestError> {
        self.wait_while(|registry| registry.returning(uid).any(|run| run.uid == uid))
    }

    /// Waits until that run has its server again, if it ever had.
    pub(crate) fn wait_for_run(&self, id: &str) -> Result<(), RequestError> {
        self.wait_while(|registry| registry.is_returning(id))
    }

    fn wait_while(&self, mut waits: impl FnMut(&Registry) -> bool) -> Result<(), RequestError> {
        let waits = |registry: &mut Registry| waits(registry);
        let waited = self.returned.wait_timeout_while(self.registry(), WAIT, waits);
        let (_registry, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { Err(RequestError::Returning) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Client, records::tests::shared};
    use super::*;
    use crate::{hosted, state::SavedRun};
    use daemon_client::{Changed, Policy, Target};
    use std::{path::Path, sync::Arc, thread};

    const POLICY: &str = r"
        (class file (read)) (classorder (file)) (sid kernel) (sidorder (kernel))
        (sidcontext kernel (u r t ((s0) (s0)))) (user u) (role r) (userrole u r)
        (sensitivity s0) (sensitivityorder (s0)) (userlevel u (s0)) (userrange u ((s0) (s0)))
        (type t) (roletype r t) (boolean open false)
        (booleanif open (true (allow t t (file (read)))))
    ";
    const OTHER: u32 = 4321;

    /// Leaves a run of a user whose process is this one, or no process.
    fn leave(state: &Arc<State>, id: &str, uid: u32, lives: bool) {
        let files = vec![("policy.cil".into(), POLICY.into())];
        let bytes = Policy { files, ..Policy::default() }.to_bytes();
        let owner = (uid, Arc::new(security_server::LabelBudget::new(1 << 20)));
        let hosted = Hosted::new(state, owner, (hosted::digest(&bytes), &bytes)).unwrap();
        let pid = std::process::id();
        let started = if lives { process::started(pid).unwrap() } else { 1 };
        let (id, command) = (id.to_owned(), "make".to_owned());
        let profile = String::new();
        let server = hosted.id;
        state.add_run(&SavedRun { id, server, uid, pid, started, command, profile }).unwrap();
    }

    fn restarted(directory: &Path) -> Shared {
        let state = Arc::new(State::open(&directory.join("state.db")).unwrap());
        leave(&state, "own", 0, true);
        leave(&state, "other", OTHER, true);
        leave(&state, "ended", 0, false);
        drop(state);
        shared(directory)
    }

    fn ids(shared: &Shared, uid: u32) -> Vec<String> {
        shared.runs(client(uid), 0).0.into_iter().map(|run| run.id).collect()
    }

    fn client(uid: u32) -> Client {
        Client { uid, pid: std::process::id() }
    }

    #[test]
    fn a_user_waits_for_runs_of_its_own_and_for_those_of_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let shared = restarted(directory.path());
        assert_eq!(ids(&shared, 0), ["other", "own"], "what waits is listed, what ended is not");
        assert_eq!(ids(&shared, OTHER), ["other"]);
        shared.wait_for_all_of(1).expect("it has none");
        assert!(matches!(shared.wait_for_all_of(OTHER), Err(RequestError::Returning)));
        // Users in turns, by number: root's are there first.
        let (uid, mut servers) = shared.left.users().pop_front().unwrap();
        shared.serve_again(uid, &servers.pop_front().unwrap()).unwrap();
        shared.attach(client(0), "own", None).expect("served again");
        let named = shared.set(client(0), &Target::Run("oth".into()), &[]).unwrap_err();
        assert!(matches!(named, ChangeError::Returning), "{named}");
        // Of those that are there, none has it.
        let set = shared.set(client(0), &Target::All, &[("more".into(), true)]).unwrap();
        let [Changed { complete: false, members, refused: Some(refused), .. }] = &*set else {
            panic!("{set:?}")
        };
        assert_eq!(members[0].run, "other");
        assert!(refused.contains("user 4321"), "{refused}");
        thread::scope(|scope| {
            let waits = scope.spawn(|| shared.attach(client(OTHER), "other", None).map(drop));
            shared.take_back();
            waits.join().unwrap().expect("served as soon as it is compiled");
        });
        assert_eq!(ids(&shared, 0), ["other", "own"]);
    }

    #[test]
    fn what_a_user_had_is_counted_when_the_daemon_starts_anew() {
        let directory = tempfile::tempdir().unwrap();
        let shared = restarted(directory.path());
        let most = shared.reserve_bytes(0, (256 << 20) - 1).expect("there is room");
        shared.take_back();
        assert_eq!(ids(&shared, 0), ["other"], "there is no room for the first one's policy");
        drop(most);
        drop(shared);
        let again = super::super::records::tests::shared(directory.path());
        again.take_back();
        assert_eq!(ids(&again, 0), ["other"], "it has ended");
    }

    #[test]
    fn records_of_a_run_that_waits_stay_those_of_a_run_that_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let state = Arc::new(State::open(&directory.path().join("state.db")).unwrap());
        leave(&state, "own", 0, true);
        drop(state);
        let shared = shared(directory.path());
        let run = daemon_client::NewRun { id: "own".into(), ..Default::default() };
        drop(shared.begin_spool(&run, 0).unwrap());
        shared.round(&mut BTreeMap::new()).unwrap();
        let spools = |shared: &Shared| shared.records().spools.contains_key("own");
        assert!(spools(&shared));
        shared.take_back();
        shared.round(&mut BTreeMap::new()).unwrap();
        assert!(spools(&shared), "its process goes on");
    }
}

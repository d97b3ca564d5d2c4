//! Every case in which the filter, or the monitor in its name, refuses whatever policy says; for
//! tests that make each of these calls. Made from the tables that the filter is compiled from.

use super::{
    NEW_NAMESPACES,
    arguments::F_SETOWN_EX,
    calls::{IPC, PROBED, REFUSED, RUNS},
    decided::DECIDED,
    requests::REFUSED_IOCTLS,
};
use syscalls::Sysno;

/// A call with arguments that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The call.
    pub call: Sysno,
    /// Arguments of which those that decide are as they must be, and the others harmless.
    pub args: [u64; 6],
    /// What the program sees.
    pub errno: i32,
    /// The monitor learns of it, and keeps a record.
    pub is_recorded: bool,
    /// In which runs.
    pub only: Only,
}

/// In which runs something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// In all.
    Always,
    /// Where the System V objects of the machine are in reach, or there are several domains.
    SharedObjects,
    /// Where there are several domains.
    Domains,
}

/// All of them.
#[must_use]
pub fn refusals() -> Vec<Refused> {
    let mut all: Vec<Refused> = Vec::new();
    all.extend(REFUSED.iter().filter(|call| **call != Sysno::unshare).map(|call| told(*call, [])));
    all.extend(IPC.iter().map(|call| Refused { only: Only::SharedObjects, ..told(*call, []) }));
    all.extend(PROBED.iter().map(|call| Refused { errno: libc::ENOSYS, ..told(*call, []) }));
    all.extend(REFUSED_IOCTLS.iter().map(|request| told(Sysno::ioctl, [0, (*request).into()])));
    let kinds = (0..32).map(|bit| 1_u64 << bit);
    let kinds = kinds.filter(|bit| u64::from(NEW_NAMESPACES) & bit != 0);
    for kind in kinds {
        all.push(told(Sysno::clone, [kind | libc::SIGCHLD as u64]));
        all.push(told(Sysno::unshare, [kind]));
    }
    all.push(told(Sysno::unshare, [CLONE_NEWTIME]));
    all.push(told(Sysno::clone, [(libc::CLONE_PARENT | libc::SIGCHLD) as u64]));
    let fast_open = libc::MSG_FASTOPEN as u64;
    let sends: [(Sysno, [u64; 4]); 3] = [
        (Sysno::sendto, [0, 0, 0, fast_open]),
        (Sysno::sendmsg, [0, 0, fast_open, 0]),
        (Sysno::sendmmsg, [0, 0, 0, fast_open]),
    ];
    all.extend(sends.map(|(call, args)| Refused { errno: libc::EOPNOTSUPP, ..told(call, args) }));
    all.push(told(Sysno::get_robust_list, [1]));
    all.push(told(Sysno::fcntl, [0, F_SETOWN_EX.into()]));
    all.push(told(Sysno::prctl, [libc::PR_SET_MM as u64]));
    let subreaper = libc::PR_SET_CHILD_SUBREAPER as u64;
    all.push(Refused { only: Only::Domains, ..told(Sysno::prctl, [subreaper, 1]) });
    all.extend(in_the_kernel());
    all
}

/// What fails without anybody being told: the program sees an older kernel, or the mark of its
/// label.
fn in_the_kernel() -> impl Iterator<Item = Refused> {
    let silent =
        |call, args: [u64; 3], errno| Refused { errno, is_recorded: false, ..told(call, args) };
    let known = |call: &Sysno| {
        let decided = DECIDED.iter().any(|(_, calls)| calls.contains(call));
        let by_arguments = [Sysno::clone3, Sysno::ioctl].contains(call);
        decided || by_arguments || RUNS.iter().any(|group| group.calls.contains(call))
    };
    let unknown = Sysno::iter().filter(move |call| !known(call));
    let unknown = unknown.map(move |call| silent(call, [0; 3], libc::ENOSYS));
    let locks = u64::from(libc::RLIMIT_LOCKS);
    let marks = [(Sysno::setrlimit, [locks, 1, 0]), (Sysno::prlimit64, [0, locks, 1])];
    let marks = marks.map(|(call, args)| silent(call, args, libc::EPERM));
    let by_descriptor = silent(Sysno::pidfd_send_signal, [0; 3], libc::ENOSYS);
    let by_descriptor = Refused { only: Only::Domains, ..by_descriptor };
    let several = marks.into_iter().chain([by_descriptor]);
    let always = [
        silent(Sysno::clone3, [0; 3], libc::ENOSYS),
        silent(Sysno::fcntl, [0, 1024, 0], libc::EINVAL),
        silent(Sysno::unshare, [UNSHARE_EMPTY_MNTNS, 0, 0], libc::EINVAL),
        silent(Sysno::prctl, [79, 0, 0], libc::EINVAL),
        silent(Sysno::prctl, [libc::PR_SET_DUMPABLE as u64, 2, 0], libc::EINVAL),
    ];
    always.into_iter().chain(several).chain(unknown)
}

/// A flag that Linux 7.1 has added to unshare(2): another namespace of mounts.
const UNSHARE_EMPTY_MNTNS: u64 = 0x0010_0000;
/// `CLONE_NEWTIME` of unshare(2).
const CLONE_NEWTIME: u64 = 0x80;

fn told<const N: usize>(call: Sysno, first: [u64; N]) -> Refused {
    let mut args = [0; 6];
    args[..N].copy_from_slice(&first);
    Refused { call, args, errno: libc::EPERM, is_recorded: true, only: Only::Always }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{Action, Rule, Test};
    use crate::filter::{Handler, Traps, arguments::special, compile, handler, reasons::all_traps};

    fn holds(test: Test, args: &[u64; 6]) -> bool {
        let low = |arg: u8| args[usize::from(arg)] as u32;
        match test {
            Test::Masked { arg, mask, value } => low(arg) & mask == value,
            Test::Null { arg } => args[usize::from(arg)] == 0,
            Test::Range { arg, low: from, high } => (from..=high).contains(&low(arg)),
            Test::Within { arg, value, of, low: from, high } => {
                low(arg) == value && (from..=high).contains(&low(of))
            }
            Test::Flagged { arg, value, of, mask } => low(arg) == value && low(of) & mask == mask,
        }
    }

    /// Which line of a rule decides a call, and how.
    fn line(rule: &Rule, args: &[u64; 6]) -> (usize, Action) {
        let found = rule.tests.iter().position(|(test, _)| holds(*test, args));
        found.map_or((rule.tests.len(), rule.otherwise), |at| (at, rule.tests[at].1))
    }

    /// Whether the monitor refuses what the filter hands over.
    fn is_refused(call: Sysno, rule: &Rule, at: usize) -> bool {
        match rule.tests.get(at) {
            // What of ioctl, clone, fcntl and sends is decided is no refusal.
            Some((Test::Masked { value, .. }, _)) if call == Sysno::ioctl => {
                REFUSED_IOCTLS.contains(value)
            }
            Some((Test::Masked { value, .. }, _)) if call == Sysno::fcntl => *value == F_SETOWN_EX,
            Some((Test::Masked { value, .. }, _)) if call == Sysno::clone => {
                [libc::CLONE_UNTRACED, libc::CLONE_FILES]
                    .iter()
                    .all(|flag| *value != flag.cast_unsigned())
            }
            Some(_) => {
                matches!(call, Sysno::sendto | Sysno::sendmsg | Sysno::sendmmsg)
                    || handler(call, &[0; 6]) == Some(Handler::Refused)
            }
            None => handler(call, &[0; 6]) == Some(Handler::Refused),
        }
    }

    /// Every line of every rule, in every filter there can be.
    #[test]
    fn every_refusal_of_the_filter_is_listed() {
        let all = refusals();
        for traps in all_traps() {
            for (call, rule) in special(traps) {
                let lines = rule.tests.iter().map(|(_, action)| *action).chain([rule.otherwise]);
                for (at, action) in lines.enumerate() {
                    let refuses = match action {
                        Action::Allow | Action::Errno(0) => false,
                        Action::Errno(_) => true,
                        Action::Notify => is_refused(call, &rule, at),
                    };
                    let of_it =
                        |it: &&Refused| it.call == call && line(&rule, &it.args) == (at, action);
                    assert!(
                        !refuses || all.iter().any(|it| of_it(&it)),
                        "{call}: line {at} of {rule:?} is not listed"
                    );
                }
            }
        }
        for call in Sysno::iter().filter(|call| handler(*call, &[0; 6]) == Some(Handler::Refused)) {
            assert!(all.iter().any(|it| it.call == call), "{call}");
        }
    }

    #[test]
    fn what_is_listed_is_refused_as_it_says() {
        let domains = all_traps().find(|it| it.lineage && !it.private_ipc && !it.one_id).unwrap();
        let program = compile(Traps { looks: true, ..domains }).unwrap();
        for refused in refusals() {
            let answer = crate::bpf::tests::run(
                &program,
                0xc000_003e,
                refused.call.id() as u32,
                refused.args,
            );
            let want = match refused.is_recorded {
                true => libc::SECCOMP_RET_USER_NOTIF,
                false => libc::SECCOMP_RET_ERRNO | refused.errno as u32,
            };
            assert_eq!(answer, want, "{refused:?}");
        }
    }
}

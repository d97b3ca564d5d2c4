//! Labels of files that are renamed, changed, replaced and forgotten.

use super::{entry::InodeEntry, *};
use std::collections::HashSet;
use std::{
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

fn sid(number: u32) -> Sid {
    Sid::new(number).unwrap()
}

#[test]
fn a_renamed_file_keeps_its_label() {
    let labels = Labels::new(PathRules::new(&[]).unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    let status = Status::of(file.as_file().as_fd()).unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let at = FileRef::Open(file.as_file().as_fd(), own_fds.as_fd());
    labels.created(&status, at, sid(109));
    let unused = || -> rustix::io::Result<PathBuf> { panic!("the inode is known") };
    assert_eq!(labels.of_file(&status, at, unused).unwrap().sid, sid(109));
}

#[test]
fn a_label_by_rule_replaces_none_that_the_file_was_given_meanwhile() {
    let labels = Labels::new(PathRules::new(&[rule("/.*", 1)]).unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let status = Status::of(file.as_file().as_fd()).unwrap();
    let at = FileRef::Open(file.as_file().as_fd(), own_fds.as_fd());
    let path = || {
        labels.created(&status, at, sid(109));
        Ok("/a".into())
    };
    assert_eq!(labels.of_file(&status, at, path).unwrap().sid, sid(109));
    assert_eq!(labels.of_file(&status, at, || Ok("/a".into())).unwrap().sid, sid(109));
}

#[test]
fn a_file_that_gets_number_and_birth_of_one_that_is_gone_has_not_its_label() {
    // Not in memory: there, numbers do not come again.
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let labels = Labels::new(PathRules::new(&[]).unwrap());
    let make = || {
        let file = tempfile::tempfile_in(&directory).unwrap();
        let status = Status::of(file.as_fd()).unwrap();
        (file, status)
    };
    let mut again = 0;
    for _ in 0..1000 {
        let (gone, of_gone) = make();
        labels.created(&of_gone, FileRef::Open(gone.as_fd(), own_fds.as_fd()), sid(109));
        drop(gone);
        let (new, status) = make();
        let at = FileRef::Open(new.as_fd(), own_fds.as_fd());
        again += usize::from(status == of_gone);
        assert_ne!(labels.of_file(&status, at, || Ok("/a".into())).unwrap().sid, sid(109));
    }
    eprintln!("{again} of 1000 files had number and birth of the one before");
}

#[test]
fn where_no_handle_tells_files_are_kept_alive_until_their_birth_is_over() {
    let kept = KeptAlive::default();
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let (file, began) = (tempfile::tempfile_in(&directory).unwrap(), Instant::now());
    let status = Status::of(file.as_fd()).unwrap();
    let at = FileRef::Open(file.as_fd(), own_fds.as_fd());
    for _ in 0..1000 {
        assert!(kept.keep(at.hold(&status).unwrap(), true));
    }
    // 256 at a time, for 30 ms each.
    assert!(began.elapsed() > Duration::from_millis(90), "{:?}", began.elapsed());
    while !kept.keep(at.hold(&status).unwrap(), false) {}
    std::thread::sleep(Duration::from_millis(40));
    kept.let_go();
    assert_eq!(kept.count(), 0);
}

#[test]
fn a_label_of_long_ago_is_not_the_one_before() {
    let rules = |number: u32| {
        let rule =
            flask::FileRule { path: "/.*".into(), kind: FileKind::Any, sid: Some(sid(number)) };
        PathRules::new(&[rule]).unwrap()
    };
    let labels = Labels::new(rules(101));
    let file = tempfile::NamedTempFile::new().unwrap();
    let status = Status::of(file.as_file().as_fd()).unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let at = FileRef::Open(file.as_file().as_fd(), own_fds.as_fd());
    let label = || labels.of_file(&status, at, || Ok("/a".into())).unwrap();
    assert_eq!(label().sid, sid(101));
    labels.change(rules(102), RuleChange::MayTake, HashSet::new());
    labels.change(rules(103), RuleChange::MayTake, HashSet::new());
    assert_eq!((label().before(), label().sid), (sid(102), sid(103)));
}

#[test]
fn what_an_earlier_change_has_not_reached_is_a_part_of_the_next() {
    let all = rule("/.*", 1);
    let probe = Probe::new(std::slice::from_ref(&all));
    assert_eq!(probe.met("/link"), [1]);
    let after = [all.clone(), rule("/key", 2)];
    let left = vec![Tree { path: "/".into(), deep: true }];
    let has_changed = || probe.labels.has_changed(Path::new("/key"), FileKind::File);
    // Nobody was found who has it labelled anew.
    probe.change(&after, RuleChange::MayTake);
    probe.labels.leave_unfinished(left.clone());
    probe.change(&after, RuleChange::MayTake);
    assert!(has_changed(), "the same again has nothing to do");
    assert_eq!(probe.labels.unfinished(), left);
    probe.relabel("/key");
    let (status, at) = probe.at();
    let label = probe.labels.of_file(&status, at, || Ok("/link".into())).unwrap();
    assert_eq!((label.before(), label.sid), (sid(1), sid(2)));
    // Nor does what is given meanwhile.
    probe.change(&[all, rule("/key", 2), rule("/other", 3)], RuleChange::Gives);
    assert!(has_changed());
    probe.labels.leave_unfinished(Vec::new());
    probe.change(&after, RuleChange::MayTake);
    assert!(!has_changed());
}

fn rule(path: &str, number: u32) -> flask::FileRule {
    flask::FileRule { path: path.into(), kind: FileKind::Any, sid: Some(sid(number)) }
}

/// A file in memory, asked about as if it lay at names of one's choice.
struct Probe {
    labels: Labels,
    file: tempfile::NamedTempFile,
    own_fds: std::fs::File,
}

impl Probe {
    fn new(rules: &[flask::FileRule]) -> Self {
        let labels = Labels::new(PathRules::new(rules).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        Self { labels, file, own_fds: std::fs::File::open("/proc/self/fd").unwrap() }
    }

    fn at(&self) -> (Status, FileRef<'_>) {
        let fd = self.file.as_file().as_fd();
        (Status::of(fd).unwrap(), FileRef::Open(fd, self.own_fds.as_fd()))
    }

    /// Its labels when it is met at `path`.
    fn met(&self, path: &str) -> Vec<u32> {
        let (status, at) = self.at();
        let label = self.labels.of_file(&status, at, || Ok(path.into())).unwrap();
        std::iter::once(&label.sid).chain(label.also()).map(|sid| sid.get()).collect()
    }

    /// Something of what lies where these rules say `number` is taken, and nothing labelled
    /// otherwise.
    fn take(&self, rules: &[flask::FileRule], number: u32) {
        let taken = HashSet::from([sid(number)]);
        self.labels.change(PathRules::new(rules).unwrap(), RuleChange::MayTake, taken);
    }

    /// Rules speak of it by `name`, which is not its only one.
    fn relabel(&self, name: &str) {
        let (status, at) = self.at();
        self.labels.relabel(&status, at, Path::new(name), true);
    }

    fn change(&self, rules: &[flask::FileRule], change: RuleChange) {
        self.labels.change(PathRules::new(rules).unwrap(), change, HashSet::new());
    }
}

#[test]
fn who_takes_by_a_name_gives_nothing_of_what_was_renamed_to_it_and_who_gives_does() {
    let probe = Probe::new(&[rule("/.*", 1), rule("/a", 2)]);
    assert_eq!(probe.met("/a"), [2]);
    // Renamed; and something of its new name is taken.
    probe.change(&[rule("/.*", 1), rule("/a", 2), rule("/b", 3)], RuleChange::MayTake);
    assert_eq!(probe.met("/b"), [3, 2]);
    // Something else is; and renamed again.
    probe.change(
        &[rule("/.*", 1), rule("/a", 2), rule("/b", 3), rule("/x", 9)],
        RuleChange::MayTake,
    );
    assert_eq!((probe.met("/b"), probe.met("/c")), (vec![3, 2], vec![3, 2]));
    probe.change(&[rule("/.*", 1), rule("/a", 2), rule("/b", 5)], RuleChange::Gives);
    assert_eq!(probe.met("/b"), [5]);
    // What rules are about one name only.
    let link = probe.labels.renewed(None, Path::new("/b"), FileKind::Symlink);
    assert_eq!((link.sid, link.is_by_place()), (sid(5), true));
}

#[test]
fn a_file_with_several_names_has_what_rules_say_of_each() {
    let (all, a, b) = (rule("/.*", 1), rule("/a", 2), rule("/b", 3));
    let probe = Probe::new(std::slice::from_ref(&all));
    assert_eq!(probe.met("/a"), [1]);
    let pinned = |rules: &[flask::FileRule], change: RuleChange, name: &str| {
        probe.change(rules, change);
        probe.relabel(name);
    };
    pinned(&[all.clone(), a.clone()], RuleChange::MayTake, "/a");
    assert_eq!((probe.met("/a"), probe.met("/b")), (vec![2], vec![2]));
    pinned(&[all.clone(), a.clone(), b.clone()], RuleChange::MayTake, "/b");
    assert_eq!(
        (probe.met("/a"), probe.met("/b"), probe.met("/c")),
        (vec![3, 2], vec![3, 2], vec![3, 2])
    );
    // Given by the one name, it stays taken by the other, whichever that is.
    pinned(&[all.clone(), a.clone()], RuleChange::Gives, "/b");
    assert_eq!((probe.met("/a"), probe.met("/b")), (vec![2], vec![2]));
    pinned(std::slice::from_ref(&all), RuleChange::Gives, "/a");
    assert_eq!((probe.met("/a"), probe.met("/b")), (vec![1], vec![1]));
}

#[test]
fn what_is_taken_under_the_same_rule_is_taken_by_every_name() {
    let rules = [rule("/.*", 1), rule("/a", 2)];
    let probe = Probe::new(&rules);
    assert_eq!(probe.met("/x"), [1]);
    // By a second name, and by one that it was renamed to.
    probe.take(&rules, 2);
    assert!(probe.labels.has_changed(Path::new("/a"), FileKind::File));
    assert!(!probe.labels.has_changed(Path::new("/x"), FileKind::File));
    probe.relabel("/a");
    let (status, at) = probe.at();
    let label = probe.labels.of_file(&status, at, || Ok("/x".into())).unwrap();
    assert_eq!((label.sid, label.before(), label.also()), (sid(2), sid(1), &[sid(1)][..]));
}

#[test]
fn one_change_about_two_names_of_a_file_counts_for_both() {
    let probe = Probe::new(&[rule("/.*", 1)]);
    assert_eq!(probe.met("/b"), [1]);
    probe.change(&[rule("/.*", 1), rule("/a", 2), rule("/b", 3)], RuleChange::MayTake);
    probe.relabel("/a");
    probe.relabel("/b");
    for name in ["/a", "/b", "/c"] {
        let labels = probe.met(name);
        assert!(labels.contains(&2) && labels.contains(&3), "{name}: {labels:?}");
    }
}

#[test]
fn a_number_says_nothing_where_no_births_are_told() {
    let probe = Probe::new(&[rule("/.*", 1)]);
    probe.met("/a");
    let (known, _) = probe.at();
    let may = |device| probe.labels.may_have_another(device, known.number);
    let terminals = std::fs::File::open("/dev/pts").unwrap();
    let status = Status::of(terminals.as_fd()).unwrap();
    // Devices are not told alike everywhere.
    assert!(!may(known.device) && !may(status.device));
    assert!(probe.labels.may_have_another(known.device, 1 << 40));
    let at = FileRef::Open(terminals.as_fd(), probe.own_fds.as_fd());
    probe.labels.of_file(&status, at, || Ok("/dev/pts".into())).unwrap();
    assert!(!may(known.device) && may(status.device));
}

#[test]
fn a_flood_of_files_makes_no_label_be_forgotten_but_its_own() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let labels = Labels::new(PathRules::new(&[rule("/.*", 1), rule("/denied", 2)]).unwrap());
    let file = tempfile::NamedTempFile::new_in(&directory).unwrap();
    let status = Status::of(file.as_file().as_fd()).unwrap();
    let at = FileRef::Open(file.as_file().as_fd(), own_fds.as_fd());
    let label = |path: &str| labels.of_file(&status, at, || Ok(path.into())).unwrap();
    assert_eq!(label("/denied").sid, sid(2));
    let entry = labels.lock().values().next().unwrap().clone();
    // A common label with a rare one beside it is rare.
    let both = Label { also: [sid(2)].into(), ..Label::new(sid(1), labels.newest()) };
    let rare = Inode { number: 1 << 39, ..status.inode().unwrap() };
    labels.remember(rare, InodeEntry { label: Arc::new(both), ..entry.clone() });
    for number in 0..3 * Labels::MOST as u64 {
        let inode = Inode { number: number + (1 << 40), ..status.inode().unwrap() };
        let label = labels.label(sid(if number % 3 == 0 { 3 } else { 1 }));
        labels.remember(inode, InodeEntry { label, ..entry.clone() });
    }
    assert!(labels.has_forgotten());
    assert!(labels.lock().len() <= Labels::MOST);
    assert_eq!(label("/renamed").sid, sid(2));
    assert_eq!(labels.lock()[&rare].label.also(), [sid(2)]);
}

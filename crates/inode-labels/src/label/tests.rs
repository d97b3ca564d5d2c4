//! Labels of files that are renamed, changed, replaced and forgotten.

use super::*;
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
    labels.change(rules(102), false);
    labels.change(rules(103), false);
    assert_eq!((label().before(), label().sid), (sid(102), sid(103)));
}

fn rule(path: &str, number: u32) -> flask::FileRule {
    flask::FileRule { path: path.into(), kind: FileKind::Any, sid: Some(sid(number)) }
}

#[test]
fn who_takes_by_a_name_gives_nothing_of_what_was_renamed_to_it_and_who_gives_does() {
    let rules = |more: &[flask::FileRule]| {
        let denied = [rule("/.*", 1), rule("/a", 2)];
        PathRules::new(&[&denied[..], more].concat()).unwrap()
    };
    let labels = Labels::new(rules(&[]));
    let file = tempfile::NamedTempFile::new().unwrap();
    let status = Status::of(file.as_file().as_fd()).unwrap();
    let own_fds = std::fs::File::open("/proc/self/fd").unwrap();
    let at = FileRef::Open(file.as_file().as_fd(), own_fds.as_fd());
    let label = |path: &str| labels.of_file(&status, at, || Ok(path.into())).unwrap();
    assert_eq!(label("/a").sid, sid(2));
    // Renamed; and something of its new name is taken.
    labels.change(rules(&[rule("/b", 3)]), false);
    assert_eq!((label("/b").sid, label("/b").before()), (sid(2), sid(2)));
    // Where it was met, it has what is taken there.
    labels.change(rules(&[rule("/a", 4), rule("/b", 3)]), false);
    assert_eq!(label("/a").sid, sid(4));
    labels.change(rules(&[rule("/a", 4), rule("/b", 5)]), true);
    assert_eq!((label("/b").sid, label("/b").before()), (sid(5), sid(4)));
    // What rules are about one name only.
    labels.change(rules(&[rule("/a", 4), rule("/b", 6)]), false);
    assert_eq!(labels.renewed(None, Path::new("/b"), FileKind::Symlink).sid, sid(6));
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
    for number in 0..3 * Labels::MOST as u64 {
        let inode = Inode { number: number + (1 << 40), ..status.inode().unwrap() };
        let label = labels.label(sid(if number % 3 == 0 { 3 } else { 1 }));
        let mut seen = labels.lock();
        if seen.len() >= Labels::MOST {
            forget_most(&mut seen);
        }
        seen.insert(inode, Entry { label, ..entry.clone() });
    }
    assert!(labels.lock().len() <= Labels::MOST);
    assert_eq!(label("/renamed").sid, sid(2));
}

//! What domains may do on files, by their labels, in the words of policy and of Landlock.

use super::domains::runs;
use flask::{AccessVector, Class, Question, SecurityServer, Sid, Unreachable, perm};
use landlock::{Access, AccessFs, BitFlags};
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

/// Rights in the words of Landlock.
pub type Rights = BitFlags<AccessFs>;

/// Rights on files, by class and permission. A right is granted when all of one row's permissions
/// are.
const FILE_RIGHTS: &[(AccessFs, AccessVector)] = &[
    (AccessFs::ReadFile, AccessVector(perm::file::READ.0 | perm::file::OPEN.0)),
    (AccessFs::WriteFile, AccessVector(perm::file::WRITE.0 | perm::file::OPEN.0)),
    (AccessFs::Truncate, perm::file::WRITE),
    (AccessFs::Execute, perm::file::EXECUTE),
    (AccessFs::MakeReg, perm::file::CREATE),
    (AccessFs::RemoveFile, perm::file::UNLINK),
    (AccessFs::Refer, perm::file::LINK),
];

/// The classes of files.
const CLASSES: [Class; 7] = [
    Class::File,
    Class::Dir,
    Class::LnkFile,
    Class::ChrFile,
    Class::BlkFile,
    Class::FifoFile,
    Class::SockFile,
];

/// The file classes that [`FILE_RIGHTS`] must agree on before an envelope can be exact for them.
const FILE_CLASSES: [Class; 3] = [Class::File, Class::ChrFile, Class::FifoFile];

/// Rights on directories and what is made in them.
const DIR_RIGHTS: &[(AccessFs, Class, AccessVector)] = &[
    (AccessFs::ReadDir, Class::Dir, AccessVector(perm::dir::READ.0 | perm::dir::OPEN.0)),
    (AccessFs::RemoveDir, Class::Dir, perm::dir::RMDIR),
    (AccessFs::MakeDir, Class::Dir, perm::dir::CREATE),
    (AccessFs::MakeSym, Class::LnkFile, perm::lnk_file::CREATE),
    (AccessFs::MakeFifo, Class::FifoFile, perm::fifo_file::CREATE),
    (AccessFs::MakeSock, Class::SockFile, perm::sock_file::CREATE),
    (AccessFs::MakeChar, Class::ChrFile, perm::chr_file::CREATE),
    (AccessFs::MakeBlock, Class::BlkFile, perm::blk_file::CREATE),
];

/// What a domain may do on each class of file with one label.
type Vectors = [AccessVector; CLASSES.len()];

/// What domains may do on files: by domain and label.
#[derive(Clone, Debug, Default)]
pub(super) struct Granted(HashMap<(Sid, Sid), Vectors>);

/// What a domain may do on files with one label.
#[derive(Clone, Copy)]
pub(super) struct FileRights {
    /// On some class of file.
    pub(super) any: Rights,
    /// On every class.
    pub(super) all: Rights,
    /// It may know of them.
    pub(super) is_seen: bool,
    vectors: Vectors,
}

/// A security server, asked once about each domain and label.
pub(super) struct KnownRights<'a> {
    server: &'a dyn SecurityServer,
    known: RefCell<HashMap<(Sid, Sid), FileRights>>,
}

impl Granted {
    /// The labels of which a domain has lost since `before` what it may do on others.
    pub(super) fn taken_since(&self, before: &Self) -> HashSet<Sid> {
        let mut most: HashMap<Sid, Vectors> = HashMap::new();
        for ((ssid, _), now) in &self.0 {
            let most = most.entry(*ssid).or_insert([AccessVector::NONE; CLASSES.len()]);
            most.iter_mut().zip(now).for_each(|(most, now)| *most |= *now);
        }
        let is_taken = |(question, now): &(&(Sid, Sid), &Vectors)| {
            let (Some(before), Some(most)) = (before.0.get(question), most.get(&question.0)) else {
                return false;
            };
            let classes = before.iter().zip(*now).zip(most);
            classes
                .into_iter()
                .any(|((was, now), most)| !(was.missing_from(*now) & *most).is_empty())
        };
        self.0.iter().filter(is_taken).map(|((_, tsid), _)| *tsid).collect()
    }
}

impl<'a> KnownRights<'a> {
    pub(super) fn new(server: &'a dyn SecurityServer) -> Self {
        Self { server, known: RefCell::default() }
    }

    /// All that was answered.
    pub(super) fn granted(self) -> Granted {
        let known = self.known.into_inner().into_iter();
        Granted(known.map(|(question, rights)| (question, rights.vectors)).collect())
    }

    /// What `ssid` may do on files labelled `tsid`.
    pub(super) fn rights(&self, ssid: Sid, tsid: Sid) -> Result<FileRights, Unreachable> {
        if let Some(known) = self.known.borrow().get(&(ssid, tsid)) {
            return Ok(*known);
        }
        let rights = self.ask(ssid, tsid)?;
        self.known.borrow_mut().insert((ssid, tsid), rights);
        Ok(rights)
    }

    fn ask(&self, ssid: Sid, tsid: Sid) -> Result<FileRights, Unreachable> {
        let mut vectors = [AccessVector::NONE; CLASSES.len()];
        for (allowed, tclass) in vectors.iter_mut().zip(CLASSES) {
            let decision = self.server.compute_av(Question { ssid, tsid, tclass })?;
            *allowed = if decision.permissive { AccessVector::ALL } else { decision.allowed };
        }
        let allowed = |tclass| {
            let mut answers = CLASSES.into_iter().zip(vectors);
            answers.find(|(class, _)| *class == tclass).map_or(AccessVector::NONE, |it| it.1)
        };
        let (mut any, mut all) = (Rights::empty(), AccessFs::from_all(landlock::ABI::V5));
        for class in FILE_CLASSES {
            let allowed = allowed(class);
            let executes = class == Class::File && allowed.contains(perm::file::EXECUTE);
            let fails = executes && !runs(self.server, ssid, tsid)?;
            for &(right, needed) in FILE_RIGHTS {
                // Devices and FIFOs are not truncated, executed or made by what these rights stand
                // for.
                let applies = class == Class::File
                    || matches!(right, AccessFs::ReadFile | AccessFs::WriteFile);
                if allowed.contains(needed) && !(fails && right == AccessFs::Execute) {
                    any |= right;
                } else if applies {
                    all &= !BitFlags::from(right);
                }
            }
        }
        for &(right, class, needed) in DIR_RIGHTS {
            if allowed(class).contains(needed) {
                any |= right;
            } else {
                all &= !BitFlags::from(right);
            }
        }
        if any.intersects(AccessFs::ReadFile | AccessFs::WriteFile) {
            any |= AccessFs::IoctlDev;
        }
        all &= any;
        let is_seen = allowed(Class::File).contains(perm::file::GETATTR);
        Ok(FileRights { any, all, is_seen, vectors })
    }
}

//! A decision as a run recorded it, as far as a profile can speak about it.

use crate::names::is_git_object;
use serde::Deserialize;
use std::path::Path;

/// One decision: a line of an audit trail, or a denial in the record of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Access {
    /// Whether the operation passed.
    pub granted: bool,
    /// Name of the thread.
    pub comm: String,
    /// The program that asked.
    pub program: String,
    /// The system call.
    pub call: String,
    /// The object, as the program or the kernel names it.
    pub object: String,
    /// Security context of the subject.
    pub scontext: String,
    /// Security context of the object.
    pub tcontext: String,
    /// Class of the object.
    pub tclass: String,
    /// What was asked for.
    pub requested: Vec<String>,
}

impl Access {
    /// The domain of the subject, as a profile names it; `None` for the base domain.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        Some(flask::domain_of(&self.scontext)).filter(|name| *name != "main")
    }

    /// The same as what it was for: who connects to a socket that cannot be seen is recorded as
    /// looking for its file; Git reads an object that it cannot link, and copies it.
    #[must_use]
    pub fn as_meant(self) -> Self {
        if self.does_without_link() {
            return Self { requested: vec!["read".into(), "open".into()], ..self };
        }
        let (tclass, wants) = match self.call.as_str() {
            "connect" => ("unix_stream_socket", "connectto"),
            "sendto" | "sendmsg" | "sendmmsg" => ("unix_dgram_socket", "sendto"),
            _ => return self,
        };
        // What covers one that is denied is a file.
        if !["sock_file", "file"].contains(&self.tclass.as_str()) {
            return self;
        }
        Self {
            tclass: tclass.into(),
            requested: vec![wants.into()],
            object: format!("unix:{}", self.object),
            ..self
        }
    }

    fn does_without_link(&self) -> bool {
        self.tclass == "file" && self.requested == ["link"] && copies(&self.program, &self.object)
    }

    /// Whether `permission` was asked for.
    #[must_use]
    pub fn wants(&self, permission: &str) -> bool {
        self.requested.iter().any(|name| name == permission)
    }

    /// The path, if the object is a file with one that a policy can name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let odd = |c: char| !flask::is_quotable(c) || c == char::REPLACEMENT_CHARACTER;
        let is_file = is_file(&self.tclass) && self.object.starts_with('/');
        (is_file && !self.object.contains(odd)).then(|| Path::new(&self.object))
    }

    /// Whether the object is a process or something of its own, such as a socket that it has made.
    #[must_use]
    pub(crate) fn is_about_a_process(&self) -> bool {
        flask::ContextParts::of(&self.tcontext).is_some_and(|parts| parts.role == "dewar_r")
    }

    /// The name of the program for people.
    #[must_use]
    pub fn who(&self) -> &str {
        let name = self.program.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { &self.comm } else { name }
    }
}

/// Whether a program copies a file where it cannot have another name for it, as Git does with the
/// objects of a clone.
#[must_use]
pub fn copies(program: &str, file: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "git")
        && is_git_object(Path::new(file))
}

/// Whether objects of a class are files.
pub(crate) fn is_file(class: &str) -> bool {
    ["file", "dir", "lnk_file", "chr_file", "blk_file", "fifo_file", "sock_file"].contains(&class)
}

//! A decision as a run recorded it, as far as a profile can speak about it.

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
        let name = flask::type_of(&self.scontext);
        let name = name.strip_suffix("_t").unwrap_or(name);
        Some(name).filter(|name| *name != "main")
    }

    /// The same as what it was for: who connects to a socket that cannot be seen is recorded as
    /// looking for its file.
    #[must_use]
    pub fn as_meant(self) -> Self {
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

    /// Whether `permission` was asked for.
    #[must_use]
    pub fn wants(&self, permission: &str) -> bool {
        self.requested.iter().any(|name| name == permission)
    }

    /// The path, if the object is a file with one that a policy can name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let odd = |c: char| c.is_control() || c == '"' || c == char::REPLACEMENT_CHARACTER;
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

/// Whether objects of a class are files.
pub(crate) fn is_file(class: &str) -> bool {
    ["file", "dir", "lnk_file", "chr_file", "blk_file", "fifo_file", "sock_file"].contains(&class)
}

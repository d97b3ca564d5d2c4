//! `/proc/PID/cgroup`: cgroups(7).

use crate::Proc;
use rustix::io::Result;
use std::{fmt::Display, os::fd::AsFd};

/// The cgroups that a process is in, one for each hierarchy.
#[derive(Clone, Debug)]
pub struct Cgroups(String);

impl<Fd: AsFd> Proc<Fd> {
    /// The cgroups of a process. `of` is a thread, or `self`.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn cgroups(&self, of: impl Display) -> Result<Cgroups> {
        self.text(&format!("{of}/cgroup")).map(Cgroups::new)
    }
}

impl Cgroups {
    /// Takes the text of the file.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The names of controllers and the path of each hierarchy. The unified one has no names.
    fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once(':')?.1.split_once(":/"))
    }

    /// Its path in the unified hierarchy, below the root.
    #[must_use]
    pub fn unified(&self) -> Option<&str> {
        self.all().find_map(|(names, path)| names.is_empty().then_some(path))
    }

    /// The old hierarchy of a controller, by the names that it goes by, and its path there, below
    /// the root.
    #[must_use]
    pub fn of_controller(&self, controller: &str) -> Option<(&str, &str)> {
        self.all().find(|(names, _)| names.split(',').any(|name| name == controller))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hierarchy_has_a_path() {
        let text = "12:cpu,cpuacct:/a:/b\n4:memory:/m\n1:name=systemd:/s\n0::/user/x\n";
        let cgroups = Cgroups::new(text.into());
        assert_eq!(cgroups.unified(), Some("user/x"));
        assert_eq!(cgroups.of_controller("cpuacct"), Some(("cpu,cpuacct", "a:/b")));
        assert_eq!(cgroups.of_controller("pids"), None);
        assert_eq!(Cgroups::new("4:memory:/m\n".into()).unified(), None);
    }
}

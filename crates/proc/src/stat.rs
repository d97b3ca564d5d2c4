//! `/proc/PID/stat`: proc_pid_stat(5).

use std::path::PathBuf;

/// What `stat` says of a process or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// A letter: `T` for a stopped process, `Z` for one that has ended.
    pub state: char,
    /// The parent process.
    pub parent: u32,
    /// The process group; 0 for one that is not seen here.
    pub group: i32,
    /// The session, likewise.
    pub session: i32,
    /// The number of the controlling terminal's device.
    pub terminal: Option<u64>,
    /// The process group in the foreground of that terminal; 0 for one that is not seen here, -1
    /// without a terminal.
    pub foreground: i32,
    /// In clock ticks since the start of the system. It tells two users of one PID apart.
    pub started: u64,
}

impl Stat {
    /// Reads a line. The name in field 2 may hold anything, so fields are counted from its end.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let terminal: i32 = fields.next()?.parse().ok()?;
        let foreground = fields.next()?.parse().ok()?;
        // Field 22.
        let started = fields.nth(13)?.parse().ok()?;
        let terminal = Some(u64::from(terminal as u32)).filter(|number| *number != 0);
        Some(Self { state, parent, group, session, terminal, foreground, started })
    }

    /// The path of the controlling terminal.
    #[must_use]
    pub fn terminal_path(&self) -> Option<PathBuf> {
        terminal_path(self.terminal?)
    }
}

fn terminal_path(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    match major {
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor).into()),
        4 if minor < 64 => Some(format!("/dev/tty{minor}").into()),
        4 => Some(format!("/dev/ttyS{}", minor - 64).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let line = "7 (a) R 1 (b) S 3 5 6 34819 9 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2\n";
        let (terminal, foreground) = (Some(34819), 9);
        let (parent, group, session) = (3, 5, 6);
        let want =
            Stat { state: 'S', parent, group, session, terminal, foreground, started: 12345 };
        assert_eq!(Stat::parse(line), Some(want));
        assert_eq!(Stat::parse("7 (a"), None);
        assert_eq!(Stat::parse("7 (a) S 3"), None);
    }

    #[test]
    fn a_terminal_is_found_by_its_number() {
        assert_eq!(terminal_path(34819), Some("/dev/pts/3".into()));
        assert_eq!(terminal_path(0x0402), Some("/dev/tty2".into()));
        assert_eq!(terminal_path(0x0440), Some("/dev/ttyS0".into()));
        let line = "12 (a) S 1 12 12 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 12345";
        assert_eq!(Stat::parse(line).map(|it| it.terminal), Some(None));
    }
}

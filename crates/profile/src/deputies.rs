//! Services outside of a sandbox that act for whoever connects to them: where they are reached, and
//! what they give.

use std::sync::OnceLock;

/// A service that acts for whoever connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deputy {
    /// Where it is reached: a path, `@NAME` or `ADDRESS:PORT`, with `~` for a home and `*` for any
    /// characters but `/`; or a variable that says so.
    address: &'static str,
    /// What whoever connects gets outside, in a few words.
    pub gives: &'static str,
}

/// All that are known.
pub fn deputies() -> &'static [Deputy] {
    static DEPUTIES: OnceLock<Vec<Deputy>> = OnceLock::new();
    DEPUTIES.get_or_init(|| {
        let lines = include_str!("../../../policy/deputies").lines();
        let lines = lines.filter(|line| !line.starts_with('#'));
        let deputies = lines.filter_map(|line| line.split_once(' '));
        deputies.map(|(address, gives)| Deputy { address, gives: gives.trim() }).collect()
    })
}

/// What whoever connects to `address` gets outside; `None` if it is no deputy that is known. It is
/// a path, `@NAME` or `ADDRESS:PORT`, also with the `unix:` or `unixgram:` of a record.
#[must_use]
pub fn power(address: &str) -> Option<&'static str> {
    let address = plain(address);
    deputies().iter().find(|deputy| deputy.is_at(address)).map(|deputy| deputy.gives)
}

/// An address without the kind of socket that stands before it.
#[must_use]
pub fn plain(address: &str) -> &str {
    let kinds = ["unix:", "unixgram:"];
    kinds.iter().find_map(|kind| address.strip_prefix(kind)).unwrap_or(address)
}

impl Deputy {
    /// Whether it is reached at `address`: a path, `@NAME` or `ADDRESS:PORT`.
    #[must_use]
    pub fn is_at(&self, address: &str) -> bool {
        match self.address.strip_prefix('$') {
            Some(variable) => said(variable).is_some_and(|said| said == address),
            None => {
                // `/var/run` leads to `/run`.
                let short = address.strip_prefix("/var").filter(|it| it.starts_with("/run/"));
                matches(self.address, short.unwrap_or(address))
            }
        }
    }

    /// An address at which it would be reached, with `home` for every home.
    #[must_use]
    pub fn example(&self, home: &str) -> Option<String> {
        match self.address.strip_prefix('$') {
            Some(variable) => said(variable),
            None => Some(self.address.replace('~', home).replace('*', "0")),
        }
    }

    /// A pattern of a profile for the sockets in the file system at which it is reached.
    #[must_use]
    pub fn files(&self) -> Option<String> {
        match self.address.strip_prefix('~') {
            Some(rest) => Some(format!("${{home}}{rest}")),
            None if self.address.starts_with('$') => {
                self.example("").filter(|said| said.starts_with('/'))
            }
            None => Some(self.address.to_owned()).filter(|address| address.starts_with('/')),
        }
    }
}

/// The socket that a variable names: `unix:///PATH`, `unix:path=/PATH,guid=…`, `/PATH,PID,0`.
fn said(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok()?;
    socket_of(&value)
}

fn socket_of(value: &str) -> Option<String> {
    let value = value.split([',', ';']).next()?;
    let kinds = [("unix:abstract=", "@"), ("unix:path=", ""), ("unix://", ""), ("unix:", "")];
    let kind = kinds.iter().find_map(|(kind, start)| Some((value.strip_prefix(kind)?, *start)));
    let (name, start) = kind.unwrap_or((value, ""));
    let whole = format!("{start}{name}");
    let is_named = whole.len() > 1 && (whole.starts_with('/') || whole.starts_with('@'));
    (is_named && !whole.contains("/../")).then_some(whole)
}

/// Whether an address is one of those that a pattern stands for.
fn matches(pattern: &str, address: &str) -> bool {
    let (mut parts, mut own) = (pattern.rsplit('/'), address.rsplit('/'));
    loop {
        match (parts.next(), own.next()) {
            (Some("~"), _) => return true,
            (Some(part), Some(own)) if matches_part(part, own) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

fn matches_part(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    text.char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .any(|at| matches_part(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_acts_for_whoever_connects_is_known_by_every_name() {
        for (address, gives) in [
            ("/run/docker.sock", "root on this machine"),
            ("/var/run/docker.sock", "root on this machine"),
            ("unix:/var/run/docker.sock", "root on this machine"),
            ("/run/libvirt/libvirt-sock", "root on this machine"),
            ("/run/user/1000/bus", "your rights outside"),
            ("/home/me/.docker/run/docker.sock", "your rights outside"),
            ("@/tmp/.X11-unix/X0", "the screen"),
            ("unixgram:@/tmp/.X11-unix/X1", "the screen"),
            ("/tmp/ssh-Ab3/agent.4711", "your SSH keys"),
            ("/run/user/1000/gnupg/S.gpg-agent.ssh", "your GnuPG keys"),
            ("/run/user/1000/keyring/ssh", "your SSH keys"),
            ("/run/user/1000/keyring/control", "your keyring"),
            ("169.254.169.254:80", "the credentials"),
        ] {
            let power = power(address).unwrap_or_else(|| panic!("{address}"));
            assert!(power.starts_with(gives), "{address}: {power}");
        }
        for plain in [
            "/run/systemd/journal/socket",
            "/dev/log",
            "/run/user/1000/app.sock",
            "/home/me/work/docker.sock",
            "/run/user/1000/x/bus",
            "192.0.2.1:80",
            "@name",
            "",
        ] {
            assert_eq!(power(plain), None, "{plain}");
        }
    }

    #[test]
    fn every_line_says_what_is_given_in_words_that_fit_a_line() {
        assert!(deputies().len() > 60, "{}", deputies().len());
        for Deputy { address, gives } in deputies() {
            assert!((6..70).contains(&gives.len()), "{address}: {gives}");
            assert!(address.starts_with(['/', '~', '@', '$', '[', '1']), "{address}");
        }
    }

    #[test]
    fn variables_name_sockets_in_many_ways() {
        for (value, want) in [
            ("/run/user/0/agent", Some("/run/user/0/agent")),
            ("unix:///run/x.sock", Some("/run/x.sock")),
            ("unix:path=/run/user/0/bus,guid=1", Some("/run/user/0/bus")),
            ("unix:abstract=/tmp/dbus-x,guid=1;tcp:host=x", Some("@/tmp/dbus-x")),
            ("/tmp/tmux-0/default,123,0", Some("/tmp/tmux-0/default")),
            ("tcp://192.0.2.1:2375", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(socket_of(value).as_deref(), want, "{value}");
        }
    }
}

//! Whether a bound grants what is proposed: a profile that says what may be granted unasked.

use crate::{Judge, JudgeError, Line, Scope, fragment::Endpoint};
use profile::{Compiled, Host, PathRights, PathRule};
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

/// A bound.
pub struct Bound {
    compiled: Compiled,
    judge: Judge,
}

impl Bound {
    /// What `compiled` grants may be granted.
    ///
    /// # Errors
    ///
    /// [`JudgeError`] if its policy cannot be used.
    pub fn new(compiled: Compiled) -> Result<Self, JudgeError> {
        let judge = Judge::new(&compiled)?;
        Ok(Self { compiled, judge })
    }

    /// Whether the bound grants all that a line of [`fragment`](crate::fragment()) would, to the
    /// same domain. `amended` is the running profile with the line given to it: what the bound
    /// takes out of the line's place has to be taken out of it there, too. In doubt, the answer is
    /// no.
    #[must_use]
    pub fn covers(&self, line: &Line, amended: &Compiled, scope: &Scope) -> bool {
        let name = line.domain.as_deref().unwrap_or("main");
        let domain = |of: &Compiled| of.domains.iter().position(|domain| domain.name == name);
        let (Some(own), Some(other)) = (domain(&self.compiled), domain(amended)) else {
            return false;
        };
        if line.key == "network.connect" {
            return Endpoint::of(&line.value).is_some_and(|it| self.reaches(own, &it));
        }
        let Some(path) = scope.path(&line.value) else { return false };
        let has = |rights: PathRights| match line.key.as_str() {
            "files.read" => rights.read && !rights.hidden,
            "files.write" => rights.read && rights.write && !rights.hidden,
            _ => false,
        };
        // A rule without the right takes nothing of it if the running profile has it just so.
        let is_kept = |rule: &PathRule| {
            let key = |it: &PathRule| (it.regex.clone(), it.is_way, it.by_name);
            let same = amended.paths.iter().find(|it| key(it) == key(rule));
            same.is_some_and(|it| !has(it.rights[other]))
        };
        let inside = self.compiled.paths.iter().filter(|rule| may_lie_in(rule, &path));
        !self.judge.holds_own(&path)
            && asked(&path, line).iter().all(|path| has(self.judge.rights(path, Some(name))))
            && inside.filter(|rule| !has(rule.rights[own])).all(is_kept)
    }

    fn reaches(&self, domain: usize, endpoint: &Endpoint<'_>) -> bool {
        self.compiled.domains[domain].connect.iter().any(|rule| {
            let host = &self.compiled.hosts[rule.host];
            let is_host = match (&host.host, endpoint.address()) {
                // Its addresses are looked up when it is granted; the name is what was stated.
                (Host::Name(name), None) => name.eq_ignore_ascii_case(endpoint.host),
                (_, Some(address)) => host.contains((address, bits(address))),
                _ => false,
            };
            let in_range = (rule.low..=rule.high).contains(&endpoint.port);
            is_host && rule.protocol == endpoint.protocol && in_range
        })
    }
}

/// What a line for `path` is about: the path, and all below it, which names that nobody has stand
/// for, as a pattern ends at its last part. Below a file that is there nothing can be read.
fn asked(path: &Path, line: &Line) -> Vec<PathBuf> {
    const NAME: &str = "any name, at any depth";
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    if is_file && line.key == "files.read" {
        return vec![path.to_owned()];
    }
    let below = path.join(NAME);
    vec![path.to_owned(), below.join(NAME), below]
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether a rule may be about `path`, or something below it.
fn may_lie_in(rule: &PathRule, path: &Path) -> bool {
    if let Some(inner) = &rule.path {
        return inner.starts_with(path);
    }
    let (literal, path) = (literal(&rule.regex), path.to_string_lossy());
    path.starts_with(&literal) || literal.starts_with(&*path)
}

/// What everything starts with that a regular expression matches.
fn literal(regex: &str) -> String {
    let (mut literal, mut chars) = (String::new(), regex.chars().peekable());
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => chars.next().filter(|c| !c.is_alphanumeric()),
            c => Some(c).filter(|c| !"[](){}.*+?|^$".contains(*c)),
        };
        // Of what can be left out, nothing is certain.
        let optional = chars.peek().is_some_and(|next| "*?{".contains(*next));
        match c {
            Some(c) if !optional => literal.push(c),
            _ => break,
        }
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_pattern_is_what_it_cannot_do_without() {
        for (regex, want) in [
            ("/srv/a(/.*)?", "/srv/a"),
            (r"/home/\.x/[^/]*\.key", "/home/.x/"),
            ("/a/b?", "/a/"),
            ("/a/(.*/)?b", "/a/"),
            (r"/a\d", "/a"),
            ("", ""),
        ] {
            assert_eq!(literal(regex), want, "{regex}");
        }
    }
}

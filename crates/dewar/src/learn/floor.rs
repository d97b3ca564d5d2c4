//! The profile of a run that is learned from: everything, above a floor.

use super::hosts;
use crate::output::tell;
use learn::{FoundSecrets, Power, Secrets};
use monitor::visible;
use profile::{Compiled, Deputy, Variables, deputies};
use std::{
    collections::HashSet,
    fmt::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// What belongs to the machine: to be read, as far as the base grants it, and never changed.
const SYSTEM: [&str; 16] = [
    "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
    "/boot", "/snap", "/nix", "/gnu", "/proc", "/sys",
];

/// The text of the profile, and how many files it keeps back because of their names.
pub(super) fn profile(
    base: &str,
    (compiled, variables): (&Compiled, &Variables),
    secrets: &Secrets,
    output: &Path,
    command: &str,
) -> anyhow::Result<(String, usize)> {
    let judge = learn::Judge::new(compiled)?;
    let is_base = |path: &Path| {
        let mut names = compiled.domains.iter().map(|domain| Some(domain.name.as_str()));
        names.all(|domain| judge.rights(path, domain).read)
    };
    // What the base grants, its runs have always had.
    let skip = |path: &Path| {
        SYSTEM.iter().any(|system| path == Path::new(system))
            // A run has its own.
            || confine::PRIVATE.iter().any(|private| path == Path::new(private))
            || is_base(path)
    };
    let found = secrets.everywhere(&variables.home, &skip);
    tell_left(&found.left, &variables.home);
    let reached = learn::powers(compiled, &judge, &variables.home);
    let (judge, found) = (&judge, &found);
    let floor = Floor { compiled, judge, secrets, found, reached, output, variables };
    let unguarded = if compiled.guarded { "" } else { "unguarded = ['${workspace}', '${tmp}']\n" };
    let mut text = format!(
        "extends = {}\ndescription = \"everything that can be granted, above {}\"\nmode = \"all\"\n\
         [files]\nguard = \"host-trusted\"\n{unguarded}exec = ['/']\n{}",
        json(base)?,
        base.replace(['"', '\\'], "_"),
        floor.files(None)?,
    );
    let names = hosts::candidates(command, variables);
    let named = names.iter().map(|name| format!("{name}:*"));
    let any = ["*:*", "*:*/udp", "unix:/", "unixgram:/"].map(str::to_owned);
    let network = format!(
        "connect = {}\nbind = ['*:0-65535', '*:0-65535/udp']\nnetlink = true\n",
        json(any.into_iter().chain(named).collect::<Vec<_>>())?
    );
    write!(text, "[network]\n{network}")?;
    for domain in compiled.domains.iter().skip(1) {
        let name = &domain.name;
        let files = floor.files(Some(name))?;
        write!(text, "[domains.{name}.files]\n{files}[domains.{name}.network]\n{network}")?;
    }
    Ok((text, floor.kept(None, &found.files).len()))
}

fn tell_left(left: &[PathBuf], home: &Path) {
    if let Some(names) = left_in_words(left, home) {
        tell!(
            "dewar: not looked through for secrets, so it stays denied: {names}; what is needed of it goes into a profile for -p"
        );
    }
}

/// What was not looked through, by name; of homes of others, how much.
fn left_in_words(left: &[PathBuf], home: &Path) -> Option<String> {
    const MOST: usize = 4;
    let homes = home.parent().filter(|homes| *homes != Path::new("/"));
    let homes = homes.unwrap_or(Path::new("/home"));
    let is_others = |path: &&PathBuf| path.starts_with(homes) && !path.starts_with(home);
    let (others, own): (Vec<&PathBuf>, Vec<&PathBuf>) = left.iter().partition(is_others);
    let named = own.iter().take(MOST).map(|path| visible(&path.to_string_lossy()));
    let mut named: Vec<String> = named.collect();
    if let more @ 1.. = own.len().saturating_sub(MOST) {
        named.push(format!("{more} more"));
    }
    match others.len() {
        0 => {}
        1 => named.push("1 directory in homes of others".into()),
        many => named.push(format!("{many} directories in homes of others")),
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// What stays as the base has it, whatever is granted above.
struct Floor<'a> {
    compiled: &'a Compiled,
    judge: &'a learn::Judge,
    secrets: &'a Secrets,
    found: &'a FoundSecrets,
    reached: Vec<Power>,
    output: &'a Path,
    variables: &'a Variables,
}

impl Floor<'_> {
    /// The lists of files of a domain; `None` for the base domain. A domain need not inherit.
    fn files(&self, domain: Option<&str>) -> serde_json::Result<String> {
        let rights = |path: &Path| self.judge.rights(path, domain);
        let system = SYSTEM.iter().filter(|path| !rights(Path::new(path)).write);
        let mut fixed: Vec<String> = system.map(|path| (*path).to_owned()).collect();
        fixed.push(pattern(self.output));
        // What programs outside execute, or obey.
        let Variables { home, workspace, .. } = self.variables;
        let is_kept = |place: &PathBuf| !rights(place).write && !workspace.starts_with(place);
        let names = learn::names_of_home().filter(|name| is_kept(&home.join(name)));
        fixed.extend(names.map(|name| format!("${{home}}/{name}")));
        let denied = [
            devices(self.judge, domain),
            self.kept(domain, &self.found.files),
            self.kept(domain, &self.found.left),
            self.listed(domain),
            self.deputies(domain),
        ]
        .concat();
        let (fixed, denied) = (json(&fixed)?, json(denied)?);
        Ok(format!("write = ['/']\nreadonly = {fixed}\ndeny = {denied}\n"))
    }

    /// Of what looks like a secret, or could hold one, that which the base does not grant: what it
    /// grants, its runs have always had.
    fn kept(&self, domain: Option<&str>, found: &[PathBuf]) -> Vec<String> {
        let kept = found.iter().filter(|path| !self.judge.rights(path, domain).read);
        kept.map(|path| pattern(path)).collect()
    }

    /// Services that act for whoever connects: to learn that a program wants one is not to have it
    /// act. Those that the base reaches, its runs have always had; those in a private directory are
    /// the run's own.
    fn deputies(&self, domain: Option<&str>) -> Vec<String> {
        let has = |deputy: &&Deputy| {
            self.reached
                .iter()
                .any(|it| it.domain.as_deref() == domain && deputy.is_at(&it.address))
        };
        let files = deputies().iter().filter(|deputy| !has(deputy)).filter_map(Deputy::files);
        let is_own =
            |file: &String| confine::PRIVATE.iter().any(|own| Path::new(file).starts_with(own));
        files.filter(|file| !is_own(file)).collect()
    }

    /// What the profile `workspace` keeps back, whatever the base grants around it: but for what
    /// the base keeps back itself, or grants by that very name.
    fn listed(&self, domain: Option<&str>) -> Vec<String> {
        let at = self.compiled.domains.iter().position(|it| Some(&*it.name) == domain).unwrap_or(0);
        let subject = &self.compiled.domains[at].type_name;
        let rules = self.compiled.paths.iter().filter(|rule| !rule.is_way && !rule.by_name);
        let said = rules.filter(|rule| {
            rule.rights[at].read || self.compiled.withheld(subject, &rule.type_name).is_some()
        });
        let said: HashSet<&PathBuf> = said.filter_map(|rule| rule.path.as_ref()).collect();
        let kept = self.secrets.listed().iter().filter(|path| !said.contains(path));
        kept.map(|path| pattern(path)).collect()
    }
}

/// The machine's devices that the base does not grant.
fn devices(judge: &learn::Judge, domain: Option<&str>) -> Vec<String> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| !path.is_symlink());
    let kept = paths.filter(|path| !judge.rights(path, domain).read);
    let mut kept: Vec<String> = kept.map(|path| pattern(&path)).collect();
    kept.sort();
    kept
}

/// The pattern of a path. `?` stands for what no pattern can say, byte by byte: whoever writes
/// there chooses the names, and none may go undenied.
fn pattern(path: &Path) -> String {
    let mut pattern = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if !flask::is_quotable(c) {
                pattern.push_str(&"?".repeat(c.len_utf8()));
            } else {
                pattern.push_str(&learn::literal(c.encode_utf8(&mut [0; 4])));
            }
        }
        pattern.push_str(&"?".repeat(chunk.invalid().len()));
    }
    pattern
}

/// A value as TOML takes it, too: strings and lists of them.
fn json(value: impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_policy_can_say_is_denied_byte_by_byte() {
        for (name, want) in [
            ("/a b/.env", "/a b/.env"),
            ("/a\u{2028}b/.env", "/a???b/.env"),
            ("/\u{202e}\"\n", "/?????"),
        ] {
            assert_eq!(pattern(Path::new(name)), want);
        }
    }

    #[test]
    fn homes_of_others_are_counted_and_not_named() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let home = Path::new("/home/me");
        for (left, want) in [
            (paths(&[]), None),
            (paths(&["/home/you/a"]), Some("1 directory in homes of others")),
            (
                paths(&["/home/me/big", "/home/you/a", "/home/you", "/srv/x"]),
                Some("/home/me/big, /srv/x, 2 directories in homes of others"),
            ),
            (paths(&["/a", "/b", "/c", "/d", "/e"]), Some("/a, /b, /c, /d, 1 more")),
        ] {
            assert_eq!(left_in_words(&left, home).as_deref(), want);
        }
    }
}

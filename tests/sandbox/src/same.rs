//! The same command, natively and under Dewar, in the same directory with the same content.

use crate::{
    process::{Ran, run},
    stage::{How, Stage, bash},
    tree::{Tree, tree},
};
use std::{ffi::OsString, path::Path};

/// A comparison. Exit status, standard output, standard error and the resulting workspace must be
/// the same, and nothing must have been denied, unless it says otherwise.
pub(crate) struct Same<'a> {
    stage: &'a Stage,
    words: Vec<OsString>,
    before: &'a str,
    input: &'a [u8],
    profile: Option<&'a str>,
    /// Ends of names of files whose content is another in each run.
    varies: &'a [&'a str],
    /// A directory that is not compared.
    beside: &'a str,
    /// Standard error says something else in each run.
    noisy: bool,
    /// Objects that the program tries, and does without.
    does_without: &'a [&'a str],
}

impl Stage {
    /// The comparison of a script, to be checked.
    pub(crate) fn same<'a>(&'a self, script: &'a str) -> Same<'a> {
        self.same_command(bash(script))
    }

    /// The comparison of a command, to be checked.
    pub(crate) fn same_command<'a>(&'a self, words: Vec<OsString>) -> Same<'a> {
        Same {
            stage: self,
            words,
            before: "",
            input: b"",
            profile: None,
            varies: &[],
            beside: "",
            noisy: false,
            does_without: &[],
        }
    }
}

impl<'a> Same<'a> {
    /// A script that fills the workspace beforehand.
    pub(crate) fn before(self, before: &'a str) -> Self {
        Self { before, ..self }
    }

    pub(crate) fn input(self, input: &'a [u8]) -> Self {
        Self { input, ..self }
    }

    pub(crate) fn profile(self, profile: &'a str) -> Self {
        Self { profile: Some(profile), ..self }
    }

    /// Of files with these ends only the names are compared.
    pub(crate) fn varies(self, varies: &'a [&'a str]) -> Self {
        Self { varies, ..self }
    }

    /// What lies in this directory is not compared.
    pub(crate) fn varies_below(self, beside: &'a str) -> Self {
        Self { beside, ..self }
    }

    pub(crate) fn noisy(self) -> Self {
        Self { noisy: true, ..self }
    }

    /// Denials of objects with these in their names are no reason to fail.
    pub(crate) fn does_without(self, does_without: &'a [&'a str]) -> Self {
        Self { does_without, ..self }
    }

    /// Runs it both ways.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub(crate) fn check(&self) -> Ran {
        let (native, wanted) = self.run(How::Native);
        let (ran, found) = self.run(How::Dewar);
        self.compare(&native, &ran);
        let differing: Vec<String> = difference(&wanted, &found).collect();
        assert!(
            differing.is_empty(),
            "the workspace differs:\n{}\n{}",
            differing.join("\n"),
            ran.err()
        );
        let record = self.stage.record();
        assert_eq!(record.status, ran.code(), "the recorded exit status");
        let known = |object: &str| self.does_without.iter().any(|known| object.contains(known));
        let denials = record.denials.iter().filter(|it| !it.probed && !known(&it.object));
        let denials: Vec<String> = denials.map(super::record::Denial::text).collect();
        assert!(denials.is_empty(), "denied:\n{}", denials.join("\n"));
        ran
    }

    fn run(&self, how: How) -> (Ran, Tree) {
        let work = self.stage.work();
        self.stage.prepare("find . -type d -exec chmod u+rwx {} + ; find . -mindepth 1 -delete");
        self.stage.prepare(self.before);
        let ran = run(self.stage.prepared(how, self.profile, &self.words), self.input);
        let varies = |path: &Path| {
            let path = path.to_string_lossy();
            self.varies.iter().any(|end| path.ends_with(end))
        };
        let mut tree = tree(&work, &varies);
        tree.retain(|path, _| self.beside.is_empty() || !path.starts_with(self.beside));
        (ran, tree)
    }

    fn compare(&self, native: &Ran, ran: &Ran) {
        let ends =
            || format!("\nnative {:?}, dewar {:?}\n{}", native.status, ran.status, ran.err());
        let out = lines_that_differ(&native.out(), &ran.out());
        assert!(native.out == ran.out, "standard output differs:\n{out}{}", ends());
        assert!(native.status == ran.status, "the exit status differs{}", ends());
        let err = lines_that_differ(&native.err(), &own_words(ran));
        assert!(self.noisy || err.is_empty(), "standard error differs:\n{err}{}", ends());
    }
}

/// The first lines at the same place that are not the same, with the line before them.
fn lines_that_differ(native: &str, dewar: &str) -> String {
    const MOST: usize = 60;
    let (native, dewar): (Vec<_>, Vec<_>) = (native.lines().collect(), dewar.lines().collect());
    let line = |lines: &[&str], n: usize| (*lines.get(n).unwrap_or(&"(nothing)")).to_owned();
    let differing = (0..native.len().max(dewar.len())).filter(|n| native.get(*n) != dewar.get(*n));
    let show = |n: usize| {
        let before =
            n.checked_sub(1).map_or(String::new(), |n| format!("   {}\n", line(&native, n)));
        format!("{before}native {}\ndewar  {}\n", line(&native, n), line(&dewar, n))
    };
    differing.take(MOST).map(show).collect()
}

/// How lines begin that Dewar adds: what was denied, what root lacked, what else may be why it
/// failed, and what programs outside would execute.
const OWN_WORDS: [&str; 6] = [
    "dewar: denied ",
    "dewar: the kernel refused root ",
    "dewar: `",
    "dewar: a server had port ",
    "dewar: programs outside would execute",
    "dewar:   ",
];

/// What the program said on standard error, without what Dewar adds at the end.
fn own_words(ran: &Ran) -> String {
    let text = ran.err();
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !OWN_WORDS.iter().any(|own| line.starts_with(own)));
    lines.collect()
}

fn difference<'t>(wanted: &'t Tree, found: &'t Tree) -> impl Iterator<Item = String> + 't {
    let changed = wanted.iter().filter(|(path, line)| found.get(*path) != Some(line));
    let changed = changed.map(|(path, line)| {
        format!(
            "{}: native {line}, dewar {}",
            path.display(),
            found.get(path).map_or("nothing", |it| it)
        )
    });
    let added = found.keys().filter(|path| !wanted.contains_key(*path));
    changed.chain(added.map(|path| format!("{}: only under dewar", path.display())))
}

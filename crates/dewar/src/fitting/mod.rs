//! A profile that is being fitted: asked, with some lines added, what it would grant.

mod history;
mod target;

pub(crate) use history::{Author, undo, undo_allowed};
pub(crate) use target::ProfileFile;

use crate::{led::Links, machine};
use anyhow::Context as _;
use learn::{Edit, Judge, Line, Scope, Secrets};
use profile::{Addresses, Amendment, Compiled, Documents, Source, Variables};
use registries::Plain;
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    io::{self, Read as _},
    net::IpAddr,
    path::{Path, PathBuf},
};

/// The most that is read of a profile or of settings.
const MOST_BYTES: u64 = 16 << 20;

/// A profile and the run that it is for.
pub(crate) struct Fitting {
    /// The text that lines are added to.
    pub(crate) text: String,
    /// What stands for its file in messages.
    name: String,
    /// Where relative names in it start.
    directory: PathBuf,
    pub(crate) variables: Variables,
    pub(crate) scope: Scope,
    hosts: RefCell<HashMap<String, Vec<IpAddr>>>,
    links: Links,
    looks_up: bool,
    /// What the command of the run names with its port.
    pub(crate) named_hosts: BTreeSet<String>,
    /// Hosts that the run was granted and that had no address, each with the domain.
    pub(crate) unfound: BTreeSet<(String, String)>,
}

/// The file that a profile's name stands for, if it is one.
pub(crate) fn file_of(argument: &str, directory: &Path) -> Option<PathBuf> {
    match Source::from_argument(argument) {
        Source::File(path) => Some(directory.join(path)),
        _ => None,
    }
}

/// What a file holds that a project may have brought along: what is none is not opened.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    Plain::find(path)?.open()?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other("it is longer than 16 MiB")),
        false => Ok(text),
    }
}

impl Fitting {
    /// Of a profile that extends `argument`, as it was named in `directory`.
    pub(crate) fn extending(
        argument: &str,
        directory: &Path,
        variables: Variables,
    ) -> anyhow::Result<Self> {
        let base = file_of(argument, directory);
        let base = base.map_or_else(|| argument.to_owned(), |path| path.display().to_string());
        let mut edit = Edit::of("")?;
        edit.set_extends(&base);
        Self::of(edit.text(), "the new profile".into(), directory.to_owned(), variables)
    }

    /// Of the profile in a file.
    pub(crate) fn of_file(path: &Path, variables: Variables) -> anyhow::Result<Self> {
        let text = read(path);
        let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::of_text(text, path, variables)
    }

    /// Of the profile that `target` held when it was looked at: what it holds by now may be
    /// another's word.
    pub(crate) fn of_target(target: &ProfileFile, variables: Variables) -> anyhow::Result<Self> {
        let ProfileFile { path, before } = target;
        let gone = || format!("`{}` is gone", path.display());
        Self::of_text(before.clone().with_context(gone)?, path, variables)
    }

    fn of_text(text: String, path: &Path, variables: Variables) -> anyhow::Result<Self> {
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        Self::of(text, path.display().to_string(), directory, variables)
    }

    /// Of a profile that is no file yet.
    pub(crate) fn of(
        text: String,
        name: String,
        directory: PathBuf,
        variables: Variables,
    ) -> anyhow::Result<Self> {
        let shipped = Source::Shipped("workspace".into());
        let workspace = profile::load(&shipped, &variables, &mut profile::unresolved)?;
        let scope = Scope {
            workspace: variables.workspace.clone(),
            home: variables.home.clone(),
            tmp: variables.tmp.clone(),
            secrets: Secrets::of(&workspace),
        };
        let (hosts, links) = (RefCell::default(), Links::of(&variables.workspace));
        let (named_hosts, unfound) = Default::default();
        Ok(Self {
            text,
            name,
            directory,
            variables,
            scope,
            hosts,
            links,
            looks_up: true,
            named_hosts,
            unfound,
        })
    }

    /// The same for a run: where that was denied a name server, it is allowed the hosts that its
    /// command names, which are known without; but for those that had no address.
    pub(crate) fn naming(
        self,
        named_hosts: BTreeSet<String>,
        unfound: &BTreeSet<(String, String)>,
    ) -> Self {
        Self { named_hosts, unfound: unfound.clone(), ..self }
    }

    /// The same, where no name has an address: for questions that no address decides.
    pub(crate) fn unresolved(self) -> Self {
        Self { looks_up: false, ..self }
    }

    /// The same with `lines` in its text.
    pub(crate) fn extended(&self, lines: &[Line]) -> anyhow::Result<Self> {
        Ok(Self {
            text: self.with(lines)?,
            name: self.name.clone(),
            directory: self.directory.clone(),
            variables: self.variables.clone(),
            scope: self.scope.clone(),
            hosts: self.hosts.clone(),
            links: self.links.clone(),
            looks_up: self.looks_up,
            named_hosts: self.named_hosts.clone(),
            unfound: self.unfound.clone(),
        })
    }

    /// Its text with `lines` added.
    pub(crate) fn with(&self, lines: &[Line]) -> anyhow::Result<String> {
        let mut edit = Edit::of(&self.text).with_context(|| self.name.clone())?;
        for line in lines {
            edit.add(line).with_context(|| self.name.clone())?;
        }
        Ok(edit.text())
    }

    /// What it stands for with `lines` added.
    pub(crate) fn compile(&self, lines: &[Line]) -> anyhow::Result<Compiled> {
        self.stands_for(self.with(lines)?)
    }

    /// What another text in its place would stand for, in a run that starts now.
    fn stands_for(&self, text: String) -> anyhow::Result<Compiled> {
        let (name, directory) = (self.name.clone(), self.directory.clone());
        let documents = Documents::read(&Source::Text { name, text, directory })?;
        let mut variables = Variables { led: Vec::new(), ..self.variables.clone() };
        let resolver = &mut |names: &[&str]| self.resolve(names);
        let compiled = documents.compile(&variables, resolver, &[])?;
        self.links.guard(compiled, &documents, &mut variables)
    }

    /// What a run under it has been given with `amendments`.
    pub(crate) fn amended(&self, amendments: &[Amendment]) -> anyhow::Result<Compiled> {
        let (name, directory) = (self.name.clone(), self.directory.clone());
        let documents =
            Documents::read(&Source::Text { name, text: self.text.clone(), directory })?;
        Ok(documents.compile(&self.variables, &mut |names| self.resolve(names), amendments)?)
    }

    /// A judge by it, with `lines` added.
    pub(crate) fn judge(&self, lines: &[Line]) -> anyhow::Result<Judge> {
        Ok(Judge::new(&self.compile(lines)?)?)
    }

    /// A judge by all that a run under it was ever granted; `None` if nobody knows what that was.
    pub(crate) fn judge_of(
        &self,
        granted: Option<Vec<Amendment>>,
    ) -> anyhow::Result<Option<Judge>> {
        let Some(granted) = granted else { return Ok(None) };
        let amended = self.amended(&granted).ok();
        Ok(amended.map(|compiled| Judge::new(&compiled)).transpose()?)
    }

    /// Whether a loopback of the run's own ends with `lines`: who reaches something outside shares
    /// that of the machine.
    pub(crate) fn loses_loopback(&self, lines: &[Line]) -> anyhow::Result<bool> {
        let is_private =
            |lines| Ok::<_, anyhow::Error>(self.compile(lines)?.private_loopback == Some(true));
        Ok(is_private(&[])? && !is_private(lines)?)
    }

    /// The same, where the run is to reach servers of this machine: without a loopback of its own,
    /// which gives way to any line for an endpoint.
    pub(crate) fn judge_outside(&self, lines: &[Line]) -> anyhow::Result<Judge> {
        let mut edit = Edit::of(&self.with(lines)?).with_context(|| self.name.clone())?;
        edit.share_loopback();
        Ok(Judge::new(&self.stands_for(edit.text())?)?)
    }

    /// The addresses of names, the same each time.
    pub(crate) fn resolve(&self, names: &[&str]) -> Vec<Addresses> {
        if !self.looks_up {
            return names.iter().map(|_| Ok(Vec::new())).collect();
        }
        let mut hosts = self.hosts.borrow_mut();
        let new: Vec<&str> =
            names.iter().copied().filter(|name| !hosts.contains_key(*name)).collect();
        for (name, found) in new.iter().zip(machine::resolve(&new)) {
            hosts.insert((*name).to_owned(), found.unwrap_or_default());
        }
        names.iter().map(|name| Ok(hosts[*name].clone())).collect()
    }

    /// The names that were looked up.
    #[cfg(test)]
    pub(crate) fn looked_up(&self) -> Vec<String> {
        self.hosts.borrow().keys().cloned().collect()
    }

    /// From now on, `name` has these addresses: those that a run knew it by.
    pub(crate) fn know(&self, name: &str, addresses: Vec<IpAddr>) {
        self.hosts.borrow_mut().insert(name.to_owned(), addresses);
    }
}

/// What a run recorded, as far as a profile can speak about it.
pub(crate) fn access(record: &monitor::Record) -> learn::Access {
    learn::Access {
        granted: record.granted,
        comm: record.comm.clone(),
        program: record.program.clone(),
        call: record.call.clone(),
        object: record.object.clone(),
        scontext: record.scontext.clone(),
        tcontext: record.tcontext.clone(),
        tclass: record.tclass.clone(),
        requested: record.requested.clone(),
    }
    .as_meant()
}

//! A profile that was read once and can be compiled again: with amendments, or elsewhere.

use crate::amendment::{self, Amendment};
use crate::chain::{self, Chain};
use crate::collapse;
use crate::compiled::Compiled;
use crate::document::{self, Document};
use crate::error::{ProfileErrors, Reporter};
use crate::flat;
use crate::hosts::{self, Resolver};
use crate::source::{Source, Sources};
use crate::variables::Variables;
use crate::{merge, policy};
use std::path::Path;

/// A profile with everything that it extends.
#[derive(Clone, Debug)]
pub struct Documents {
    name: String,
    /// The most basic first.
    documents: Vec<Document>,
    /// For each of them, which file of `sources` it was read from.
    order: Vec<usize>,
    sources: Sources,
    /// The bound of what programs inside propose.
    bound: Option<Box<Self>>,
}

impl Documents {
    /// Reads the profile `source`.
    ///
    /// # Errors
    ///
    /// [`ProfileErrors`] if a file cannot be read or is no profile.
    pub fn read(source: &Source) -> Result<Self, ProfileErrors> {
        let mut reporter = Reporter::default();
        let chain = chain::read(source, &mut reporter);
        Self::new(source.title(), chain, reporter)
    }

    /// The profile that `texts`, as from [`Documents::texts`], stand for.
    ///
    /// # Errors
    ///
    /// [`ProfileErrors`] if one is no profile.
    pub fn from_texts(name: String, texts: &[(String, String)]) -> Result<Self, ProfileErrors> {
        let mut reporter = Reporter::default();
        let mut documents = Vec::with_capacity(texts.len());
        for (name, text) in texts {
            let file = reporter.sources.add(name.clone(), text, (None, Vec::new()));
            documents.push((file, document::parse(text, file, &mut reporter)));
        }
        documents.reverse();
        Self::new(name, Chain { documents, bound: None }, reporter)
    }

    fn new(name: String, chain: Chain, reporter: Reporter) -> Result<Self, ProfileErrors> {
        if reporter.has_errors() {
            return Err(reporter.into_errors(name));
        }
        Ok(Self::unchecked(name, chain, &reporter))
    }

    /// What was read, whatever `reporter` has to say of it.
    pub(crate) fn unchecked(name: String, chain: Chain, reporter: &Reporter) -> Self {
        let of = |name: String, documents: Vec<(usize, Document)>, bound| {
            let (order, documents) = documents.into_iter().unzip();
            Self { name, documents, order, sources: reporter.sources.clone(), bound }
        };
        let bound = chain.bound.map(|(name, documents)| Box::new(of(name, documents, None)));
        of(name, chain.documents, bound)
    }

    /// The name that messages use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profile within which proposals of the programs inside are granted unasked
    /// (`propose.within`). What [`Documents::texts`] gives does not hold it.
    #[must_use]
    pub fn bound(&self) -> Option<&Self> {
        self.bound.as_deref()
    }

    /// What the files that it was read from were found by, those of its bound with them, as
    /// [`Variables::fixed`] has it: links on the way, and where the files lie.
    pub fn ways(&self) -> impl Iterator<Item = &Path> {
        self.sources.ways()
    }

    /// The files that it was read from, those of its bound with them, without links, with the text
    /// that was read.
    pub fn file_texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        let files = self.sources.0.iter();
        files.filter_map(|file| Some((file.path.as_deref()?, &*file.text)))
    }

    /// Name and text of each file: the profile itself, then what it extends, the most basic last.
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        let files = self.order.iter().rev().map(|index| &self.sources.0[*index]);
        files.map(|file| (file.name.clone(), file.text.to_string())).collect()
    }

    /// The text of a profile that extends nothing and names the same things. Where patterns of
    /// several files overlap, their order may have mattered: compare what the text stands for.
    /// `is_private` says whether the profile comes to a loopback of the run's own.
    #[must_use]
    pub fn flattened(&self, is_private: bool) -> String {
        flat::text(&self.documents, is_private)
    }

    /// The policy and all the rest that the profile, changed by `amendments` in their order, stands
    /// for under `variables`. Types of files and processes that it has without the last amendment
    /// keep their names.
    ///
    /// `resolver` is as for [`load`](crate::load); names in amendments have their addresses with
    /// them.
    ///
    /// # Errors
    ///
    /// [`ProfileErrors`] with everything that is wrong.
    pub fn compile(
        &self,
        variables: &Variables,
        resolver: &mut Resolver<'_>,
        amendments: &[Amendment],
    ) -> Result<Compiled, ProfileErrors> {
        let mut reporter = Reporter::default();
        reporter.sources.clone_from(&self.sources);
        self.compile_into(variables, resolver, amendments, reporter)
    }

    /// As [`Documents::compile`], with a reporter that knows the sources, and perhaps mistakes
    /// already.
    pub(crate) fn compile_into(
        &self,
        variables: &Variables,
        resolver: &mut Resolver<'_>,
        amendments: &[Amendment],
        mut reporter: Reporter,
    ) -> Result<Compiled, ProfileErrors> {
        let name = || self.name.clone();
        let profile = merge::merge(&self.documents, variables, &mut reporter);
        if reporter.has_errors() {
            return Err(reporter.into_errors(name()));
        }
        let hosts = hosts::resolve(&profile, &reporter.sources, variables, resolver);
        let clauses = amendment::read(amendments, &profile, &hosts, variables, &mut reporter);
        let enough = match clauses.len() == amendments.len() {
            true => collapse::enough(&clauses, profile.domains.len()),
            // Some are mistaken, which is said below.
            false => (0..clauses.len()).collect(),
        };
        let given_back = collapse::given_back(&clauses);
        let given_back = given_back.and_then(|place| reporter.sources.origin(place));
        let clauses: Vec<_> = enough.iter().map(|at| clauses[*at].clone()).collect();
        let policy = policy::write(&self.name, &profile, &hosts, &clauses, &mut reporter);
        if reporter.has_errors() {
            return Err(reporter.into_errors(name()));
        }
        let amended = (clauses.as_slice(), enough, amendments.len());
        let mut compiled =
            Compiled::new(name(), profile, hosts, (policy, amended), reporter.sources);
        compiled.given_back = given_back.map(|origin| origin.to_string());
        compiled.temporary = variables.temporary();
        Ok(compiled)
    }
}

//! A question: who wants what, which lines of a profile would grant it, and what those grant else.

use super::error::AskError;
use crate::{
    allow::amendment,
    fitting::{Author, Fitting, ProfileFile, access, file_of},
    names::is_name_of,
    proposal::{Proposal, kept_back, of_profile},
    run::{Denial, link::Setup},
    words::{exact, words},
};
use flask::visible_name as visible;
use learn::{Line, Widening, widening};
use profile::Amendment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// What can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This call passes.
    Once,
    /// The running sandbox gets it.
    Run,
    /// So does the profile.
    Profile,
    /// It is denied, and so is the same from now on.
    No,
}

impl Choice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Profile => "profile",
            Self::No => "no",
        }
    }

    /// `once` or `o`, and so on.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let all = [Self::Once, Self::Run, Self::Profile, Self::No];
        let word = word.to_ascii_lowercase();
        all.into_iter().find(|choice| choice.name() == word || choice.name()[..1] == word)
    }
}

/// A question.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) number: u64,
    /// The run's own numbers for it, each with its call.
    pub(crate) waiting: Vec<(u64, u64)>,
    pub(crate) program: String,
    pub(crate) pid: u32,
    pub(crate) wants: Vec<String>,
    pub(crate) class: String,
    pub(crate) object: String,
    pub(crate) lines: Vec<Line>,
    /// What gives the lines to a running sandbox, if that can be.
    pub(crate) amendments: Option<Vec<Amendment>>,
    pub(crate) also: Widening,
    /// What of it was taken since the run began, and by what.
    pub(crate) taken: Vec<String>,
    /// It has to be named in full.
    pub(crate) secret: bool,
    /// A program inside proposes it.
    pub(crate) proposed: bool,
    /// Those that have proposed it, and wait for the answer.
    pub(crate) proposers: Vec<Arc<UnixStream>>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) until: Instant,
}

/// Lines without their comments: what is granted.
pub(crate) fn bare(lines: &[Line]) -> Vec<Line> {
    lines.iter().map(|line| Line { comment: String::new(), ..line.clone() }).collect()
}

/// What gives `lines` to a running sandbox; `None` if one of them cannot be given so.
pub(crate) fn amendments(lines: &[Line], proposal: &Proposal<'_>) -> Option<Vec<Amendment>> {
    lines.iter().map(|line| amendment(line, proposal)).collect()
}

impl Case {
    /// The question that a denial asks.
    ///
    /// # Errors
    ///
    /// Why it is none: no line of a profile would help, or only another decision of a person's.
    pub(crate) fn of(
        setup: &Setup,
        fitting: &Fitting,
        denial: &Denial,
        until: Instant,
    ) -> Result<Self, AskError> {
        let failed = AskError::Profile;
        let object = PathBuf::from(&denial.record.object);
        let mut proposal = Proposal::of(fitting, &[denial], &[]).map_err(failed)?;
        let mut secret = false;
        if !proposal.left.is_empty() {
            proposal =
                Proposal::of(fitting, &[denial], std::slice::from_ref(&object)).map_err(failed)?;
            secret = true;
        }
        if let Some((_, why)) = proposal.left.first() {
            return Err(AskError::KeptBack(why.clone()));
        }
        if proposal.lines.is_empty() {
            return Err(AskError::NoLine);
        }
        let lines = proposal.lines.clone();
        let (old, new) =
            (fitting.judge(&[]).map_err(failed)?, fitting.judge(&lines).map_err(failed)?);
        let also = widening(&lines, (&old, &new), &fitting.scope, &[object]);
        let amendments = amendments(&lines, &proposal);
        let record = &denial.record;
        let mut case = Self {
            number: 0,
            waiting: Vec::new(),
            program: access(record).who().to_owned(),
            pid: record.pid,
            wants: record.missing.clone(),
            class: record.tclass.clone(),
            object: record.object.clone(),
            lines,
            amendments,
            also,
            taken: Vec::new(),
            secret,
            proposed: false,
            proposers: Vec::new(),
            choices: Vec::new(),
            until,
        };
        case.choices = case.possible(setup);
        Ok(case)
    }

    /// Whether who reads this question has read the other one.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        let is_about = (&self.wants, &self.class, &self.object);
        (self.proposed, &self.taken) == (other.proposed, &other.taken)
            && is_about == (&other.wants, &other.class, &other.object)
            && bare(&self.lines) == bare(&other.lines)
    }

    /// Whether nobody waits for the answer any more: no call, or none of those that proposed it.
    pub(crate) fn is_deserted(&self) -> bool {
        // Who has only ended what it says can still hear.
        let is_gone = |stream: &Arc<UnixStream>| {
            let mut fds = [PollFd::new(stream, PollFlags::empty())];
            let polled = poll(&mut fds, Some(&Timespec::default()));
            polled.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
        };
        if self.proposed { self.proposers.iter().all(is_gone) } else { self.waiting.is_empty() }
    }

    /// What can be answered: an answer that could not be carried out is none.
    pub(crate) fn possible(&self, setup: &Setup) -> Vec<Choice> {
        let mut choices = Vec::new();
        if !self.proposed {
            choices.push(Choice::Once);
        }
        // Lines that cover a secret that nobody has asked about are none to grant by a letter.
        let is_safe = self.also.secrets.is_empty();
        if self.amendments.is_some() && is_safe {
            choices.push(Choice::Run);
        }
        if is_safe && target(setup).is_ok() {
            choices.push(Choice::Profile);
        }
        choices.push(Choice::No);
        choices
    }

    /// For people: a block of lines.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let wants = format!("{} ({})", words(&self.wants), exact(&self.class, &self.wants));
        let head = match self.proposed {
            true => format!("{} [{}] proposes:", self.program, self.pid),
            false => format!("{} [{}] may not {wants}", self.program, self.pid),
        };
        let _ = writeln!(text, "{}", visible(&head));
        if !self.proposed {
            let _ = writeln!(text, "  {}", visible(&self.object));
        }
        for line in &self.lines {
            let _ = writeln!(text, "  {}", visible(&line.alone()));
        }
        for taken in &self.taken {
            let _ = writeln!(text, "  TAKEN while it ran: {}", visible(taken));
        }
        if self.also.files > 0 {
            let more = if self.also.more { "more than " } else { "" };
            let _ = writeln!(text, "  also {more}{} files that are there", self.also.files);
        }
        if let Some(path) = self.also.secrets.first() {
            let _ = writeln!(text, "  {}", visible(&kept_back(path)));
        }
        match profile::power(&self.object) {
            Some(gives) => {
                let _ = writeln!(text, "  GIVES whoever connects {gives}");
                text.push_str("  write its full name behind the answer\n");
            }
            None if self.secret => {
                text.push_str("  SECRET: write its full name behind the answer\n");
            }
            None => {}
        }
        text
    }

    /// The line that asks: `[o]nce, this [r]un, …`.
    pub(crate) fn choice_line(&self) -> String {
        let words = self.choices.iter().map(|choice| match choice {
            Choice::Once => "[o]nce",
            Choice::Run => "this [r]un",
            Choice::Profile => "into the [p]rofile",
            Choice::No => "[N]o",
        });
        format!("  allow {}? ", words.collect::<Vec<_>>().join(", "))
    }

    /// What is kept of it.
    pub(crate) fn summary(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::alone).collect();
        format!("{} [{}]: {}", self.program, self.pid, lines.join("; "))
    }

    /// For programs: see docs/ask.md.
    pub(crate) fn json(&self) -> Value {
        json!({
            "id": self.number,
            "program": self.program,
            "pid": self.pid,
            "wants": self.wants,
            "class": self.class,
            "object": self.object,
            "lines": self.lines.iter().map(Line::alone).collect::<Vec<_>>(),
            "also_files": self.also.files,
            "also_more": self.also.more,
            "also_secrets": self.also.secrets,
            "taken": self.taken,
            "secret": self.secret,
            "gives_outside": profile::power(&self.object),
            "proposed": self.proposed,
            "answers": self.choices.iter().map(|choice| choice.name()).collect::<Vec<_>>(),
            "seconds": self.until.saturating_duration_since(Instant::now()).as_secs(),
        })
    }
}

/// The profile that an answer may change: a file that the run cannot write itself.
pub(crate) fn target(setup: &Setup) -> anyhow::Result<ProfileFile> {
    let Some(file) = file_of(&setup.argument, &setup.directory) else {
        anyhow::bail!("the profile is a shipped one: `dewar allow --write` makes one of your own");
    };
    let target = ProfileFile::find(&file)?;
    let own = of_profile(&setup.argument, &setup.directory, setup.variables.clone())?;
    target.insist_on_distance(Some(&own.judge(&[])?), &setup.variables)?;
    Ok(target)
}

/// Puts `lines` into the profile.
pub(crate) fn write(setup: &Setup, lines: &[Line]) -> anyhow::Result<PathBuf> {
    let target = target(setup)?;
    // As the file is now: somebody may have changed it since the run began.
    let fitting = Fitting::of_target(&target, setup.variables.clone())?;
    target.write(&fitting.with(lines)?, Author::Allow)?;
    Ok(target.path)
}

/// Whether a person has written the name of what a question is about.
pub(crate) fn is_named(case: &Case, named: Option<&str>) -> bool {
    named.is_some_and(|named| is_name_of(Path::new(named), &case.object))
}

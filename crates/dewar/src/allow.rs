//! `dewar allow`: from denials of a run to a profile that grants them.

mod given;
mod told;

pub(crate) use given::{amendment, one_protocol};

use crate::{
    control::{Run, RunArg},
    entries::directory_of,
    failure::{Failed, Usage},
    fitting::{Author, Fitting, ProfileFile, access, file_of, undo_allowed},
    guarded::Guarded,
    machine,
    names::is_name_of,
    proposal::{Proposal, named_hosts, of_file},
    run::{Denial, Journal, RunRecord, Unseen},
    shell::{self, quoted},
    so_far::so_far,
    trust,
};
use anyhow::bail;
use clap::Args;
use cli::look;
use learn::Edit;
use monitor::visible;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use told::{by_name, shown, tell};

const EXAMPLES: &str = "\
Examples:
  dewar run -- npm ci; dewar explain          numbers what was denied
  dewar allow 1 3 --write dewar.toml          allows two of it, in a profile
  dewar allow --all --dry-run                 says what all of it would take
  dewar allow ci ~/.config/foo/key.pem        a secret has to be named in full
  dewar allow ci 2 --once                     gives it to the running `ci` alone
  dewar allow --undo                          takes the last change of a profile of this
                                              project back

Without --write, the profile of the run is changed if it is a file; of a shipped one, the lines
to add are printed. Comments and everything else in the file stay as they are.

Exit status: 0; 1 if some of it cannot be allowed, or a shipped profile would have to be
changed; 2 for wrong use, or if there is no such run.";

/// Allow what a run was denied: change its profile, or a running sandbox.
///
/// Says first what else that grants: how many files are there already that it newly covers. What
/// is secret, or looks like it, is left out unless it is named in full. So is a service outside
/// that acts for whoever connects, such as Docker's; what it gives is said.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AllowArgs {
    /// The run [default: the last], then numbers of `dewar explain`, or objects in full
    #[arg(value_name = "RUN|N|OBJECT")]
    what: Vec<String>,

    /// Everything that was denied
    #[arg(long)]
    all: bool,

    /// The profile to change; made if it is not there
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Say what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Give it to the running sandbox only
    #[arg(long, conflicts_with_all = ["write", "dry_run"])]
    once: bool,

    /// Take the last change of a profile back: of --write FILE, or of this project's
    #[arg(long, conflicts_with_all = ["what", "all", "once", "dry_run"])]
    undo: bool,
}

/// What the arguments name.
struct Wanted {
    run: Option<String>,
    numbers: Vec<usize>,
    objects: Vec<String>,
}

/// Carries out `dewar allow`.
pub(crate) fn run(args: &AllowArgs) -> anyhow::Result<()> {
    if args.undo {
        return undo_allowed(args.write.as_deref());
    }
    let wanted = wanted(args)?;
    let mut running = match (args.once, &wanted.run) {
        (true, run) => Some(Run::find(&RunArg { run: run.clone() })?),
        (false, Some(run)) => Run::going_on(run)?,
        (false, None) => None,
    };
    let record = match &mut running {
        Some(run) => so_far(run)?,
        None => Journal::find(wanted.run.as_deref())?,
    };
    let unseen: Vec<Denial> =
        record.unseen.iter().filter_map(|it| it.denial(&record.command)).collect();
    let denials = chosen(args, &wanted, (&record, &unseen))?;
    let target = target(args, &record)?;
    let fitting = fitting(args, &record, target.as_ref())?;
    let named: Vec<PathBuf> = wanted.objects.iter().map(PathBuf::from).collect();
    let proposal = Proposal::of(&fitting, &denials, &named)?;
    let mut text = tell(&fitting, &proposal, &denials)?;
    let by_name = by_name(args, &wanted, target.is_some(), &proposal.unnamed(&fitting, &named));
    match running.filter(|_| args.once) {
        Some(run) => {
            look::show(&shown(&(text + &by_name), look::columns()))?;
            given::give(run, &proposal)?;
        }
        None => {
            let is_done = change(args, (&record, target), &fitting, &proposal, &mut text)?;
            look::show(&shown(&(text + &by_name), look::columns()))?;
            if !is_done {
                bail!(Failed("nothing was changed".into()));
            }
        }
    }
    match (proposal.left.len(), denials.len()) {
        (0, _) => Ok(()),
        (1, 1) => bail!(Failed("it was not allowed".into())),
        (1, _) => bail!(Failed("one of them was not allowed".into())),
        (many, _) => bail!(Failed(format!("{many} of them were not allowed"))),
    }
}

fn wanted(args: &AllowArgs) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted { run: None, numbers: Vec::new(), objects: Vec::new() };
    for (index, word) in args.what.iter().enumerate() {
        if let Some((low, high)) = range(word) {
            wanted.numbers.extend(low..=high);
        } else if word.starts_with('.') && word.contains('/') {
            wanted.objects.push(machine::real(Path::new(word)).display().to_string());
        } else if word.starts_with(['/', '@']) || word.contains(':') {
            wanted.objects.push(word.trim_end_matches('/').to_owned());
        } else if index == 0 {
            wanted.run = Some(word.clone());
        } else {
            bail!(Usage(format!(
                "`{word}` is neither the number of a denial nor a path from the root; the run comes first"
            )));
        }
    }
    if wanted.numbers.is_empty() && wanted.objects.is_empty() && !args.all {
        bail!(Usage(
            "which denials? Name their numbers, as `dewar explain` tells them, or --all".into()
        ));
    }
    Ok(wanted)
}

/// `3`, or `2-5`.
fn range(word: &str) -> Option<(usize, usize)> {
    // A run that is denied without end has large numbers, few of which are kept.
    let number =
        |text: &str| text.parse().ok().filter(|number: &usize| (1..10_000_000).contains(number));
    let (low, high) = word.split_once('-').unwrap_or((word, word));
    Some((number(low)?, number(high)?)).filter(|(low, high)| high.saturating_sub(*low) < 10_000)
}

fn chosen<'a>(
    args: &AllowArgs,
    wanted: &Wanted,
    (record, unseen): (&'a RunRecord, &'a [Denial]),
) -> anyhow::Result<Vec<&'a Denial>> {
    let denials = &record.denials;
    if denials.is_empty() && (!args.all && wanted.objects.is_empty() || unseen.is_empty()) {
        let named = unseen.first().map(|it| {
            format!("; `dewar allow {}` lets it see that", quoted(&visible(&it.record.object)))
        });
        let command = visible(&record.command.join(" "));
        let told = named.unwrap_or_else(|| not_seen(record, &wanted.objects));
        bail!(Usage(format!("`{command}` was denied nothing{told}")));
    }
    if args.all {
        let outer = denials.iter().filter(|denial| !is_inside(denial));
        // As the end of the run speaks of it.
        let unseen = unseen.iter().filter(|_| record.likeliest().is_none());
        return Ok(outer.chain(unseen).collect());
    }
    let mut chosen = Vec::new();
    for number in &wanted.numbers {
        let is_it = |(index, denial): &(usize, &Denial)| denial.number(*index) == *number;
        let Some((_, denial)) = denials.iter().enumerate().find(is_it) else {
            let more = if record.dropped > 0 || record.goes_on { ", or no more" } else { "" };
            bail!(Usage(format!(
                "there is no denial {number}{more}: `{}` has {}, which `dewar explain` tells",
                visible(&record.command.join(" ")),
                denials.len()
            )));
        };
        chosen.push(denial);
    }
    let workspace = record.variables.as_ref().map(|it| &*it.workspace);
    for object in &wanted.objects {
        let before = chosen.len();
        let is_meant = |denial: &&Denial| {
            let access = access(&denial.record);
            let directory = directory_of(&access).map(Path::to_string_lossy);
            let guarded = Guarded::by_guard(&denial.record);
            let whole = guarded.zip(workspace).and_then(|(it, workspace)| it.repository(workspace));
            let is_it = |name: &str| is_name_of(Path::new(object), name);
            is_it(&denial.record.object)
                || directory.is_some_and(|name| is_it(&name))
                || whole.is_some_and(is_it)
        };
        chosen.extend(denials.iter().chain(unseen).filter(is_meant));
        if chosen.len() == before {
            let told = not_seen(record, std::slice::from_ref(object));
            bail!(Usage(format!("the run was not denied `{}`{told}", visible(object))));
        }
    }
    if let Some(denial) = chosen.iter().find(|denial| is_inside(denial)) {
        bail!(Usage(format!(
            "`{}` was denied a run inside of the run, as {}: its profile is not the one of this run",
            visible(&denial.record.object),
            visible(flask::domain_of(&denial.record.scontext))
        )));
    }
    Ok(chosen)
}

/// What is said of what the command names and does not see, of `objects` or of all.
fn not_seen(record: &RunRecord, objects: &[String]) -> String {
    let is_meant =
        |it: &&Unseen| objects.is_empty() || objects.iter().any(|name| it.is_named(name));
    let variables = record.variables.clone().unwrap_or_default();
    let told = record.unseen.iter().find(is_meant).map(|it| it.told(&variables));
    told.map_or(String::new(), |told| format!("; {told}"))
}

/// Whether it was denied to a run inside, whose own profile may be the reason.
fn is_inside(denial: &Denial) -> bool {
    flask::domain_of(&denial.record.scontext).contains('/')
}

/// The file that would be changed, if one is; never one that the run could have written.
fn target(args: &AllowArgs, record: &RunRecord) -> anyhow::Result<Option<ProfileFile>> {
    let own = file_of(&record.fitted(), &record.directory);
    let Some(file) = args.write.clone().or(own).filter(|_| !args.once) else { return Ok(None) };
    let target = ProfileFile::find(&file)?;
    // What the run could do is what its own profile says, not what it may have made of this file;
    // and what it was given since, taken back or not.
    let own = of_file(record)?;
    let judge = own.judge_of(record.granted())?;
    target.insist_on_distance(judge.as_ref(), &own.variables)?;
    Ok(Some(target))
}

/// The profile that would be changed: as `target` holds it, if it is a file.
fn fitting(
    args: &AllowArgs,
    record: &RunRecord,
    target: Option<&ProfileFile>,
) -> anyhow::Result<Fitting> {
    let Some(variables) = record.variables.clone() else {
        bail!(Usage("this run was recorded by an older Dewar; run the command again".into()));
    };
    let own = file_of(&record.fitted(), &record.directory).filter(|_| args.write.is_none());
    let fitting = match (target.filter(|it| it.before.is_some()), own) {
        (Some(target), _) => Fitting::of_target(target, variables),
        (_, Some(file)) => Fitting::of_file(&file, variables),
        _ => Fitting::extending(&record.fitted(), &record.directory, variables),
    };
    Ok(fitting?.naming(named_hosts(&record.command), &record.unfound))
}

/// Changes the profile, or says how to. Returns whether what was asked for is done.
fn change(
    args: &AllowArgs,
    (record, target): (&RunRecord, Option<ProfileFile>),
    fitting: &Fitting,
    proposal: &Proposal<'_>,
    text: &mut String,
) -> anyhow::Result<bool> {
    if proposal.lines.is_empty() {
        if proposal.left.is_empty() {
            text.push_str("the profile grants it already; nothing was changed\n");
        }
        return Ok(true);
    }
    let Some(target) = target else {
        let what = visible(&shell::command(&args.what)) + if args.all { " --all" } else { "" };
        writeln!(
            text,
            "`{}` is a shipped profile. To write one of your own that extends it:\n  dewar allow {} --write dewar.toml",
            visible(&record.argument),
            what.trim()
        )?;
        return Ok(args.dry_run);
    };
    if args.dry_run {
        writeln!(text, "{} would be changed; nothing was", target.path.display())?;
        return Ok(true);
    }
    let mut edit = Edit::of(&fitting.with(&proposal.lines)?)?;
    if fitting.loses_loopback(&proposal.lines)? {
        edit.own_loopback();
    }
    target.write(&edit.text(), Author::Allow)?;
    let file = visible(&target.path.to_string_lossy());
    let (done, how) = match target.before {
        Some(_) => ("changed", String::new()),
        None => ("written", format!("; use it by `-p {}`", quoted(&file))),
    };
    writeln!(text, "{file} {done}{how}; `dewar allow --undo` takes it back")?;
    if let Some(told) = trust::untrusted(&target.path, &edit.text()) {
        writeln!(text, "{told}")?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screens::{record, screen};
    use profile::Variables;
    use std::path::Path;

    fn arguments(what: &[&str]) -> AllowArgs {
        AllowArgs {
            what: what.iter().map(|word| (*word).to_owned()).collect(),
            all: what.len() == 1,
            write: None,
            dry_run: false,
            once: false,
            undo: false,
        }
    }

    #[test]
    fn a_number_stands_for_the_denial_that_has_it_and_for_no_other() {
        let mut record = record();
        record.denials.truncate(3);
        for (denial, number) in record.denials.iter_mut().zip([1, 2, 2231]) {
            denial.record.number = number;
        }
        let object = record.denials[2].record.object.clone();
        let chosen = |number: &str| {
            let args = arguments(&["ci", number]);
            let chosen = chosen(&args, &wanted(&args)?, (&record, &[]));
            chosen.map(|all| all.iter().map(|it| it.record.object.clone()).collect::<Vec<_>>())
        };
        assert_eq!(chosen("2231").unwrap(), [object]);
        for gone in ["3", "2230", "2232", "4-2231"] {
            let error = chosen(gone).unwrap_err().to_string();
            assert!(error.contains("there is no denial"), "{gone}: {error}");
        }
    }

    #[test]
    fn what_is_allowed_and_what_is_not_looks_as_reviewed() {
        let variables = Variables {
            workspace: "/home/me/project".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            ..Variables::default()
        };
        let record = RunRecord { argument: "workspace".into(), ..record() };
        let fitting = Fitting::extending("workspace", Path::new("/"), variables).unwrap();
        let denials: Vec<&Denial> = record.denials.iter().take(6).collect();
        let proposal = Proposal::of(&fitting, &denials, &[]).unwrap();
        let args = arguments(&["nightly"]);
        let mut text = tell(&fitting, &proposal, &denials).unwrap();
        change(&args, (&record, None), &fitting, &proposal, &mut text).unwrap();
        screen("allow", |width| shown(&text, Some(width)));
    }
}

//! `dewar allow`: from denials of a run to a profile that grants them.

mod chosen;
mod given;
mod told;

pub(crate) use given::{amendment, one_protocol};

use crate::{
    control::{Run, RunArg},
    failure::{Failed, Usage},
    fitting::{Author, Fitting, ProfileFile, file_of, undo_allowed},
    proposal::{Proposal, named_hosts, of_file},
    run::{Denial, Journal, RunRecord},
    shell::{self, quoted},
    so_far::so_far,
    trust,
};
use anyhow::bail;
use chosen::{Wanted, below, chosen, wanted};
use clap::Args;
use cli::look;
use learn::Edit;
use monitor::visible;
use std::{fmt::Write as _, path::PathBuf};
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
    let mut unseen: Vec<Denial> =
        record.unseen.iter().filter_map(|it| it.denial(&record.command)).collect();
    unseen.extend(wanted.objects.iter().filter_map(|object| below(object, &record.denials)));
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
impl AllowArgs {
    pub(super) fn naming(what: &[&str]) -> Self {
        Self {
            what: what.iter().map(|word| (*word).to_owned()).collect(),
            all: what.len() == 1,
            write: None,
            dry_run: false,
            once: false,
            undo: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screens::{record, screen};
    use profile::Variables;
    use std::path::Path;

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
        let args = AllowArgs::naming(&["nightly"]);
        let mut text = tell(&fitting, &proposal, &denials).unwrap();
        change(&args, (&record, None), &fitting, &proposal, &mut text).unwrap();
        screen("allow", |width| shown(&text, Some(width)));
    }
}

//! `dewar learn`: a profile for a command, from what the command does.

mod floor;
pub(crate) mod hosts;
mod split;
mod told;

use crate::{
    failure::Usage,
    fitting::{Author, Fitting, ProfileFile, file_of},
    learning::Learning,
    machine,
    output::{self, tell},
    shell, trust,
};
use anyhow::{Context as _, bail};
use clap::Args;
use learn::{Access, Addresses, Line, Scope, Settled, What, settle};
use monitor::visible;
use profile::{Compiled, Source, Variables};
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

/// What is learned above, unless another profile is named.
const DEFAULT: &str = "workspace";

const AFTER_HELP: &str = "\
Examples:
  dewar learn -- npm ci                      writes dewar.toml
  dewar run -p ./dewar.toml -- npm ci        runs under it
  dewar learn --merge -- npm test            adds what that needs, keeps the rest
  dewar learn -p agent -o - -- cargo fetch   above another profile; to standard output

While it learns, the command may do nearly everything that you may, and reach every host: learn
from what you would start without Dewar. What stays denied meanwhile: what the base profile
or `workspace` hides or denies, files whose names say that they are secrets, what was not
looked through for those, changing the system, devices, abstract sockets, names that programs
outside trust (hooks, settings of editors), and whatever gdb, strace and their like start, as
each exec is looked at: learn from the command without them. None of it is ever in the
profile; of what looks like a secret, what was there by then.

Exit status: the command's; 2 for wrong use, 125 if Dewar failed to set up or to write.";

/// Learn a profile: run a command with nearly everything allowed, and write what it needed.
///
/// Each line says who needed it. Names that are others in each run become patterns, and a
/// directory that is one program's own is granted as a whole, if no secret lies in it. No line is
/// there that the command could do without. What a line grants beyond what was used is said.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LearnArgs {
    /// Where the profile goes; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "dewar.toml")]
    output: PathBuf,

    /// Profile that the new one extends: the name of a shipped one, or a file [default:
    /// `workspace`]
    #[arg(short, long, value_name = "PROFILE")]
    profile: Option<String>,

    /// The directory that `${workspace}` stands for [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Add to FILE if it exists: its entries and comments are kept, and its own `extends` counts.
    /// If FILE is a dewar.toml, it must be trusted first, unless Dewar wrote it
    #[arg(long, conflicts_with = "force")]
    merge: bool,

    /// Give programs that alone reach the network a domain of their own. Runs the command twice:
    /// the domain is made only if nothing is denied with it
    #[arg(long, conflicts_with = "merge")]
    domains: bool,

    /// Replace FILE if it is there; `dewar allow --undo` brings it back
    #[arg(long)]
    force: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl LearnArgs {
    /// Whether the profile goes where plain `dewar run` finds it.
    fn is_of_project(&self) -> bool {
        self.output.file_name().is_some_and(|name| name == trust::NAME)
    }

    /// What `dewar run --learn` asks for.
    pub(crate) fn for_run(
        profile: Option<String>,
        workspace: Option<PathBuf>,
        command: Vec<OsString>,
    ) -> Self {
        let output = PathBuf::from("dewar.toml");
        // A second run adds to what the first has learned.
        let merge = output.exists();
        Self { output, profile, workspace, merge, force: false, domains: false, command }
    }

    /// Where the profile goes; nowhere, if it is printed.
    fn file(&self) -> PathBuf {
        match self.output == Path::new("-") {
            true => "/nonexistent".into(),
            false => machine::real(&self.output),
        }
    }

    /// What a profile that is made anew extends.
    fn base(&self) -> &str {
        self.profile.as_deref().unwrap_or(DEFAULT)
    }
}

/// Carries out `dewar learn`.
pub(crate) fn run(args: &LearnArgs) -> anyhow::Result<i32> {
    let variables = machine::variables(args.workspace.as_deref(), "/tmp".into())?;
    // The command may take hours: what would keep its profile from being written is said before.
    profile::Documents::read(&Source::from_argument(args.base()))?;
    let target = target(args)?;
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let fitting = fitting(args, target.as_ref(), &here, variables.clone())?;
    let base = fitting.compile(&[])?;
    let words: Vec<_> = args.command.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let command = shell::command(&words);
    let place = tempfile::tempdir().context("cannot make a temporary directory")?;
    let extends = match (&target, args.merge) {
        (Some(ProfileFile { path, before: Some(_) }), true) => path.display().to_string(),
        _ => file_of(args.base(), &here)
            .map_or_else(|| args.base().to_owned(), |f| f.display().to_string()),
    };
    let output = args.file();
    let (text, kept) =
        floor::profile(&extends, (&base, &variables), &fitting.scope.secrets, &output, &command)?;
    let above = place.path().join("learn.toml");
    std::fs::write(&above, text).context("cannot write the profile to learn under")?;
    tell!(
        "dewar: learning above {}: nearly everything is allowed{}",
        visible(&extends),
        match kept {
            0 => String::new(),
            kept => format!(", but {kept} files that look like secrets"),
        }
    );
    let trail = place.path().join("trail");
    let status = watch(args, &above, &trail)?;
    if !trail.exists() {
        // It was not started; why, it has said.
        return Ok(status);
    }
    let accesses = read(&trail)?;
    if !accesses.keys().any(|access| access.granted && access.wants("execute")) {
        tell!("dewar: nothing was learned, as the command was not started");
        return Ok(status);
    }
    let compiled = profile::load(&Source::File(above), &variables, &mut machine::resolve)?;
    let addresses = addresses(&compiled, &variables, &fitting);
    let domains = learn::standing_out(&accesses, &fitting.judge(&[])?);
    let mut learned = Learned::of(fitting, &accesses, &addresses)?;
    // Who has bound a port of a loopback of the run's own has reached nothing.
    let reaches = learned.lines.iter().any(|line| line.key.starts_with("network."));
    let domains = if reaches { domains } else { Vec::new() };
    let domains = split::lasting(domains, &learned, args.domains)?;
    if args.domains && !domains.is_empty() {
        let seen = (&accesses, status);
        let split = split::split(args, &learned, seen, &domains)?;
        learned = split.unwrap_or(learned);
    }
    let text = text_of(&learned, &command)?;
    let left = told::left(&learned.settled, &accesses);
    let more = [told::beyond(&learned, &accesses)?, told::unmade(&learned)?].concat();
    left.iter().chain(&more).for_each(|line| tell!("{line}"));
    match &target {
        Some(target) => {
            // A project's file that says nothing would only have to be trusted.
            let is_written =
                !learned.lines.is_empty() || target.before.is_some() || !args.is_of_project();
            if is_written {
                target.write(&text, Author::Learn)?;
            }
            let ended = (status, !left.is_empty());
            let told = told::done(&learned.lines, args, &command, ended, is_written);
            told.iter().for_each(|it| tell!("{it}"));
            if let Some(told) = trust::untrusted(&target.path, &text).filter(|_| is_written) {
                tell!("dewar: {told}");
            }
            if !args.domains && !args.merge && !domains.is_empty() {
                let names = split::names(&domains);
                tell!(
                    "dewar: only {names} reached the network; --domains keeps it from the others"
                );
            }
        }
        None => output::print(text.as_bytes())?,
    }
    Ok(status)
}

/// What was learned.
struct Learned {
    /// The profile that lines are added to.
    fitting: Fitting,
    lines: Vec<Line>,
    settled: Settled,
    addresses: Addresses,
}

impl Learned {
    fn of(
        fitting: Fitting,
        accesses: &BTreeMap<Access, u64>,
        addresses: &Addresses,
    ) -> anyhow::Result<Self> {
        let shares = learn::shares_loopback(accesses.keys());
        let settled = settle(accesses, &fitting.scope, addresses, |lines| match shares {
            true => fitting.judge_outside(lines),
            false => fitting.judge(lines),
        })?;
        let lines = addresses.with_all_names(settled.lines.clone());
        Ok(Self { fitting, lines, settled, addresses: addresses.clone() })
    }
}

/// Runs the command under the profile `above`; the exit status that a shell would show. It has a
/// process of its own: a monitor lives in the view of its sandbox, and could write no profile.
fn watch(args: &LearnArgs, above: &Path, trail: &Path) -> anyhow::Result<i32> {
    // Whoever ends a server by Ctrl-C wants to have its profile.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default()).context("cannot handle signals")?;
    }
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let mut run = Command::new(program);
    let learning = Learning { base: args.base().to_owned(), file: args.file() };
    learning.tell(above).context("cannot tell the run what is learned from it")?;
    run.args(["run", "--learning", "--no-daemon", "--mode", "all", "--profile"]).arg(above);
    run.arg("--audit").arg(trail);
    if let Some(workspace) = &args.workspace {
        run.arg("--workspace").arg(workspace);
    }
    let status = run.arg("--").args(&args.command).status().context("cannot start the run")?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// The file to write, looked at before the command could have had a hand in it.
fn target(args: &LearnArgs) -> anyhow::Result<Option<ProfileFile>> {
    if args.output == Path::new("-") {
        return Ok(None);
    }
    let target = ProfileFile::find(&args.output)?;
    if target.before.is_some() && !args.merge && !args.force {
        bail!(Usage(format!(
            "`{}` is there already: --merge adds to it, --force replaces it, -o names another",
            args.output.display()
        )));
    }
    let directory = target.path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).map_err(|error| {
        use rustix::io::Errno;
        let name = args.output.display();
        let why = std::io::Error::from(error);
        let told = format!("cannot write `{name}`: {why}; -o names another file");
        match error {
            // There is no such directory: that is a mistake in the name.
            Errno::NOENT | Errno::NOTDIR => Usage(told).into(),
            _ => anyhow::Error::msg(told),
        }
    })?;
    Ok(Some(target))
}

/// The profile that lines are added to.
fn fitting(
    args: &LearnArgs,
    target: Option<&ProfileFile>,
    here: &Path,
    variables: Variables,
) -> anyhow::Result<Fitting> {
    if let Some(target @ ProfileFile { before: Some(_), .. }) = target.filter(|_| args.merge) {
        insist_on_trust(args, target, here)?;
        return Fitting::of_target(target, variables);
    }
    Fitting::extending(args.base(), here, variables)
}

/// Refuses a project's dewar.toml that is its word alone: what it does not hide or deny could be
/// had while the command is learned from. Whoever names a file by -p has said so.
fn insist_on_trust(args: &LearnArgs, target: &ProfileFile, here: &Path) -> anyhow::Result<()> {
    let shown = visible(&target.path.display().to_string());
    if let Some(named) = &args.profile {
        let file = file_of(named, here).map(|file| machine::real(&file));
        if file.as_ref() == Some(&target.path) {
            return Ok(());
        }
        bail!(Usage(format!(
            "`{shown}` is there and says itself what it extends, so `-p {}` would mean nothing: leave that out, or write \
             another file by `dewar learn -o`",
            visible(named)
        )));
    }
    let is_trusted = || trust::is_trusted(&target.path, target.before.as_deref());
    if args.is_of_project() && !is_trusted() && !target.is_made_here()? {
        bail!(Usage(format!(
            "{shown} is the word of this project, and you have not trusted it; nothing was started.\n  dewar trust             \
             shows what it grants, and asks\n  dewar learn -o FILE     learns into another file"
        )));
    }
    Ok(())
}

/// What was asked for, and how often, each kind once.
fn read(trail: &Path) -> anyhow::Result<BTreeMap<Access, u64>> {
    let mut accesses = BTreeMap::new();
    let file = std::fs::File::open(trail).context("the command left no trail to learn from")?;
    for line in BufReader::new(file).lines() {
        // A thread may have been renamed in between; who is the program.
        let access: Access = serde_json::from_str(&line?).context("the trail is broken")?;
        let access = Access { comm: String::new(), ..access }.as_meant();
        *accesses.entry(access).or_default() += 1;
    }
    Ok(accesses)
}

/// The names that the run knew its addresses by.
fn addresses(compiled: &Compiled, variables: &Variables, fitting: &Fitting) -> Addresses {
    let mut names = Vec::new();
    for (name, found) in compiled.named_hosts() {
        names.extend(found.iter().map(|ip| (*ip, name.to_owned())));
        fitting.know(name, found);
    }
    Addresses { names, nameservers: variables.nameservers.clone() }
}

/// The profile, with what it is at its top.
fn text_of(learned: &Learned, command: &str) -> anyhow::Result<String> {
    let Learned { fitting, settled, lines, .. } = learned;
    let text = fitting.with(lines)?;
    if text.starts_with('#') {
        return Ok(text);
    }
    let head = format!("# What `{}` needs, learned by `dewar learn`.\n", visible(command));
    Ok(head + &not_learned(settled, &fitting.scope) + &text)
}

/// What acts for whoever connects, nobody learns: it is said, for a person to decide.
fn not_learned(settled: &Settled, scope: &Scope) -> String {
    let mut said = BTreeSet::new();
    for access in &settled.left {
        let need = learn::need(access, &access.requested).map(|need| need.what);
        let address = need.as_ref().and_then(What::address);
        let (Some(What::Unix(scheme, name)), Some(gives)) =
            (need, address.and_then(|it| profile::power(&it)))
        else {
            continue;
        };
        let value = format!("{scheme}:{}", scope.text(Path::new(&name)));
        let line = Line { key: "network.connect".into(), value, ..Line::default() }.alone();
        let (who, line) = (visible(access.who()), visible(&line));
        said.insert(format!("# Not in it, for {who}: {line}\n#   gives {gives}\n"));
    }
    said.into_iter().collect()
}

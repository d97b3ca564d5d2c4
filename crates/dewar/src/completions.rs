//! `dewar completions`: completion scripts for shells.

use crate::{commands, control::Run, run::Journal};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use cli::{look, output};
use monitor::visible;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  dewar completions bash > ~/.local/share/bash-completion/completions/dewar
  dewar completions zsh  > ~/.zfunc/_dewar
  dewar completions fish > ~/.config/fish/completions/dewar.fish

In bash, zsh and fish, names of profiles, runs and domains are completed, too, and commands
and files behind `--`. Of runs, the 20 newest are offered.

Exit status: 0; 2 for wrong use.";

/// Print the completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "dewar completions <SHELL>")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", required_unless_present = "list")]
    shell: Option<Shell>,

    /// Print the names there are now, one a line: what the scripts ask for
    #[arg(long, value_name = "WHAT", conflicts_with = "shell", hide = true)]
    list: Option<Names>,
}

/// What has names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Names {
    Profiles,
    Runs,
    /// Those that go on.
    Live,
    Domains,
}

/// Runs that are offered, and how much is shown of what each ran.
const MOST_RUNS: usize = 20;
const MOST_COLUMNS: usize = 50;

/// Asks for names where bash has none of its own. Where nothing is offered, bash offers files.
const BASH: &str = r#"
_dewar_names() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at
    _dewar_list() { COMPREPLY=($(compgen $2 -W "$(dewar completions --list $1 2>/dev/null | cut -f1)" -- "$word")); }
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] || continue
        COMPREPLY=()
        [[ $before == -- && $at == $((COMP_CWORD - 1)) && $word != */* ]] && COMPREPLY=($(compgen -c -- "$word"))
        return
    done
    case $before in
        -p|--profile) _dewar_list profiles -f; return ;;
        --domain) _dewar_list domains; return ;;
    esac
    if [[ $word != -* ]]; then
        case $COMP_CWORD:${COMP_WORDS[1]}:${COMP_WORDS[2]} in
            2:explain:*|2:report:*|2:allow:*) _dewar_list runs; return ;;
            2:ask:*|2:revoke:*|2:grant:*|3:policy:set|3:policy:load|3:policy:history) _dewar_list live; return ;;
            *:policy:show|*:policy:check|*:policy:export|*:policy:env|*:policy:diff) _dewar_list profiles -f; return ;;
        esac
    fi
    _dewar "$@"
}
complete -F _dewar_names -o bashdefault -o default dewar
"#;

/// The same for fish, which completes what stands behind `--` as a line of its own. A profile may
/// be a file, too.
const FISH: &str = r#"
function __dewar_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c dewar -n "contains -- -- (commandline -opc)" -x -a "(__dewar_command)"
complete -c dewar -n "__fish_seen_subcommand_from run learn init selftest" -s p -l profile -r -F -a "(dewar completions --list profiles 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from explain report allow" -f -k -a "(dewar completions --list runs 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from ask revoke grant" -f -k -a "(dewar completions --list live 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from set load history" -f -k -a "(dewar completions --list live 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from show check export env diff" -F -a "(dewar completions --list profiles 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from revoke grant" -l domain -x -a "(dewar completions --list domains 2>/dev/null)"
"#;

/// What the script for zsh asks where a name is wanted.
const ZSH: &str = r#"
_dewar_names() {
    local -a lines names one
    lines=(${(f)"$(dewar completions --list $1 2>/dev/null)"})
    names=(${lines%%$'\t'*})
    lines=(${lines//$'\t'/  })
    [[ $1 == runs ]] && one=(-l)
    compadd -V $1 $one -d lines -a names
}
_dewar_profiles() { _dewar_names profiles; _files }
_dewar_runs() { _dewar_names runs }
_dewar_domains() { _dewar_names domains }

"#;

/// Where zsh is to ask what, by how the script calls the argument.
const ZSH_NAMES: [(&str, &str); 10] = [
    (":PROFILE", "_dewar_profiles"),
    (":DOMAIN", "_dewar_domains"),
    ("::run -- ", "_dewar_runs"),
    ("*::run_and_profile -- ", "_dewar_runs"),
    ("*::what -- ", "_dewar_runs"),
    ("::profile -- ", "_dewar_profiles"),
    ("*::policies -- ", "_dewar_profiles"),
    (":old -- ", "_dewar_profiles"),
    (":new -- ", "_dewar_profiles"),
    ("*::words -- ", "_dewar_runs"),
];

/// The flags that only Dewar itself uses, whatever the subcommand: the generator offers them.
fn inner_flags(command: &Command) -> BTreeSet<String> {
    let [mut inner, mut others] = [BTreeSet::new(), BTreeSet::new()];
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        for option in command.get_arguments() {
            let names = if option.is_hide_set() { &mut inner } else { &mut others };
            let name = option.get_long().filter(|_| !option.get_action().takes_values());
            names.extend(name.map(str::to_owned));
        }
        commands.extend(command.get_subcommands());
    }
    &inner - &others
}

/// A script of the generator, without these flags.
fn without(flags: &BTreeSet<String>, script: &str) -> String {
    // zsh, fish, elvish, PowerShell.
    let is_about = |line: &&str| {
        flags.iter().any(|name| {
            let forms = [
                format!("--{name}["),
                format!(" -l {name} "),
                format!("cand --{name} "),
                format!("new('--{name}'"),
            ];
            forms.iter().any(|form| line.contains(form))
        })
    };
    let lines = script.split_inclusive('\n').filter(|line| !is_about(line));
    let in_list = |line: &str| match line.trim_start().starts_with("opts=\"") {
        // bash
        true => {
            let is_one =
                |word: &&str| word.strip_prefix("--").is_none_or(|name| !flags.contains(name));
            line.split(' ').filter(is_one).collect::<Vec<_>>().join(" ")
        }
        false => line.to_owned(),
    };
    lines.map(in_list).collect()
}

/// The script of the generator, asking for names.
fn zsh(script: &str) -> String {
    let asks = |line: &str| {
        let (what, rest) = line.strip_suffix(":_default' \\")?.split_at(1);
        let named = |(name, _): &&(&str, &str)| rest.starts_with(name) || rest.ends_with(name);
        let (_, function) = ZSH_NAMES.iter().find(named).filter(|_| what == "'")?;
        Some(format!("'{rest}:{function}' \\\n"))
    };
    let lines: String =
        script.lines().map(|line| asks(line).unwrap_or_else(|| format!("{line}\n"))).collect();
    // The last lines call the function.
    match lines.rsplit_once("\nif [ \"$funcstack[1]\"") {
        Some((before, after)) => format!("{before}\n{ZSH}if [ \"$funcstack[1]\"{after}"),
        None => lines,
    }
}

/// Carries out `dewar completions`.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    if let Some(names) = args.list {
        let lines: String = list(names)?.into_iter().map(|it| it + "\n").collect();
        return Ok(output::print(lines.as_bytes())?);
    }
    let Some(shell) = args.shell else { return Ok(()) };
    let mut script = Vec::new();
    let mut command = commands::command();
    clap_complete::generate(shell, &mut command, "dewar", &mut script);
    script = without(&inner_flags(&command), &String::from_utf8_lossy(&script)).into_bytes();
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH.as_bytes()),
        Shell::Zsh => script = zsh(&String::from_utf8_lossy(&script)).into_bytes(),
        _ => {}
    }
    Ok(output::print(&script)?)
}

/// The names, each in a line, for runs with what they ran behind a tabulator.
fn list(names: Names) -> anyhow::Result<Vec<String>> {
    Ok(match names {
        Names::Profiles => profile::shipped().iter().map(|(name, _)| (*name).to_owned()).collect(),
        Names::Runs => runs(true)?,
        Names::Live => runs(false)?,
        Names::Domains => {
            let domains = Run::all()?.into_iter().flat_map(|run| run.status.domains);
            domains.collect::<BTreeSet<_>>().into_iter().map(|name| visible(&name)).collect()
        }
    })
}

/// The newest runs, first those that go on, then those that have `ended` if these are wanted. A
/// name stands for the newest run that has it.
fn runs(ended: bool) -> anyhow::Result<Vec<String>> {
    let going_on = Run::all()?.into_iter().rev().map(|run| run.status);
    let going_on = going_on.map(|it| (it.id, it.name, it.command));
    let ended = if ended { Journal::summaries()? } else { Vec::new() };
    let ended = ended.into_iter().map(|it| (it.id, it.name, it.command));
    let (mut known, mut lines) = (BTreeSet::new(), Vec::new());
    for (id, name, command) in going_on.chain(ended).take(MOST_RUNS) {
        let called = name.filter(|name| known.insert(name.clone())).unwrap_or(id);
        let command = look::cut(&visible(&command.join(" ")), MOST_COLUMNS);
        lines.push(format!("{}\t{command}", visible(&called)));
    }
    Ok(lines)
}

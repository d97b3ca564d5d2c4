//! `dewar completions`: completion scripts for shells.

use crate::{commands::Dewar, control::Run, run::Journal};
use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use cli::output;
use monitor::visible;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  dewar completions bash > ~/.local/share/bash-completion/completions/dewar
  dewar completions zsh  > ~/.zfunc/_dewar
  dewar completions fish > ~/.config/fish/completions/dewar.fish

In bash and fish, names of profiles, runs and domains are completed, too.";

/// Print the completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    Domains,
}

/// Asks for names where bash has none of its own.
const BASH: &str = r#"
_dewar_names() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    case $before in
        -p|--profile) COMPREPLY=($(compgen -f -W "$(dewar completions --list profiles 2>/dev/null)" -- "$word")); return ;;
        --domain) COMPREPLY=($(compgen -W "$(dewar completions --list domains 2>/dev/null)" -- "$word")); return ;;
    esac
    case ${COMP_WORDS[1]} in
        explain|report|allow|revoke|grant)
            if [[ $COMP_CWORD == 2 && $word != -* ]]; then
                COMPREPLY=($(compgen -W "$(dewar completions --list runs 2>/dev/null)" -- "$word")); return
            fi ;;
    esac
    _dewar "$@"
}
complete -F _dewar_names -o bashdefault -o default dewar
"#;

const FISH: &str = r#"
complete -c dewar -n "__fish_seen_subcommand_from run" -s p -l profile -x -a "(dewar completions --list profiles 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from explain report allow revoke grant" -a "(dewar completions --list runs 2>/dev/null)"
complete -c dewar -n "__fish_seen_subcommand_from revoke grant" -l domain -x -a "(dewar completions --list domains 2>/dev/null)"
"#;

/// Carries out `dewar completions`.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    if let Some(names) = args.list {
        let names: String = list(names)?.into_iter().map(|it| visible(&it) + "\n").collect();
        return Ok(output::print(names.as_bytes())?);
    }
    let Some(shell) = args.shell else { return Ok(()) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Dewar::command(), "dewar", &mut script);
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH.as_bytes()),
        _ => {}
    }
    Ok(output::print(&script)?)
}

fn list(names: Names) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    match names {
        Names::Profiles => {
            found.extend(profile::shipped().iter().map(|(name, _)| (*name).to_owned()));
        }
        Names::Runs => {
            for run in Run::all()? {
                found.extend([Some(run.status.id), run.status.name].into_iter().flatten());
            }
            for run in Journal::summaries()? {
                found.extend([Some(run.id), run.name].into_iter().flatten());
            }
        }
        Names::Domains => found.extend(Run::all()?.into_iter().flat_map(|run| run.status.domains)),
    }
    Ok(found)
}

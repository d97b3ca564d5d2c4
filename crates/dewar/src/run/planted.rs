//! What programs outside would execute because of a run: what is looked for, and what is told.

use crate::{control::Denial, led::Links};
use labelling::Names;
use monitor::{Planted, Watch, Why, is_gone, visible};
use profile::{GuardLevel, GuardedName, Variables, host_trusted};
use serde::{Deserialize, Serialize};
use std::{
    fmt::Write as _,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Lines of the block at the end of a run; `dewar report` prints all.
const MOST_LINES: usize = 12;

/// Where programs lie that belong to the system: a link there is as good as its target.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu"];

/// Devices that hold nothing. Others lead anywhere (`/dev/fd`, `/dev/shm`), as `/proc` does.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Something that a program outside would execute, or do the bidding of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PlantedRecord {
    /// Where it lies.
    pub(crate) path: String,
    /// `new` or `changed`; `refused` for what was asked for and left out.
    pub(crate) state: String,
    /// `name`, `repository`, `path`, `link`, `unseen` or `setid`.
    pub(crate) kind: String,
    /// Who would execute it.
    pub(crate) runs: String,
    /// Only when somebody builds, tests or starts the project.
    pub(crate) when_built: bool,
}

/// The names that count for everything below, and those that count alone, as a watch numbers them.
pub(super) fn trusted() -> (Vec<GuardedName>, Vec<GuardedName>) {
    let is_tree = |name: &GuardedName| match name.level {
        GuardLevel::Always | GuardLevel::Deny => true,
        GuardLevel::Report | GuardLevel::Home => name.name.ends_with('/'),
        GuardLevel::Make | GuardLevel::But => false,
    };
    host_trusted().filter(|name| name.level != GuardLevel::But).partition(is_tree)
}

pub(super) fn names(of: &[GuardedName]) -> Names {
    Names::new(of.iter().map(|name| name.name.trim_end_matches('/')))
}

/// What the monitor is to look for; `private` says whether directories for temporary files are the
/// run's own: what lies there is gone with it.
pub(super) fn watch(variables: &Variables, private: bool) -> Watch {
    let shared = if private { &["/tmp", "/var/tmp", "/dev/shm"][..] } else { &[] };
    let mut own: Vec<PathBuf> = shared.iter().map(PathBuf::from).collect();
    own.extend([variables.tmp.clone(), "/proc".into()]);
    // The workspace is never the run's own, wherever it lies.
    own.retain(|private| !variables.workspace.starts_with(private));
    let (trees, files) = trusted();
    let searched = std::env::var_os("PATH").filter(|searched| !searched.is_empty());
    let searched = searched.iter().flat_map(std::env::split_paths);
    // Files are known by paths without links. What leads to such a directory counts like it.
    let searched = searched.flat_map(|path| realpath::way(&variables.workspace.join(path)));
    Watch {
        trees: names(&trees),
        files: names(&files),
        packages: packages(),
        path: searched.collect(),
        inside: variables.workspace.clone(),
        private: own,
        led: Links::of(&variables.workspace).ways().collect(),
    }
}

/// What is left of `planted` now that the run has ended, and what was refused of the kind.
pub(super) fn records(planted: &[Planted], denials: &[Denial]) -> Vec<PlantedRecord> {
    let (trees, files) = trusted();
    let left = planted.iter().filter_map(|planted| record(planted, &trees, &files));
    let lends = |denial: &&Denial| denial.record.missing.iter().any(|name| name == "setid");
    let refused = denials.iter().filter(lends).map(|denial| PlantedRecord {
        path: denial.record.object.clone(),
        state: "refused".into(),
        kind: "setid".into(),
        runs: "anybody, with the rights of its owner; the bits were left out".into(),
        when_built: false,
    });
    let mut records: Vec<PlantedRecord> = left.chain(refused).collect();
    records.sort_by(|a, b| (a.when_built, &a.path).cmp(&(b.when_built, &b.path)));
    records
}

fn record(
    planted: &Planted,
    trees: &[GuardedName],
    files: &[GuardedName],
) -> Option<PlantedRecord> {
    let found = match std::fs::symlink_metadata(&planted.path) {
        Ok(found) => Some(found),
        Err(error) if is_gone(&error) => return None,
        Err(_) => None,
    };
    let by_name = |name: &GuardedName| {
        let later = name.level == GuardLevel::Report || is_of_a_package(&planted.path);
        ("name", name.runs.to_owned(), later)
    };
    let (kind, runs, when_built) = match planted.why {
        Why::Tree(_) if is_example(&planted.path) => return None,
        Why::Tree(index) => by_name(trees.get(index)?),
        Why::File(index) => by_name(files.get(index)?),
        Why::Repository if is_git(planted.path.parent()?) => return None,
        Why::Repository => ("repository", "Git, in this directory".to_owned(), false),
        Why::Path => ("path", "whoever calls it by its name: it is in PATH".to_owned(), false),
        Why::Link => ("link", leads_to(&planted.path)?, false),
        Why::Unseen => ("unseen", "nobody knows: it could not be looked into".to_owned(), false),
        // Only links that lead elsewhere are told.
        Why::Within => return None,
    };
    // A directory with something in it is told by that.
    let is_told = matches!(planted.why, Why::Repository | Why::Unseen);
    if found.as_ref().is_some_and(std::fs::Metadata::is_dir) && !is_told {
        return None;
    }
    let is_unseen = found.is_none() && planted.why != Why::Unseen;
    let unseen = if is_unseen { "; it could not be looked at" } else { "" };
    let state = if planted.is_new { "new" } else { "changed" };
    Some(PlantedRecord {
        path: planted.path.to_string_lossy().into_owned(),
        state: state.into(),
        kind: kind.into(),
        runs: runs + unseen,
        when_built,
    })
}

/// Whether a path lies in a directory of packages, where no editor or agent is started; but none
/// that lies in what they look into themselves.
pub(super) fn is_of_a_package(path: &Path) -> bool {
    let denied = host_trusted().filter(|name| name.level == GuardLevel::Deny);
    let denied = Names::new(denied.map(|name| name.name));
    let packages = packages();
    packages.find(path, true).is_some() && !packages.is_below(&denied, path, true)
}

fn packages() -> Names {
    let packages = host_trusted().filter(|name| name.level == GuardLevel::But);
    Names::new(packages.map(|name| name.name))
}

/// Whether Git leaves a file of that name among a repository's hooks, and does not execute it.
fn is_example(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "sample")
        && path.parent().is_some_and(|hooks| hooks.ends_with("hooks"))
        && path.ancestors().any(is_git)
}

fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

/// Where a link leads, unless that is a part of the system, or it is no link any more.
fn leads_to(link: &Path) -> Option<String> {
    let target = match std::fs::read_link(link) {
        Ok(target) => target,
        Err(error) if is_gone(&error) || error.kind() == ErrorKind::InvalidInput => return None,
        Err(_) => return Some("whoever follows it".into()),
    };
    let target = link.parent().unwrap_or(Path::new("/")).join(target);
    // As its words say, and as it is followed now, if something is there.
    let is_system = is_system(&realpath::normal(&target))
        && std::fs::canonicalize(link).map_or(true, |real| is_system(&real));
    (!is_system).then(|| format!("whoever follows it: it leads to {}", target.display()))
}

fn is_system(target: &Path) -> bool {
    SYSTEM.iter().any(|system| target.starts_with(system))
        || DEVICES.iter().any(|device| target == Path::new(device))
}

/// The block for people; empty if there is nothing to tell. Without `all`, only as much as is read.
pub(crate) fn tell(records: &[PlantedRecord], more: u64, all: bool) -> String {
    let mut text = String::new();
    let (refused, made): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| record.state == "refused");
    let (later, now): (Vec<_>, Vec<_>) = made.into_iter().partition(|record| record.when_built);
    let most = if all { usize::MAX } else { MOST_LINES };
    if !now.is_empty() {
        text.push_str("programs outside would execute, or do what it says, because of this run:\n");
        lines(&mut text, &now, most);
    }
    if !refused.is_empty() {
        text.push_str("programs outside would execute it, had it not been refused:\n");
        lines(&mut text, &refused, most);
    }
    if !later.is_empty() && !all {
        let paths: Vec<&str> = later.iter().map(|record| name(record)).collect();
        let shown = paths.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        let rest = if paths.len() > 4 { ", …" } else { "" };
        let _ = writeln!(
            text,
            "made or changed, and executed when you build, test or start it yourself: {}{rest}; `dewar report` lists all",
            visible(&shown),
        );
    } else if !later.is_empty() {
        text.push_str("made or changed, and executed when you build, test or start it yourself:\n");
        lines(&mut text, &later, usize::MAX);
    }
    if more > 0 {
        let _ = writeln!(text, "and {more} more that were not kept, or could not be followed");
    }
    text
}

fn name(record: &PlantedRecord) -> &str {
    record.path.rsplit('/').next().unwrap_or_default()
}

fn lines(text: &mut String, records: &[&PlantedRecord], most: usize) {
    // Writing to a `String` cannot fail.
    for record in records.iter().take(most) {
        let (path, runs) = (visible(&record.path), visible(&record.runs));
        let _ = writeln!(text, "  {:8}{path}  ({runs})", record.state);
    }
    if records.len() > most {
        let _ = writeln!(text, "  and {} more; `dewar report` lists them", records.len() - most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_build_executes_is_told_shortly_and_listed_in_full() {
        let record = |path: &str, when_built| PlantedRecord {
            path: path.into(),
            state: "new".into(),
            runs: "make".into(),
            when_built,
            ..PlantedRecord::default()
        };
        let records = [record("/w/.vscode\u{1b}", false), record("/w/Makefile", true)];
        let short = tell(&records, 0, false);
        assert!(
            short.contains("/w/.vscode\\u001b  (make)") && short.contains("yourself: Makefile;"),
            "{short}"
        );
        let long = tell(&records, 3, true);
        assert!(long.contains("  new     /w/Makefile") && long.contains("3 more"), "{long}");
        assert_eq!(tell(&[], 0, true), "");
    }

    #[test]
    fn a_workspace_below_a_directory_for_temporary_files_is_watched() {
        let of = |workspace: &str| Variables {
            workspace: workspace.into(),
            tmp: "/run/dewar".into(),
            ..Variables::default()
        };
        let private = |workspace| watch(&of(workspace), true).private;
        assert!(private("/home/me/work").contains(&"/tmp".into()));
        for (workspace, place) in [("/tmp/work", "/tmp"), ("/var/tmp/a/b", "/var/tmp")] {
            assert!(!private(workspace).contains(&place.into()), "{workspace}");
        }
    }

    #[test]
    fn links_that_lead_out_are_told_however_their_target_is_spelled() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().display();
        std::fs::write(directory.path().join("there"), "").unwrap();
        let told = |target: String| {
            let link = directory.path().join("link");
            std::fs::remove_file(&link).ok();
            std::os::unix::fs::symlink(target, &link).unwrap();
            leads_to(&link).is_some()
        };
        for before in
            ["", "/usr/..", "/usr/bin/../..", "/dev/../", "/proc/self/root", "/dev/fd/../root"]
        {
            assert!(told(format!("{before}{home}/none")), "{before}");
            assert!(told(format!("{before}{home}/there")), "{before}");
        }
        for other in ["/proc/self/cwd/x", "/dev/shm/x", "/dev/fd/3"] {
            assert!(told(other.into()), "{other}");
        }
        for system in ["/usr/bin/env", "/usr/none", "/bin/../usr/bin/env", "/dev/null"] {
            assert!(!told(system.into()), "{system}");
        }
    }

    #[test]
    fn packages_in_what_an_editor_looks_into_are_no_packages_of_others() {
        for (path, want) in [
            ("/w/node_modules/x/CLAUDE.md", true),
            ("/w/node_modules/x/.vscode/tasks.json", true),
            ("/w/.claude/skills/node_modules/SKILL.md", false),
            ("/w/src/main.c", false),
        ] {
            assert_eq!(is_of_a_package(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn examples_are_those_of_git_alone() {
        for (path, want) in [
            ("/w/.git/hooks/pre-commit.sample", true),
            ("/w/.git/modules/part/hooks/pre-commit.sample", true),
            ("/w/.git/hooks/pre-commit", false),
            ("/w/node_modules/.bin/tool.sample", false),
            ("/w/.venv/bin/x.sample", false),
            ("/w/.clj-kondo/hooks/x.sample", false),
        ] {
            assert_eq!(is_example(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn what_is_gone_at_the_end_is_not_told() {
        let directory = tempfile::tempdir().unwrap();
        let planted = |name: &str| Planted {
            path: directory.path().join(name),
            is_new: true,
            why: Why::Path,
        };
        std::fs::write(directory.path().join("there"), "").unwrap();
        let left = records(&[planted("there"), planted("gone"), planted("there/below")], &[]);
        assert_eq!(left.iter().map(name).collect::<Vec<_>>(), ["there"]);
    }

    #[test]
    fn what_cannot_be_looked_at_is_told_by_its_name() {
        let long = "x/".repeat(3000);
        let planted = |name: &str, why| Planted {
            path: Path::new("/w").join(&long).join(name),
            is_new: true,
            why,
        };
        let all =
            [planted("tool", Why::Path), planted("link", Why::Link), planted("m", Why::Unseen)];
        let told = records(&all, &[]);
        let told: Vec<_> = told.iter().map(|it| (name(it), it.runs.as_str())).collect();
        let end = "it could not be looked at";
        assert_eq!(
            told,
            [
                ("link", &*format!("whoever follows it; {end}")),
                ("m", "nobody knows: it could not be looked into"),
                ("tool", &*format!("whoever calls it by its name: it is in PATH; {end}")),
            ]
        );
    }
}

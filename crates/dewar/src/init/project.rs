//! `dewar init`: a profile for a project, by what lies in it.

use crate::{
    failure::Usage,
    fitting::{Author, ProfileFile},
    machine, output, trust,
};
use anyhow::bail;
use clap::Args;
use cli::look;
use std::path::Path;

/// Where the profile goes.
const NAME: &str = "dewar.toml";

/// What a project is made with: files of which one is there, and the shipped profile for it. Of
/// those with the same kind, the first that fits counts.
const KINDS: [(&str, &[&str], &str); 12] = [
    ("js", &["pnpm-lock.yaml", "pnpm-workspace.yaml"], "pnpm"),
    ("js", &["package.json"], "npm"),
    ("rust", &["Cargo.toml"], "cargo"),
    ("go", &["go.mod", "go.work"], "go"),
    ("python", &["uv.lock"], "uv"),
    ("python", &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg"], "pip"),
    ("java", &["pom.xml"], "maven"),
    (
        "java",
        &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        "gradle",
    ),
    ("c", &["CMakeLists.txt"], "cmake"),
    ("c", &["meson.build", "configure", "configure.ac"], "cmake"),
    ("c", &["Makefile", "makefile", "GNUmakefile"], "cmake"),
    ("notebooks", &["jupyter_notebook_config.py"], "jupyter"),
];

/// Profiles that take every program that is started into a domain of its own, so that a package
/// manager that is a script would not be one any more.
const ALONE: [&str; 2] = ["npm", "pnpm"];
const SCRIPTS: [&str; 3] = ["pip", "maven", "gradle"];

#[derive(Debug, Args)]
pub(super) struct ProjectArgs {
    /// Print the profile, and write nothing
    #[arg(long)]
    print: bool,
}

/// Writes the profile of the project in the working directory.
pub(super) fn project(args: &ProjectArgs) -> anyhow::Result<()> {
    let workspace = machine::variables(None, "/tmp".into())?.workspace;
    let text = text(&workspace);
    if args.print {
        return Ok(output::print(text.as_bytes())?);
    }
    let target = ProfileFile::find(&workspace.join(NAME))?;
    if target.before.is_some() {
        bail!(Usage(format!(
            "`{NAME}` is there already, and stays as it is; `dewar init --print` prints what would be in it"
        )));
    }
    target.write(&text, Author::Init)?;
    // What Dewar has written is the user's word: it names shipped profiles only.
    trust::trust_written(&trust::Store::open()?, &target.path, &text)?;
    let said =
        format!("./{NAME} written, and trusted; `dewar run -- COMMAND` uses it from now on\n");
    Ok(output::print((text + "\n" + &said).as_bytes())?)
}

/// The profile for what lies in `workspace`.
fn text(workspace: &Path) -> String {
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    for (kind, files, profile) in KINDS {
        let file = files.iter().find(|file| workspace.join(file).is_file());
        if let Some(file) = file.filter(|_| found.iter().all(|(known, ..)| *known != kind)) {
            found.push((kind, file, profile));
        }
    }
    // A makefile beside a manifest starts the package manager.
    if found.len() > 1 {
        found.retain(|(kind, ..)| *kind != "c");
    }
    let is_script = |profile: &str| SCRIPTS.contains(&profile);
    let apart = match found.iter().any(|(.., profile)| is_script(profile)) {
        true => found.extract_if(.., |(.., profile)| ALONE.contains(profile)).collect(),
        false => Vec::new(),
    };
    let mut text =
        comment("What commands in this project may do: `dewar policy show ./dewar.toml` tells.");
    for (_, file, profile) in &found {
        text += &comment(&format!("{file}: {}", description(profile)));
    }
    for (_, file, profile) in &apart {
        text += &comment(&format!(
            "{file}: `dewar run -p {profile} -- {profile} …`; that profile goes with no manager that is a script."
        ));
    }
    let names: Vec<&str> = found.iter().map(|(.., profile)| *profile).collect();
    let extends = if names.is_empty() { "workspace".to_owned() } else { names.join("+") };
    text + &format!("extends = \"{extends}\"\n\n")
        + &comment(
            "What else is needed: `dewar explain` and `dewar allow N --write dewar.toml` after a run.",
        )
}

/// `text` in lines of a comment, for a terminal of 80 columns.
fn comment(text: &str) -> String {
    format!("# {}\n", look::fill(text.split(' '), 0, 77).replace('\n', "\n# "))
}

fn description(name: &str) -> String {
    let shipped = profile::shipped().iter().find(|(known, _)| *known == name);
    let line =
        shipped.and_then(|(_, text)| text.lines().find_map(|l| l.strip_prefix("description = ")));
    line.unwrap_or_default().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_gets_the_profiles_of_what_lies_in_it() {
        for (files, want) in [
            (&[][..], "workspace"),
            (&["Cargo.toml"], "cargo"),
            (&["Cargo.toml", "Makefile"], "cargo"),
            (&["Makefile"], "cmake"),
            (&["package.json"], "npm"),
            (&["package.json", "pnpm-lock.yaml"], "pnpm"),
            (&["pyproject.toml"], "pip"),
            (&["pyproject.toml", "uv.lock"], "uv"),
            (&["go.mod", "package.json"], "npm+go"),
            (&["pyproject.toml", "package.json"], "pip"),
            (&["pom.xml", "build.gradle"], "maven"),
            (&["build.gradle.kts"], "gradle"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            for file in files {
                std::fs::write(directory.path().join(file), "").unwrap();
            }
            let text = text(directory.path());
            assert!(text.contains(&format!("extends = \"{want}\"\n")), "{files:?}: {text}");
            assert!(text.lines().all(|line| !line.ends_with(": ")), "{text}");
        }
    }
}

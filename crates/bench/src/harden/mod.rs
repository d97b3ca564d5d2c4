//! What protections by the compiler cost, and what they stop: releases and configurations of gcc
//! and clang, the classic suite compiled with each, and attacks that are really tried.

mod attacks;

pub use attacks::{ATTACKS, Attack, End, stopped};

use crate::{pairs::ExperimentResult, report::Section};
use serde::{Deserialize, Serialize};
use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HardenReport {
    /// What each protection stops.
    pub attacks: Section,
    /// What each costs: the sample application, then the classic suite; nothing if only attacks
    /// were asked for.
    pub prices: Vec<ExperimentResult>,
}

/// A compiler of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Its command.
    pub command: String,
    /// Flags of all protections together that this release does not know.
    pub unknown: Vec<&'static str>,
}

/// A protection: flags that are added to [`BARE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// What tables call it.
    pub name: &'static str,
    /// Its flags.
    pub flags: &'static [&'static str],
    /// What it does.
    pub description: &'static str,
}

/// Without any protection, also those that a distribution's compiler brings unasked.
pub const BARE: [&str; 10] = [
    "-O2",
    "-w",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-U_FORTIFY_SOURCE",
    "-fcf-protection=none",
    "-fno-pie",
    "-no-pie",
    "-Wl,-z,norelro",
    "-Wl,-z,lazy",
];

const fn protection(
    name: &'static str,
    flags: &'static [&'static str],
    description: &'static str,
) -> Protection {
    Protection { name, flags, description }
}

/// The protection with all flags that cost little, as far as a compiler knows them.
const TOGETHER: &str = "together";

/// Every protection that is tried, the first without any, the last but one with all that cost
/// little.
pub const PROTECTIONS: [Protection; 13] = [
    protection("none", &[], "no protection"),
    protection(
        "stack",
        &["-fstack-protector"],
        "a guard behind arrays of characters of 8 bytes and more; arrays last",
    ),
    protection(
        "stack-strong",
        &["-fstack-protector-strong"],
        "the same for every array and address taken",
    ),
    protection("stack-all", &["-fstack-protector-all"], "the same for every function"),
    protection(
        "fortify-2",
        &["-D_FORTIFY_SOURCE=2"],
        "functions of the library know constant bounds",
    ),
    protection("fortify-3", &["-D_FORTIFY_SOURCE=3"], "and bounds that are computed"),
    protection(
        "cet",
        &["-fcf-protection=full"],
        "marks for the processor's checks of jumps and returns",
    ),
    protection("zero-init", &["-ftrivial-auto-var-init=zero"], "variables begin as 0"),
    protection("pie", &["-fpie", "-pie"], "the program lies at a random address"),
    protection("relro-now", &["-Wl,-z,relro", "-Wl,-z,now"], "tables of the linker are read-only"),
    protection("stack-clash", &["-fstack-clash-protection"], "large arrays touch every page"),
    protection(
        TOGETHER,
        &[
            "-fstack-protector-strong",
            "-fstack-clash-protection",
            "-D_FORTIFY_SOURCE=2",
            "-fcf-protection=full",
            "-ftrivial-auto-var-init=zero",
            "-fpie",
            "-pie",
            "-Wl,-z,relro",
            "-Wl,-z,now",
        ],
        "all of them, with stack-strong and fortify-2",
    ),
    protection(
        "asan",
        &["-fsanitize=address"],
        "AddressSanitizer, for scale: a tool for tests, no protection",
    ),
];

/// Compilers that are looked for, the system's own first.
const COMPILERS: [&str; 14] = [
    "gcc", "gcc-9", "gcc-10", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "clang-14", "clang-15",
    "clang-16", "clang-17", "clang-18", "clang-19", "clang",
];

impl Compiler {
    /// Those that are installed; two names of one program count once.
    #[must_use]
    pub fn found() -> Vec<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut programs = Vec::new();
        let mut compilers = Vec::new();
        for name in COMPILERS {
            let place = env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
            let Some(program) = place.and_then(|it| it.canonicalize().ok()) else { continue };
            if !programs.contains(&program) {
                programs.push(program);
                compilers.push(Self::new(name));
            }
        }
        compilers
    }

    /// A compiler by its command, asked which flags it knows.
    #[must_use]
    pub fn new(command: &str) -> Self {
        let knows = |flag: &str| {
            let mut asked = Command::new(command);
            asked.args(["-Werror", flag, "-S", "-x", "c", "-o", "/dev/null", "/dev/null"]);
            asked.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let all = PROTECTIONS.iter().filter(|it| it.name == TOGETHER).flat_map(|it| it.flags);
        // What is for the linker, nobody else looks at.
        let unknown = all.copied().filter(|flag| !flag.starts_with("-Wl,") && *flag != "-pie");
        Self { command: command.to_owned(), unknown: unknown.filter(|flag| !knows(flag)).collect() }
    }

    /// What a protection is, with this compiler.
    #[must_use]
    pub fn description(&self, protection: &Protection) -> String {
        let what = protection.description;
        match self.unknown.as_slice() {
            [] => what.to_owned(),
            unknown if protection.name == TOGETHER => {
                format!("{what}, but for what it does not know: {}", unknown.join(" "))
            }
            _ => what.to_owned(),
        }
    }

    /// The words that compile with a protection.
    #[must_use]
    pub fn words(&self, protection: &Protection) -> Vec<&str> {
        let unknown = |flag: &&str| {
            // clang takes notice of this flag only since 16, and needs another with it before.
            self.command.starts_with("clang") && flag.starts_with("-fno-stack-clash")
        };
        let left_out = |flag: &&str| protection.name == TOGETHER && self.unknown.contains(flag);
        std::iter::once(self.command.as_str())
            .chain(BARE.into_iter().filter(|flag| !unknown(flag)))
            .chain(protection.flags.iter().copied().filter(|flag| !left_out(flag)))
            .collect()
    }

    /// What it calls itself, with its release.
    #[must_use]
    pub fn release(&self) -> String {
        let said = Command::new(&self.command).arg("-dumpfullversion").arg("-dumpversion").output();
        let version = said.map_or_else(
            |_| String::new(),
            |it| String::from_utf8_lossy(&it.stdout).trim().to_owned(),
        );
        let family = if self.command.starts_with("clang") { "clang" } else { "gcc" };
        format!("{family} {version}")
    }
}

/// A compiler with a protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The compiler.
    pub compiler: Compiler,
    /// The protection.
    pub protection: Protection,
}

impl Build {
    /// What tables call it.
    #[must_use]
    pub fn name(&self, only: bool) -> String {
        if only {
            self.protection.name.to_owned()
        } else {
            format!("{} {}", self.compiler.command, self.protection.name)
        }
    }

    /// The system's compiler with every protection, then all others with none and with all
    /// together.
    #[must_use]
    pub fn all(compilers: &[Compiler]) -> Vec<Self> {
        let build = |compiler: &Compiler, protection: &Protection| Self {
            compiler: compiler.clone(),
            protection: *protection,
        };
        let Some((own, others)) = compilers.split_first() else { return Vec::new() };
        let mut builds: Vec<Self> = PROTECTIONS.iter().map(|it| build(own, it)).collect();
        for other in others {
            let wanted = PROTECTIONS.iter().filter(|it| ["none", TOGETHER].contains(&it.name));
            builds.extend(wanted.map(|it| build(other, it)));
        }
        builds
    }

    /// Compiles the suite into `directory`.
    ///
    /// # Errors
    ///
    /// What the compiler says.
    pub fn compile(&self, directory: &Path) -> std::io::Result<std::path::PathBuf> {
        crate::classic::compile(&self.compiler.words(&self.protection), directory)
    }

    /// Lets the sample application in `directory` be compiled in this way.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub(crate) fn write_makefile(&self, directory: &Path) -> std::io::Result<()> {
        let place = directory.join("Makefile");
        let text = std::fs::read_to_string(&place)?;
        let words = self.compiler.words(&self.protection);
        let Some((compiler, flags)) = words.split_first() else { return Ok(()) };
        let line = |line: &str| match line.split_once(" = ") {
            Some(("CC", _)) => format!("CC = {compiler}\n"),
            Some(("CFLAGS", _)) => format!("CFLAGS = -g {}\n", flags.join(" ")),
            _ => format!("{line}\n"),
        };
        std::fs::write(place, text.lines().map(line).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn what_a_compiler_does_not_know_is_left_out_of_all_together_and_named() -> std::io::Result<()>
    {
        const UNKNOWN: &str = "-ftrivial-auto-var-init=zero";
        let named = |name| PROTECTIONS.iter().find(|it| it.name == name).expect("a protection");
        let directory = tempfile::tempdir()?;
        let command = directory.path().join("older");
        let script = format!(
            "#!/bin/sh\nfor word; do [ \"$word\" != {UNKNOWN} ] || exit 1; done\nexec gcc \"$@\"\n"
        );
        fs::write(&command, script)?;
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755))?;
        let older = Compiler::new(command.to_str().expect("UTF-8"));
        assert_eq!(older.unknown, [UNKNOWN]);
        assert!(!older.words(named(TOGETHER)).contains(&UNKNOWN));
        assert!(older.words(named("zero-init")).contains(&UNKNOWN));
        assert!(older.description(named(TOGETHER)).ends_with(UNKNOWN));
        let own = Compiler::new("gcc");
        assert_eq!(own.unknown, [""; 0]);
        assert!(own.words(named(TOGETHER)).contains(&UNKNOWN));
        Ok(())
    }
}

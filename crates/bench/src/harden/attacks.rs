//! Attacks on a program's own faults, tried for real against each protection.

use super::{Build, Compiler, PROTECTIONS};
use crate::{
    classic::compile_text,
    sheet::{Cell, Sheet},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

const PROGRAMS: &str = include_str!("attacks.c");

/// The status by which a program says that it reached its aim.
const HIT: i32 = 42;

/// An attack, and what is tried one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attack {
    /// Its name in the program and in tables.
    pub name: &'static str,
    /// What is tried.
    tries: Tries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tries {
    /// Overflows of growing length.
    Lengths,
    /// Places of an argument on the stack.
    Places,
    /// One.
    Once,
    /// The address that another process had.
    Address,
}

const fn attack(name: &'static str, tries: Tries) -> Attack {
    Attack { name, tries }
}

/// Every attack.
pub const ATTACKS: [Attack; 18] = [
    attack("return address", Tries::Lengths),
    attack("return address, memcpy", Tries::Lengths),
    attack("array of 4 bytes", Tries::Lengths),
    attack("array of words", Tries::Lengths),
    attack("alloca", Tries::Lengths),
    attack("saved pointer", Tries::Lengths),
    attack("function pointer before the array", Tries::Lengths),
    attack("function pointer as argument", Tries::Lengths),
    attack("off by one", Tries::Once),
    attack("inside a struct", Tries::Lengths),
    attack("inside a struct, strcpy", Tries::Lengths),
    attack("longjmp buffer", Tries::Lengths),
    attack("format string", Tries::Places),
    attack("use after return", Tries::Once),
    attack("left-over on the stack", Tries::Once),
    attack("stack clash", Tries::Once),
    attack("linkage table", Tries::Once),
    attack("known address", Tries::Address),
];

/// How an attack ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It reached its aim.
    Succeeded,
    /// The program noticed, and ended itself.
    Stopped,
    /// The program crashed before the aim was reached.
    Crashed,
    /// What was to be overwritten lay out of reach.
    Missed,
    /// The program could not be compiled with this.
    Absent(String),
}

impl End {
    /// A word for tables.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Succeeded => "SUCCEEDS",
            Self::Stopped => "stopped",
            Self::Crashed => "crashes",
            Self::Missed => "missed",
            Self::Absent(_) => "–",
        }
    }
}

impl Attack {
    /// What is tried: arguments of the program.
    fn tries(self, program: &Path) -> io::Result<Vec<String>> {
        Ok(match self.tries {
            Tries::Lengths => (8..=200).step_by(4).map(|it: u32| it.to_string()).collect(),
            Tries::Places => (1..60).map(|it: u32| it.to_string()).collect(),
            Tries::Once => vec!["0".to_owned()],
            Tries::Address => {
                let said = Command::new(program).arg("address").output()?;
                vec![String::from_utf8_lossy(&said.stdout).trim().to_owned()]
            }
        })
    }

    /// Tries it on a program that was compiled for it.
    fn on(self, program: &Path) -> io::Result<End> {
        let mut ends = BTreeSet::new();
        for length in self.tries(program)? {
            let shift = length.parse::<u64>().unwrap_or_default() % 8;
            let mut command = Command::new(program);
            command.args([self.name, &length, &shift.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let end = end(command.status()?);
            if end == Rank::Succeeded {
                return Ok(End::Succeeded);
            }
            ends.insert(end);
        }
        Ok(match ends.first() {
            Some(Rank::Stopped) => End::Stopped,
            Some(Rank::Crashed) => End::Crashed,
            _ => End::Missed,
        })
    }
}

/// Of several ends, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Succeeded,
    Stopped,
    Crashed,
    Missed,
}

fn end(status: ExitStatus) -> Rank {
    match (status.code(), status.signal()) {
        (Some(HIT), _) => Rank::Succeeded,
        // AddressSanitizer ends what it finds with 1.
        (Some(1), _) | (_, Some(libc::SIGABRT | libc::SIGTRAP | libc::SIGILL)) => Rank::Stopped,
        (_, Some(_)) => Rank::Crashed,
        _ => Rank::Missed,
    }
}

/// The table of what each protection stops: attacks down, protections across, as the system's
/// compiler makes them; then every other compiler with none and with all together.
///
/// # Errors
///
/// When programs cannot be run at all.
pub fn stopped(
    compilers: &[Compiler],
    directory: &Path,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Vec<Sheet>> {
    let builds = Build::all(compilers);
    let mut found: Vec<(String, Vec<End>)> = Vec::new();
    for build in &builds {
        let own = compilers.first() == Some(&build.compiler);
        let name = build.name(own);
        progress(&name);
        found.push((name, all_on(build, directory)?));
    }
    let (own, others) = found.split_at(PROTECTIONS.len().min(found.len()));
    let release = compilers.first().map(Compiler::release).unwrap_or_default();
    let title = format!("What each protection stops ({release})");
    let mut sheets = sheets(&title, own, 5);
    sheets.extend(self::sheets(
        "The same by other compilers, without and with all together",
        others,
        4,
    ));
    if let Some(last) = sheets.last_mut() {
        last.notes.push(
            "SUCCEEDS: the attack reached its aim. stopped: the program noticed and ended itself. crashes: it failed, by an \
             address that is none. missed: what was to be overwritten lay out of reach. Saved pointers, function \
             pointers and off by one are compiled without optimisation, which happens to move arrays behind them; all \
             else with -O2. CET is not enforced for programs unless processor, kernel and C library all take part."
                .to_owned(),
        );
    }
    Ok(sheets)
}

fn all_on(build: &Build, directory: &Path) -> io::Result<Vec<End>> {
    let words = build.compiler.words(&build.protection);
    match compile_text(&words, PROGRAMS, &directory.join("attacks"), &["-ldl"]) {
        Ok(program) => ATTACKS.iter().map(|attack| attack.on(&program)).collect(),
        Err(error) => Ok(vec![End::Absent(error.to_string()); ATTACKS.len()]),
    }
}

/// Tables of at most so many columns.
fn sheets(title: &str, found: &[(String, Vec<End>)], across: usize) -> Vec<Sheet> {
    let table = |(number, block): (usize, &[(String, Vec<End>)])| {
        let mut columns = vec![("attack", 0, false)];
        columns.extend(block.iter().map(|(name, _)| (name.as_str(), 0, false)));
        let mut sheet = Sheet::new(if number == 0 { title } else { "" }, &columns);
        for (place, attack) in ATTACKS.iter().enumerate() {
            let mut cells = vec![Cell::from(attack.name)];
            cells.extend(block.iter().map(|(_, ends)| Cell::from(ends[place].word())));
            sheet.push(cells);
        }
        for (name, ends) in block {
            if let Some(End::Absent(why)) = ends.first() {
                sheet.notes.push(format!("{name}: {why}"));
            }
        }
        sheet
    };
    found.chunks(across).enumerate().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(protection: &str) -> Vec<(&'static str, End)> {
        let directory = tempfile::tempdir().expect("a directory");
        let compiler = Compiler::new("gcc");
        let protection = PROTECTIONS.iter().find(|it| it.name == protection).expect("it is known");
        let build = Build { compiler, protection: *protection };
        let ends = all_on(&build, directory.path()).expect("programs run");
        ATTACKS.iter().map(|attack| attack.name).zip(ends).collect()
    }

    #[test]
    fn every_attack_succeeds_on_a_program_without_protection() {
        for (name, end) in ends("none") {
            assert_eq!(end, End::Succeeded, "{name}");
        }
    }

    #[test]
    fn each_protection_stops_what_it_is_made_for() {
        for (protection, attacks) in [
            ("stack", &["return address", "function pointer before the array", "off by one"][..]),
            ("stack-strong", &["array of 4 bytes", "array of words", "saved pointer"]),
            ("fortify-2", &["return address, memcpy", "inside a struct, strcpy", "format string"]),
            ("zero-init", &["left-over on the stack"]),
            ("pie", &["known address"]),
            ("relro-now", &["linkage table"]),
            ("stack-clash", &["stack clash"]),
        ] {
            let ends = ends(protection);
            for attack in attacks {
                let (_, end) = ends.iter().find(|(name, _)| name == attack).expect("it is known");
                assert_ne!(*end, End::Succeeded, "{attack} against {protection}");
            }
        }
    }

    #[test]
    fn no_protection_stops_an_overflow_inside_a_struct() {
        let ends = ends("together");
        assert!(ends.contains(&("inside a struct", End::Succeeded)), "{ends:?}");
    }
}

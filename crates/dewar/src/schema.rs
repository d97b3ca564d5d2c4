//! `--json-schema`: what a command prints as JSON, for every command that has `--json`.
//!
//! The schemas are files of `docs/schemas`. Those of documents that are types here are made from
//! the types by the tests (`dewar` links no generator); the others are written by hand. Each has
//! its name and version as `$id`: a change that would break a reader raises the version.

use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// The name of the flag among the arguments.
const ID: &str = "json_schema";
/// As it is written, behind two dashes.
const LONG: &str = "json-schema";
const FLAG: &str = "--json-schema";

macro_rules! schemas {
    ($($name:literal),* $(,)?) => {
        [$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/", $name, ".json")),
        )),*]
    };
}

/// Every schema, by its name.
const SCHEMAS: [(&str, &str); 37] = schemas![
    "attacks",
    "bench-calls",
    "bench-comparison",
    "bench-comparisons",
    "bench-guests",
    "bench-harden",
    "bench-library",
    "bench-plugin",
    "bench-revocation",
    "bench-section",
    "bench-trust",
    "bench-web",
    "boolean-change",
    "built",
    "change",
    "changes",
    "cil",
    "context",
    "decision",
    "difference",
    "doctor",
    "machine-code",
    "plugin-case",
    "plugin-run",
    "policy-rule",
    "profile",
    "profiles",
    "promise",
    "ps",
    "question",
    "record",
    "run",
    "runs",
    "selftest",
    "served",
    "top",
    "variables",
];

/// Commands, and the schema of what each prints. A command stands for its subcommands, too.
const COMMANDS: [(&str, &str); 51] = [
    ("ask", "question"),
    ("audit", "record"),
    ("bench build", "bench-comparison"),
    ("bench decision", "bench-calls"),
    ("bench harden", "bench-harden"),
    ("bench ipc", "bench-calls"),
    ("bench kernel", "bench-guests"),
    ("bench library", "bench-library"),
    ("bench plugin", "bench-plugin"),
    ("bench project", "bench-comparison"),
    ("bench releases", "bench-comparisons"),
    ("bench resolution", "bench-section"),
    ("bench revoke", "bench-revocation"),
    ("bench run", "bench-comparison"),
    ("bench self", "bench-comparison"),
    ("bench start", "bench-comparison"),
    ("bench syscalls", "bench-comparison"),
    ("bench trust", "bench-trust"),
    ("bench unix", "bench-comparison"),
    ("bench walk", "bench-comparison"),
    ("bench web", "bench-web"),
    ("daemon", "served"),
    ("doctor", "doctor"),
    ("explain", "run"),
    ("grant", "change"),
    ("plugin build", "built"),
    ("plugin list", "machine-code"),
    ("plugin run", "plugin-run"),
    ("plugin test", "plugin-case"),
    ("policy av", "decision"),
    ("policy change", "context"),
    ("policy check", "promise"),
    ("policy diff", "difference"),
    ("policy env", "variables"),
    ("policy export", "cil"),
    ("policy history", "changes"),
    ("policy list", "profiles"),
    ("policy load", "change"),
    ("policy member", "context"),
    ("policy query", "policy-rule"),
    ("policy set", "boolean-change"),
    ("policy show", "profile"),
    ("policy transition", "context"),
    ("ps", "ps"),
    ("report", "run"),
    ("revoke", "change"),
    ("run", "run"),
    ("runs", "runs"),
    ("selftest", "selftest"),
    ("selftest list", "attacks"),
    ("top", "top"),
];

/// The schema of what the command of these words prints.
fn of(words: &str) -> Option<&'static str> {
    let is_meant = |command: &str| {
        words.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let longest = COMMANDS.iter().filter(|(command, _)| is_meant(command));
    let (_, name) = longest.max_by_key(|(command, _)| command.len())?;
    SCHEMAS.iter().find(|(known, _)| known == name).map(|(_, schema)| *schema)
}

/// `command`, where everything that has `--json` has `--json-schema`, too.
pub(crate) fn offered(command: Command) -> Command {
    offer(command, "")
}

fn offer(command: Command, words: &str) -> Command {
    let prints = command.get_arguments().any(|argument| argument.get_id() == "json");
    let command = if prints {
        let help = "Print the schema of what --json prints, and do nothing else";
        let flag = Arg::new(ID).long(LONG).action(ArgAction::SetTrue).help(help);
        command.arg(flag.exclusive(true))
    } else {
        command
    };
    command.mut_subcommands(|inner| {
        let words = format!("{words} {}", inner.get_name());
        offer(inner, words.trim_start())
    })
}

/// The schema that the words of a command line ask for, if they name a command, end with the flag,
/// and say nothing else. The parser would insist on whatever else the command requires.
pub(crate) fn asked(
    all: Command,
    line: impl IntoIterator<Item = OsString>,
) -> Option<&'static str> {
    let words: Vec<String> = line.into_iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let (flag, words) = words.split_last()?;
    if flag != FLAG {
        return None;
    }
    let all = offered(all);
    let mut command = &all;
    for word in words {
        command = command.find_subcommand(word)?;
    }
    let prints = command.get_arguments().any(|argument| argument.get_id() == ID);
    prints.then(|| of(&words.join(" "))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::{collections::BTreeSet, path::Path};

    fn printed(name: &str) -> serde_json::Value {
        let (_, text) = SCHEMAS.iter().find(|(known, _)| *known == name).expect(name);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The fields of a schema and of all its parts, each as `PART.FIELD`.
    fn fields(schema: &serde_json::Value) -> BTreeSet<String> {
        let parts = schema["$defs"].as_object().into_iter().flatten();
        let parts = parts.map(|(name, part)| (name.as_str(), part)).chain([("", schema)]);
        let of = |(name, part): (&str, &serde_json::Value)| {
            let fields = part["properties"].as_object().into_iter().flatten();
            fields.map(|(field, _)| format!("{name}.{field}")).collect::<Vec<_>>()
        };
        parts.flat_map(of).collect()
    }

    /// Compares the fields of a schema with those of the one that is printed; `DEWAR_BLESS=1`
    /// writes it anew.
    fn check<T: schemars::JsonSchema>(name: &str) {
        let mut schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
        if std::env::var_os("DEWAR_BLESS").is_some() {
            let version = printed(name)["$id"].as_str().map(str::to_owned);
            schema["$id"] = version.unwrap_or_else(|| format!("dewar/{name}/1")).into();
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            std::fs::write(directory.join(format!("{name}.json")), text).unwrap();
            return;
        }
        assert_eq!(fields(&schema), fields(&printed(name)), "DEWAR_BLESS=1 writes {name}.json");
    }

    #[test]
    fn the_printed_schemas_are_those_of_the_documents() {
        check::<crate::run::document::RunDocument>("run");
        check::<Vec<crate::past_runs::Row>>("runs");
        check::<crate::policy::Grants>("profile");
        check::<Vec<crate::ps::Running>>("ps");
        check::<crate::top::Sample>("top");
        check::<crate::doctor::DoctorDocument>("doctor");
        check::<crate::changed::ChangedDocument>("change");
        check::<Vec<crate::changed::ChangedDocument>>("changes");
    }

    #[test]
    fn each_schema_has_its_name_and_its_version() {
        for (name, _) in SCHEMAS {
            let schema = printed(name);
            let id = schema["$id"].as_str().unwrap_or_default();
            let version = id.strip_prefix(&format!("dewar/{name}/")).unwrap_or_default();
            assert!(version.parse::<u32>().is_ok(), "{name}: $id is `{id}`");
            assert!(schema["$schema"].is_string(), "{name}");
        }
    }

    #[test]
    fn whatever_prints_json_prints_its_schema() {
        fn check(command: &Command, words: &str) {
            let has = |id: &str| command.get_arguments().any(|it| it.get_id() == id);
            assert_eq!(has("json"), has(ID), "{words}");
            assert!(!has("json") || of(words).is_some(), "`{words}` has no schema");
            for inner in command.get_subcommands() {
                check(inner, format!("{words} {}", inner.get_name()).trim_start());
            }
        }
        check(&offered(crate::commands::Dewar::command()), "");
    }

    #[test]
    fn the_longest_command_counts() {
        let id = |words| {
            let schema: serde_json::Value = serde_json::from_str(of(words).unwrap()).unwrap();
            schema["$id"].as_str().unwrap().to_owned()
        };
        assert!(id("selftest list").starts_with("dewar/attacks/"));
        assert!(id("selftest").starts_with("dewar/selftest/"));
        assert!(id("bench web").starts_with("dewar/bench-web/"));
        assert!(of("benches").is_none());
    }
}

//! `dewar explain`: what the last run was denied, why, and what would allow it.

use crate::{
    amend::literal,
    output,
    proposal::{Proposal, is_guarded, of_file},
    receipt,
    run::{Denial, Journal, RunRecord, guarded, lacking},
};
use clap::Args;
use monitor::{Record, visible};
use std::{fmt::Write as _, path::Path};

const EXAMPLES: &str = "\
Examples:
  dewar run -- make; dewar explain
  dewar explain ci                     a run by its name, or its number
  dewar explain --toml                 the lines of a profile that would allow it
  dewar explain --json | jq '.denials[].object'

`dewar allow N` allows what is numbered [N].

Exit status: 0, or 125 if no run has been recorded.";

/// Explain what a run was denied.
///
/// For each denial: who asked, for what, which rule of the profile or the absence of which rule decided, and what
/// would allow it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The run: its number, or its name [default: the last]
    run: Option<String>,

    /// Print the whole record of the run as JSON
    #[arg(long)]
    json: bool,

    /// Print the lines of a profile that would allow it, each once
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

/// Carries out `dewar explain`.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let record = Journal::find(args.run.as_deref())?;
    let text = match (args.json, args.toml) {
        (true, _) => json(&record)?,
        (_, true) => fragment(&record)?,
        _ => tell(&record)?,
    };
    Ok(output::print(text.as_bytes())?)
}

/// The record, with the lines that would allow what was denied.
fn json(record: &RunRecord) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(record)?;
    // A profile that is gone by now takes nothing from the record.
    if let Ok(fitting) = of_file(record) {
        let denials: Vec<&Denial> = record.denials.iter().collect();
        if let Ok(proposal) = Proposal::of(&fitting, &denials, &[]) {
            let lines: Vec<String> = proposal.lines.iter().map(learn::Line::alone).collect();
            value["would_allow"] = serde_json::json!(lines);
        }
    }
    Ok(output::json(&value)?)
}

/// The lines that would allow what was denied, as a profile that extends that of the run.
fn fragment(record: &RunRecord) -> anyhow::Result<String> {
    let fitting = of_file(record)?;
    let denials: Vec<&Denial> = record.denials.iter().collect();
    let proposal = Proposal::of(&fitting, &denials, &[])?;
    let mut edit = learn::Edit::of("")?;
    for line in &proposal.lines {
        edit.add(line)?;
    }
    let mut text: String = edit.text();
    for (denial, why) in &proposal.left {
        let (comm, object) = (visible(&denial.record.comm), visible(&denial.record.object));
        writeln!(text, "# not here: {comm}: {} {object}", denial.record.missing.join(" "))?;
        writeln!(text, "#   {}", visible(why))?;
    }
    if record.denials.is_empty() {
        text.push_str("# nothing was denied\n");
    }
    Ok(text)
}

/// The record, for people.
fn tell(record: &RunRecord) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let (command, profile) = (visible(&record.command.join(" ")), visible(&record.profile));
    writeln!(text, "`{command}` under {profile}: exit status {}", record.status)?;
    if record.denials.is_empty() {
        writeln!(text, "no denial was recorded")?;
    }
    for line in lacking(record) {
        writeln!(text, "{line}")?;
    }
    for (index, denial) in record.denials.iter().enumerate() {
        write!(text, "\n[{}] ", index + 1)?;
        tell_denial(&mut text, denial)?;
    }
    if !record.changes.is_empty() {
        writeln!(text, "\nchanged while it ran:")?;
    }
    for change in &record.changes {
        text.push_str(&receipt::tell_dated(change)?);
    }
    if record.dropped > 0 {
        writeln!(
            text,
            "\n{} more denials were not kept, between the first and the last",
            record.dropped
        )?;
    }
    if !record.unrecorded.is_empty() {
        writeln!(text, "\nno record is kept of what is refused by")?;
    }
    for layer in &record.unrecorded {
        writeln!(text, "  {}", visible(layer))?;
    }
    Ok(text)
}

fn tell_denial(text: &mut String, denial: &Denial) -> std::fmt::Result {
    let record = &denial.record;
    let times = if record.count > 1 { format!(", {} times", record.count) } else { String::new() };
    let missing = record.missing.join(" ");
    let (comm, object) = (visible(&record.comm), visible(&record.object));
    writeln!(text, "{comm} may not {missing} {object}{times}")?;
    let mut line = |name: &str, value: &str| match value {
        "" => Ok(()),
        value => writeln!(text, "  {name:13}{}", visible(value)),
    };
    line("program", &record.program)?;
    line("call", &record.call)?;
    line("subject", &record.scontext)?;
    if !record.refused_by.is_empty() {
        line("refused by", &record.refused_by)?;
        line("why", &record.reason)?;
        return line("instead", &record.instead);
    }
    line("object", &format!("{} ({})", record.tcontext, record.tclass))?;
    line("why", &record.reason)?;
    record.rules.iter().try_for_each(|rule| line("rule", rule))?;
    denial.profile_rules.iter().try_for_each(|rule| line("profile", rule))?;
    if denial.profile_rules.iter().any(|rule| rule.starts_with("revoked by ")) {
        // No line of a profile would help: amendments are stronger.
        return Ok(());
    }
    if is_guarded(record) {
        let (why, directory) = guarded(&record.object);
        line("guard", &why)?;
        return line("in a profile", &entry("files.unguarded", &literal(&directory)));
    }
    line("would allow", record.would_allow.as_deref().unwrap_or_default())?;
    line("in a profile", &in_profile(record).unwrap_or_default())?;
    line("or", &made_first(record).unwrap_or_default())
}

/// How to do without a right over a whole directory, which may be a home, for one new name in it.
fn made_first(record: &Record) -> Option<String> {
    // A temporary file has no name.
    let (_, name) = new_entry(record).filter(|(_, name)| !name.is_empty())?;
    Some(format!(
        "make `{}` yourself, and {}",
        visible(name),
        entry("files.write", &literal(&record.object))
    ))
}

/// The directory that does not take a new entry, and the entry's name.
fn new_entry(record: &Record) -> Option<(&str, &str)> {
    let adds = record.tclass == "dir" && record.missing.iter().any(|name| name == "add_name");
    let (directory, name) = record.object.rsplit_once('/').filter(|_| adds)?;
    Some((if directory.is_empty() { "/" } else { directory }, name))
}

/// What to add to a profile, where its lists can say it.
fn in_profile(record: &Record) -> Option<String> {
    let wants = |names: &[&str]| record.missing.iter().any(|name| names.contains(&name.as_str()));
    let list = match record.tclass.as_str() {
        "dir" if !record.missing.iter().any(|name| name != "read" && name != "open") => {
            "files.list"
        }
        "file" | "dir" | "lnk_file" | "chr_file" | "fifo_file" | "sock_file" => {
            if wants(&["execute", "execute_no_trans"]) {
                "files.exec"
            } else if wants(&["read", "getattr", "open", "search", "watch"])
                && !wants(&["write", "append", "create"])
            {
                "files.read"
            } else if wants(&["setid", "entrypoint"]) {
                return None;
            } else {
                "files.write"
            }
        }
        "endpoint" if wants(&["name_bind"]) => "network.bind",
        "endpoint" => "network.connect",
        // What a name is looked up by. A host that a profile names is known without.
        "udp_socket" => return Some(entry("network.connect", "${nameserver}:53/udp")),
        "tcp_socket" => return Some("network.connect = [\"HOST:PORT\"]".to_owned()),
        "unix_stream_socket" if wants(&["connectto"]) => "network.connect",
        "unix_dgram_socket" if wants(&["create"]) => {
            return Some(entry("network.connect", "unixgram:${workspace}"));
        }
        "unix_dgram_socket" if wants(&["sendto"]) => {
            let name = record.object.strip_prefix("unix:")?;
            return Some(entry("network.connect", &format!("unixgram:{}", literal(name))));
        }
        _ => return None,
    };
    if let Some((directory, name)) = new_entry(record).filter(|(directory, _)| is_wide(directory)) {
        return made_by_pattern(directory, name);
    }
    let object = new_entry(record).map_or(&*record.object, |(directory, _)| directory);
    let is_path = list.starts_with("files.") || object.starts_with("unix:");
    let object = if is_path { literal(object) } else { object.to_owned() };
    (!object.is_empty()).then(|| entry(list, &object))
}

/// Whether a directory holds much more than one program's files: nobody should grant writing all of
/// it for one new name.
fn is_wide(directory: &str) -> bool {
    let path = Path::new(directory);
    let is_home = std::env::home_dir().is_some_and(|home| home.starts_with(path));
    let homes = Path::new("/home");
    is_home || path == homes || path.parent().is_none_or(|parent| parent == homes)
}

/// The right to make files with names like `name`, where its end is another each time, and to put
/// one in the place of what it is named after: programs write so what must never be half written.
fn made_by_pattern(directory: &str, name: &str) -> Option<String> {
    let is_random = |part: &str| {
        part.len() >= 4
            && part.chars().all(char::is_alphanumeric)
            && part.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
    };
    let start = name.trim_end_matches(|c: char| c != '.' && c != '-');
    let (stem, last) = name.split_at(start.len());
    if stem.len() < 2 || !is_random(last) {
        return None;
    }
    let mut kept = stem.trim_end_matches(['.', '-']);
    while let Some((before, last)) = kept.rsplit_once('.').filter(|(_, last)| is_random(last)) {
        kept = if last.is_empty() { break } else { before };
    }
    let whole = kept.strip_suffix(".tmp").unwrap_or(kept);
    let at = |name: &str| literal(&format!("{}/{name}", directory.trim_end_matches('/')));
    let separator = &name[kept.len()..=kept.len()];
    let names = serde_json::json!([at(whole), at(&format!("{kept}{separator}")) + "*"]);
    Some(format!("files.write = {names}"))
}

/// A line of a profile. A string of JSON is one of TOML, once no control character is left in it.
fn entry(list: &str, value: &str) -> String {
    format!("{list} = [{}]", serde_json::json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(tclass: &str, missing: &[&str], object: &str) -> Denial {
        let record = Record {
            comm: "cc1".into(),
            object: object.into(),
            tclass: tclass.into(),
            missing: missing.iter().map(|name| (*name).into()).collect(),
            reason: "no rule grants it".into(),
            count: 3,
            ..Record::default()
        };
        Denial { record, profile_rules: vec!["build.toml:4: '/x'".into()] }
    }

    #[test]
    fn a_denial_is_told_with_what_would_allow_it_in_a_profile() {
        for (tclass, missing, object, want) in [
            (
                "file",
                &["read", "open"][..],
                "/home/me/.ssh/id",
                "files.read = [\"/home/me/.ssh/id\"]",
            ),
            ("file", &["write"], "/etc/x", "files.write = [\"/etc/x\"]"),
            ("file", &["execute"], "/opt/x", "files.exec = [\"/opt/x\"]"),
            ("dir", &["add_name"], "/etc/x", "files.write = [\"/etc\"]"),
            ("dir", &["add_name"], "/etc/x", "make `x` yourself, and files.write = [\"/etc/x\"]"),
            ("dir", &["add_name"], "/x", "make `x` yourself, and files.write = [\"/x\"]"),
            (
                "dir",
                &["add_name"],
                "/home/me/.claude.json.tmp.4711.aB3d9",
                r#"files.write = ["/home/me/.claude.json","/home/me/.claude.json.tmp.*"]"#,
            ),
            ("dir", &["add_name"], "/tmp/", "files.write = [\"/tmp\"]"),
            ("dir", &["read", "open"], "/home/me", "files.list = [\"/home/me\"]"),
            (
                "unix_dgram_socket",
                &["sendto"],
                "unix:/dev/log",
                "network.connect = [\"unixgram:/dev/log\"]",
            ),
            (
                "unix_dgram_socket",
                &["create"],
                "a new unix_dgram_socket",
                "network.connect = [\"unixgram:${workspace}\"]",
            ),
            ("endpoint", &["name_connect"], "[::1]:443", "network.connect = [\"[::1]:443\"]"),
            ("file", &["write"], "/a*b\\\u{1b}\"", r#"files.write = ["/a\\*b\\\\\u001b\""]"#),
        ] {
            let denials = vec![denial(tclass, missing, object)];
            let text = tell(&RunRecord { denials, ..RunRecord::default() }).unwrap();
            assert!(text.contains(want), "{text}");
            assert!(text.contains("3 times") && text.contains("build.toml:4"), "{text}");
        }
    }

    #[test]
    fn nobody_is_told_to_let_all_of_a_home_be_written() {
        for object in ["/home/me/.profile", "/home/me/x.tmp.8xQ2", "/root-like", "/home/new"] {
            let denials = vec![denial("dir", &["add_name"], object)];
            let text = tell(&RunRecord { denials, ..RunRecord::default() }).unwrap();
            for wide in ["[\"/home/me\"]", "[\"/home\"]", "[\"/\"]"] {
                assert!(!text.contains(wide), "{text}");
            }
        }
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let nasty = "\u{1b}]0;title\u{7}\u{9b}2J\r\n";
        let mut denial = denial("file", &["read"], nasty);
        for field in [
            &mut denial.record.comm,
            &mut denial.record.program,
            &mut denial.record.reason,
            &mut denial.profile_rules[0],
        ] {
            *field = nasty.into();
        }
        let command = vec![nasty.into()];
        let record = RunRecord { denials: vec![denial], command, ..RunRecord::default() };
        let json = output::json(&record).unwrap();
        for text in [tell(&record).unwrap(), json] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            assert!(text.contains(r"\u001b]0;title\u0007\u009b2J"), "{text}");
        }
    }

    #[test]
    fn a_run_without_denials_says_which_layers_keep_no_record() {
        let unrecorded = vec!["the system-call filter: mount".into()];
        let record = RunRecord { command: vec!["true".into()], unrecorded, ..RunRecord::default() };
        let text = tell(&record).unwrap();
        assert!(text.contains("no denial was recorded"), "{text}");
        assert!(text.contains("refused by\n  the system-call filter"), "{text}");
    }
}

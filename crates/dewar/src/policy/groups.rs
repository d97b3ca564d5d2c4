//! What a profile grants, for people: in groups, as wide as the terminal.

use super::grants::{DomainGrants, EndpointGrant, EntryPoint, FileGrant, Grants, Group};
use cli::look::{self, BAD, FAINT, GOOD, NAME, STRONG, paint};
use monitor::visible;
use std::fmt::Write as _;

/// The column where lists begin.
const INDENT: usize = 13;

/// Lines of one list, without `--all`.
const MOST_LINES: usize = 6;

/// What is said of a list: how wide, and whether all of it.
#[derive(Clone, Copy)]
struct Layout {
    width: usize,
    all: bool,
}

/// The whole profile in lines of at most `width` columns.
pub(super) fn tell(grants: &Grants, width: usize, all: bool) -> Result<String, std::fmt::Error> {
    let layout = Layout { width, all };
    let mut text = String::new();
    writeln!(text, "{}", paint(STRONG, &visible(&grants.name)))?;
    if let Some(description) = &grants.description {
        let description = visible(description);
        writeln!(text, "  {}", look::fill(description.split_whitespace(), 2, width))?;
    }
    let mut settings = vec![format!("mode {}", grants.mode), format!("hiding {}", grants.hiding)];
    if grants.guarded {
        settings.push("names that programs outside trust are guarded".to_owned());
    }
    if grants.proposes {
        settings.push("programs inside may propose lines".to_owned());
    }
    let settings = settings.join("; ");
    let settings = look::fill(settings.split(' '), 2, width);
    writeln!(text, "  {FAINT}{settings}{FAINT:#}")?;
    for (index, domain) in grants.domains.iter().enumerate() {
        let base = grants.domains.first().filter(|_| index > 0);
        tell_domain(&mut text, grants, (domain, base), layout)?;
    }
    environment(&mut text, grants, layout)?;
    limits(&mut text, grants)?;
    Ok(text)
}

fn tell_domain(
    text: &mut String,
    grants: &Grants,
    (domain, base): (&DomainGrants, Option<&DomainGrants>),
    layout: Layout,
) -> std::fmt::Result {
    let name = paint(NAME, &visible(&domain.name));
    let differs = if base.is_some() { ", where it differs from main" } else { "" };
    writeln!(text, "\n{STRONG}domain{STRONG:#} {name}{differs}")?;
    let files: Vec<&FileGrant> = match base {
        Some(base) => domain.files.iter().filter(|file| !base.files.contains(file)).collect(),
        None => domain.files.iter().collect(),
    };
    let is_kept = |file: &&FileGrant| matches!(file.rights.as_str(), "hidden" | "denied");
    for (group, title) in
        [(Group::Workspace, "workspace"), (Group::Yours, "yours"), (Group::System, "system")]
    {
        let own = files.iter().copied().filter(|it| it.group == group && !is_kept(it));
        rows(
            text,
            grants,
            (title, &["list", "r", "w", "x", "rw", "rx", "wx", "rwx"]),
            own,
            layout,
        )?;
    }
    rows(text, grants, ("kept away", &["hidden", "denied"]), files.iter().copied(), layout)?;
    network(text, domain, base)?;
    let is_new = |entry: &&EntryPoint| base.is_none_or(|base| !base.entry_points.contains(entry));
    let entries: Vec<&EntryPoint> = domain.entry_points.iter().filter(is_new).collect();
    if !entries.is_empty() {
        title(text, "entry points")?;
        for entry in entries {
            let into = paint(NAME, &visible(&entry.domain));
            let program = visible(&home(&entry.program, grants));
            writeln!(text, "    {GOOD}enter    {GOOD:#}{into} by {program}")?;
        }
    }
    for capability in &domain.capabilities {
        writeln!(text, "    keeps    capability {}", visible(capability))?;
    }
    Ok(())
}

fn title(text: &mut String, title: &str) -> std::fmt::Result {
    writeln!(text, "  {}", paint(STRONG, title))
}

/// One group: for each kind of rights, the files.
fn rows<'a>(
    text: &mut String,
    grants: &Grants,
    (name, kinds): (&str, &[&str]),
    files: impl Iterator<Item = &'a FileGrant>,
    layout: Layout,
) -> std::fmt::Result {
    let files: Vec<&FileGrant> = files.filter(|it| kinds.contains(&it.rights.as_str())).collect();
    if files.is_empty() {
        return Ok(());
    }
    title(text, name)?;
    for kind in kinds {
        let own = files.iter().filter(|file| file.rights == *kind);
        let names: Vec<String> = own.map(|file| visible(&home(&file.files, grants))).collect();
        if !names.is_empty() {
            let style = match *kind {
                "hidden" | "denied" => BAD,
                kind if kind.contains('w') => look::WARN,
                _ => GOOD,
            };
            list(text, &format!("{style}{kind:9}{style:#}"), &names, layout)?;
        }
    }
    Ok(())
}

/// A list behind its head, in as many lines as there may be.
fn list(text: &mut String, head: &str, names: &[String], layout: Layout) -> std::fmt::Result {
    let filled = look::fill(names.iter().map(String::as_str), INDENT, layout.width);
    let lines: Vec<&str> = filled.lines().collect();
    write!(text, "    {head}")?;
    if layout.all || lines.len() <= MOST_LINES {
        return writeln!(text, "{filled}");
    }
    let kept = lines[..MOST_LINES - 1].join("\n");
    let shown = kept.split_whitespace().count();
    writeln!(text, "{kept}")?;
    writeln!(
        text,
        "{:INDENT$}{FAINT}and {} more; --all shows them{FAINT:#}",
        "",
        names.len() - shown
    )
}

fn network(
    text: &mut String,
    domain: &DomainGrants,
    base: Option<&DomainGrants>,
) -> std::fmt::Result {
    let same = base.is_some_and(|base| {
        (&base.connect, &base.bind, &base.unix_names, &base.netlink_protocols)
            == (&domain.connect, &domain.bind, &domain.unix_names, &domain.netlink_protocols)
    });
    if same {
        return Ok(());
    }
    title(text, "network")?;
    for (verb, rules) in [("connect", &domain.connect), ("bind", &domain.bind)] {
        for rule in rules {
            writeln!(text, "    {GOOD}{verb:9}{GOOD:#}{}", visible(&endpoint(rule)))?;
        }
    }
    if domain.own_ports {
        writeln!(
            text,
            "    {GOOD}own      {GOOD:#}ports of 127.0.0.1 and ::1 that the run has bound itself"
        )?;
    } else if domain.connect.is_empty() && domain.bind.is_empty() {
        let own = if domain.private_loopback { "     but a loopback of the run's own" } else { "" };
        writeln!(text, "    {BAD}none{BAD:#}{own}")?;
    }
    for name in &domain.unix_names {
        writeln!(text, "    {GOOD}connect  {GOOD:#}{}", visible(name))?;
    }
    for protocol in &domain.netlink_protocols {
        writeln!(text, "    {GOOD}ask      {GOOD:#}{}", netlink(protocol))?;
    }
    Ok(())
}

/// What somebody asks for by a protocol of netlink.
pub(crate) fn netlink(protocol: &str) -> String {
    match protocol {
        "route" => "for interfaces and routes".to_owned(),
        "sock_diag" => "for the sockets of everybody".to_owned(),
        other => format!("the kernel by netlink {other}"),
    }
}

fn endpoint(rule: &EndpointGrant) -> String {
    let ports = match (rule.first_port, rule.last_port) {
        (0, u16::MAX) => "*".to_owned(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    };
    let because = rule.unresolved.as_ref();
    let because = because.map_or(String::new(), |error| format!(" (no address: {error})"));
    // As profiles write addresses of IPv6.
    let host = match rule.host.split_once('/') {
        _ if !rule.host.contains(':') => rule.host.clone(),
        Some((address, length)) => format!("[{address}]/{length}"),
        None => format!("[{}]", rule.host),
    };
    format!("{host}:{ports}/{}{because}", rule.protocol)
}

fn environment(text: &mut String, grants: &Grants, layout: Layout) -> std::fmt::Result {
    writeln!(text, "\n{}", paint(STRONG, "environment"))?;
    let environment = &grants.environment;
    let set: Vec<String> =
        environment.set.iter().map(|(name, value)| visible(&format!("{name}={value}"))).collect();
    for (head, style, names) in [
        ("passes", GOOD, &environment.pass),
        ("kept out", BAD, &environment.drop),
        ("set", look::WARN, &set),
    ] {
        let names: Vec<String> = names.iter().map(|name| visible(name)).collect();
        if !names.is_empty() {
            list(text, &format!("{style}{head:9}{style:#}"), &names, layout)?;
        }
    }
    if environment.pass.is_empty() && set.is_empty() {
        writeln!(text, "    nothing passes")?;
    }
    Ok(())
}

fn limits(text: &mut String, grants: &Grants) -> std::fmt::Result {
    let limits = &grants.limits;
    let mebibytes = |bytes: Option<u64>| bytes.map(|bytes| format!("{} MiB", bytes >> 20));
    let rows = [
        ("memory", mebibytes(limits.memory_bytes)),
        ("processes", limits.processes.map(|it| it.to_string())),
        ("cpu", limits.cpu_percent.map(|it| format!("{it} % of one processor"))),
        ("time", limits.time_seconds.map(|it| format!("{it} s"))),
        ("files", limits.open_files.map(|it| format!("{it} open in one process"))),
        ("file size", mebibytes(limits.file_size_bytes)),
    ];
    writeln!(text, "\n{}", paint(STRONG, "limits"))?;
    if rows.iter().all(|(_, value)| value.is_none()) {
        writeln!(text, "    none: the system's own hold")?;
    }
    for (name, value) in rows {
        if let Some(value) = value {
            writeln!(text, "    {name:11}{value}")?;
        }
    }
    Ok(())
}

/// A path with the home written as `~`.
fn home(path: &str, grants: &Grants) -> String {
    match path.strip_prefix(&grants.home) {
        Some(rest) if grants.home != "/" && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Documents, Source, Variables};

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let text = "description = 'what this profile is for, in a sentence that is longer than a line of 80 columns is'\n\
                    extends = 'agent'\n[domains.git]\nexec = ['/usr/bin/git']\nfiles.read = ['${home}/.ssh']\n\
                    network.connect = ['git.example.org:22']\n[limits]\nmemory = '2G'\ntime = '10m'\n";
        let source = Source::Text {
            name: "./own.toml".into(),
            text: text.into(),
            directory: "/home/me/project".into(),
        };
        let variables = Variables {
            workspace: "/home/me/project".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            user: "me".into(),
            nameservers: vec!["192.0.2.53".parse().unwrap()],
            ..Variables::default()
        };
        let documents = Documents::read(&source).unwrap();
        let compiled = documents.compile(&variables, &mut profile::unresolved, &[]).unwrap();
        let grants = Grants::of(&compiled, &variables);
        crate::screens::screen("policy-show", |width| tell(&grants, width, false).unwrap());
    }
}

//! What to write into a profile so that what was denied is granted.

use super::known::scope;
use crate::{
    amend::literal,
    groups::Group,
    guarded::{holds_guarded, kept, links_to},
    names::asks_for_names,
    proposal,
    reasons::{self, unnameable},
    run::Denial,
};
use flask::domain_of;
use learn::{Scope, Secrets, is_made_up, temporary};
use monitor::{Record, visible};
use profile::{Kept, Variables};
use std::{collections::BTreeSet, net::SocketAddr, path::Path};

/// Hosts that a profile grants and that had no address, each with its domain.
type Unfound = BTreeSet<(String, String)>;

/// How to do without a right over a whole directory, which may be a home, for one new name in it.
pub(super) fn made_first(denial: &Denial) -> Option<String> {
    let record = &denial.record;
    // A temporary file has no name.
    let (_, name) = new_entry(record).filter(|(_, name)| !name.is_empty())?;
    // Who makes a link, or moves something there, fails where it is already.
    let is_exclusive = ["symlink", "link", "rename"].iter().any(|it| record.call.starts_with(it));
    let is_kept = kept(denial).is_some_and(|(_, place)| place == record.object);
    // Or nobody knows what it will be called next.
    let is_odd = unnameable(&record.object).is_some() || is_made_up(name);
    if is_kept || is_odd || is_exclusive || domain_of(&record.scontext).contains('/') {
        return None;
    }
    let domain = of_domain(record);
    if record.call.starts_with("mkdir") {
        let line = made_by_dewar(record).filter(|_| in_narrow_directory(record))?;
        return Some(format!("{domain}{line}, which makes it before the run"));
    }
    if let Some((file, ends)) = replaced(&record.object) {
        let line = entry("files.write", &format!("{}{ends}", literal(file)));
        return Some(format!("as it takes the place of `{}`: {domain}{line}", visible(file)));
    }
    let line = entry("files.write", &literal(&record.object));
    match Path::new(&record.object).symlink_metadata() {
        // It was there, and not in the run's view; or somebody has made it since.
        Ok(_) => Some(format!("as `{}` is there: {domain}{line}", visible(name))),
        Err(_) => Some(format!("make `{}` yourself, and {domain}{line}", visible(name))),
    }
}

/// The file beside whose name something was to be made, such as its lock or what an editor saves:
/// `PATH` of `PATH.lock` and `PATH~`, with the glob of how names of both end.
fn replaced(path: &str) -> Option<(&str, &'static str)> {
    let saved = path.strip_suffix('~').map(|file| (file, "{,~,.*}"));
    let (file, ends) = match saved {
        Some(it) => it,
        None => (path.rsplit_once('.')?.0, "{,.*}"),
    };
    Path::new(file).is_file().then_some((file, ends))
}

fn in_narrow_directory(record: &Record) -> bool {
    new_entry(record).is_some_and(|(directory, _)| !is_wide(directory))
}

/// The right to write a directory that Dewar makes before the run.
fn made_by_dewar(record: &Record) -> Option<String> {
    let slash = |path: &str| entry("files.write", &format!("{}/", literal(path)));
    let object = record.object.as_str();
    match is_wide(object) {
        // What holds directories of many programs is not one's own.
        true => Some(slash(&format!("{object}/NAME")) + ", with the NAME of what is needed in it"),
        false => Some(slash(object)),
    }
}

/// What those of a group that act for whoever connects give outside.
pub(super) fn powers(group: &Group<'_>) -> BTreeSet<&'static str> {
    group.members.iter().filter_map(|(_, it)| profile::power(&it.record.object)).collect()
}

/// The directory that does not take a new entry, and the entry's name.
fn new_entry(record: &Record) -> Option<(&str, &str)> {
    let adds = record.tclass == "dir" && record.missing.iter().any(|name| name == "add_name");
    let (directory, name) = record.object.rsplit_once('/').filter(|_| adds)?;
    Some((if directory.is_empty() { "/" } else { directory }, name))
}

/// What a line is about: the directory of a new entry, or what was denied itself, also an entry of
/// a directory that nobody grants as a whole.
fn named<'a>(record: &'a Record, scope: &Scope) -> &'a str {
    let whole = new_entry(record).map(|(directory, _)| directory);
    let whole = whole.filter(|directory| !holds_guarded(Path::new(directory), scope));
    whole.unwrap_or(&record.object)
}

/// What to add to a profile, where its lists can say it.
pub(super) fn in_profile(denial: &Denial, variables: Option<&Variables>) -> Option<String> {
    let record = &denial.record;
    let scope = scope(variables);
    let list = line(record, &scope)?;
    let object = named(record, &scope);
    if let Some(why) = unnameable(object) {
        return Some(why.to_owned());
    }
    // Of a run inside, the reason says whose profile it is about.
    if domain_of(&record.scontext).contains('/') {
        return Some(list);
    }
    match kept(denial) {
        Some((Kept::Led, place)) => Some(unguarded(record, &links_to(place, variables))),
        Some((kept, _)) => {
            Some(format!("no line helps: {}. Change it outside of the run", kept.why()))
        }
        None => {
            let line = own_loopback(record).unwrap_or_default() + &of_domain(record) + &list;
            Some(line + all_addresses(record).unwrap_or_default())
        }
    }
}

/// What is bound at all addresses of the machine is reached from outside.
fn all_addresses(record: &Record) -> Option<&'static str> {
    let address = record.object.trim_end_matches("/udp").parse::<SocketAddr>().ok()?;
    let is_bound = record.missing.iter().any(|name| name == "name_bind");
    (is_bound && address.ip().is_unspecified()).then_some(
        ", which others reach over the network; a profile with a loopback grants to bind 127.0.0.1",
    )
}

/// What lets a run use the ports of the machine's loopback that it has bound itself.
fn own_loopback(record: &Record) -> Option<String> {
    let address = record.object.trim_end_matches("/udp").parse::<SocketAddr>().ok();
    let is_loopback = address.is_some_and(|address| address.ip().to_canonical().is_loopback());
    let is_port = record.tclass == "endpoint" && is_loopback;
    is_port.then(|| "network.loopback = \"own\" (ports that the run binds itself), or ".to_owned())
}

/// That a program asked for an address, where hosts that it is granted had none at the start.
pub(super) fn without_address(record: &Record, unfound: &Unfound) -> Option<String> {
    let own = unfound.iter().filter(|(domain, _)| domain == domain_of(&record.scontext));
    let hosts: Vec<&str> = own.map(|(_, host)| host.as_str()).collect();
    (asks_for_names(record) && !hosts.is_empty()).then(|| {
        let hosts = hosts.join(", ");
        format!("{hosts}: without an address when the run started; once there is one, run the command again")
    })
}

/// The hosts that a command names, where a name server was asked in vain: a host that a profile
/// names is known without.
pub(super) fn named_hosts(record: &Record, command: &[String]) -> Option<String> {
    let hosts = proposal::named_hosts(command);
    let line = || format!("{}network.connect = {}", of_domain(record), serde_json::json!(hosts));
    (asks_for_names(record) && !hosts.is_empty()).then(line)
}

/// Lines that take the guard from links.
fn unguarded(record: &Record, links: &[String]) -> String {
    let list = format!("files.unguarded = {}", serde_json::json!(links));
    match of_domain(record) {
        // One that inherits nothing has a guard of its own.
        domain if !domain.is_empty() => format!("{list}, and {domain}{list}"),
        _ => list,
    }
}

/// What stands before a list of a domain that is not the base domain.
fn of_domain(record: &Record) -> String {
    match domain_of(&record.scontext) {
        "main" | "" => String::new(),
        domain => format!("domains.{domain}."),
    }
}

fn line(record: &Record, scope: &Scope) -> Option<String> {
    let wants = |names: &[&str]| record.missing.iter().any(|name| names.contains(&name.as_str()));
    let scheme = match record.call.as_str() {
        "connect" => Some("unix"),
        "sendto" | "sendmsg" | "sendmmsg" => Some("unixgram"),
        _ => None,
    };
    let is_file = ["sock_file", "file"].contains(&record.tclass.as_str());
    if let Some(scheme) = scheme.filter(|_| is_file) {
        // It was looked for to be connected to.
        return Some(entry("network.connect", &format!("{scheme}:{}", literal(&record.object))));
    }
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
        "tcp_socket" => return Some(reasons::NAME_A_HOST.to_owned()),
        "unix_stream_socket" if wants(&["connectto"]) => "network.connect",
        "unix_dgram_socket" if wants(&["create"]) => {
            return Some(reasons::NAME_A_SOCKET.to_owned());
        }
        "unix_dgram_socket" if wants(&["sendto"]) => {
            let name = record.object.strip_prefix("unix:")?;
            return Some(entry("network.connect", &format!("unixgram:{}", literal(name))));
        }
        class => return reasons::netlink_line(class),
    };
    if let Some((directory, name)) = new_entry(record).filter(|(directory, _)| is_wide(directory)) {
        if record.call.starts_with("mkdir") {
            return made_by_dewar(record);
        }
        return temporary_in(directory, name).or_else(|| made_by_pattern(directory, name));
    }
    let object = named(record, scope);
    if record.tclass == "endpoint" {
        return Some(entry(list, &on_any_link(object)));
    }
    let is_path = list.starts_with("files.") || object.starts_with("unix:");
    let object = if is_path { literal(object) } else { object.to_owned() };
    (!object.is_empty()).then(|| entry(list, &object))
}

/// An endpoint without the link that it is on: rules are about the address on all of them.
fn on_any_link(endpoint: &str) -> String {
    match endpoint.split_once('%') {
        Some((ip, rest)) => {
            format!("{ip}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => endpoint.to_owned(),
    }
}

/// Whether a directory holds much more than one program's files: nobody should grant writing all of
/// it for one new name.
fn is_wide(directory: &str) -> bool {
    let path = Path::new(directory);
    let home = std::env::home_dir();
    let is_home = home.as_ref().is_some_and(|home| home.starts_with(path));
    let scope = home.map(|home| Scope { home, ..Scope::default() });
    let is_shelf = scope.is_some_and(|scope| scope.is_shelf(path));
    let homes = Path::new("/home");
    is_home || is_shelf || path == homes || path.parent().is_none_or(|parent| parent == homes)
}

/// Whether no secret that is there is among what `glob` stands for in `directory`.
fn is_without_secrets(directory: &str, glob: &str) -> bool {
    Secrets::default().among(Path::new(directory), glob).is_none()
}

/// The right to make temporary files such as `name`.
fn temporary_in(directory: &str, name: &str) -> Option<String> {
    let names = temporary(name).filter(|names| is_without_secrets(directory, names))?;
    let line = format!("{}/{names}", literal(directory.trim_end_matches('/')));
    Some(entry("files.write", &line) + ", and the file whose place it takes")
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
    let glob = literal(&format!("{kept}{separator}")) + "*";
    let names = serde_json::json!([at(whole), at(&format!("{kept}{separator}")) + "*"]);
    is_without_secrets(directory, &glob).then(|| format!("files.write = {names}"))
}

/// A line of a profile. A string of JSON is one of TOML, once no control character is left in it.
pub(super) fn entry(list: &str, value: &str) -> String {
    format!("{list} = [{}]", serde_json::json!(value))
}

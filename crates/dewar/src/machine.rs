//! What a profile's variables and names stand for on this machine.

use crate::failure::Usage;
use anyhow::{Context as _, bail};
use confine::layers::Layers;
use daemon_client::DaemonDirs;
use nix::unistd::{Uid, User};
use profile::{Addresses, Registries, Variables};
use realpath::RealPaths;
use registries::{ConfigRoots, Tool};
use rustix::fs::{Mode, OFlags};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, ToSocketAddrs as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
};

/// The text of a short file that a run may have put there: what is no file, such as a FIFO that
/// would never be read to its end, has none, nor has what a link leads to.
pub(crate) fn short_text(path: &Path) -> Option<String> {
    const MOST: u64 = 4096;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The variables of a run on `workspace` (default: the working directory) with temporary files in
/// `tmp`.
pub(crate) fn variables(workspace: Option<&Path>, tmp: PathBuf) -> anyhow::Result<Variables> {
    of_machine(directory(workspace.unwrap_or(Path::new(".")))?, home()?, tmp)
}

/// The same inside of a run, whose view may leave the home out, and which has no network and no
/// shared memory for itself.
pub(crate) fn variables_inside(
    workspace: Option<&Path>,
    tmp: PathBuf,
) -> anyhow::Result<Variables> {
    let workspace = directory(workspace.unwrap_or(Path::new(".")))?;
    let home = home().or_else(|error| {
        let named = std::env::home_dir().filter(|home| home.is_absolute() && is_writable(home));
        named.ok_or(error)
    })?;
    let variables = of_machine(workspace, home, tmp)?;
    Ok(Variables { private_network: false, shares_temporary: true, ..variables })
}

fn of_machine(workspace: PathBuf, home: PathBuf, tmp: PathBuf) -> anyhow::Result<Variables> {
    let paths = RealPaths::new();
    let (kept, fixed) = kept(&home);
    Ok(Variables {
        private_network: true,
        registries: registries(&workspace, &home, &paths),
        workspace,
        shares_temporary: false,
        tmp,
        user: std::env::var("USER").unwrap_or_default(),
        nameservers: nameservers(),
        confidential: confidential()?,
        kept,
        fixed,
        led: Vec::new(),
        misleading: Vec::new(),
        mounted: mounted()?,
        home,
    })
}

/// Places at which the same files lie.
fn mounted() -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let twice = proc::Mounts::own().twice();
    if let Some((path, _)) = twice.iter().find(|(path, _)| !is_writable(path)) {
        bail!(Usage(format!("cannot keep back {path:?}, which is mounted twice: {UNWRITABLE}")));
    }
    Ok(twice)
}

/// What each tool's own configuration names, as far as it is the user's or the machine's word.
fn registries(workspace: &Path, home: &Path, paths: &RealPaths) -> BTreeMap<String, Registries> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let variables: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
    let (root, variables) = (Path::new("/"), variables.as_slice());
    let roots = ConfigRoots { home, workspace, root, variables, paths };
    let all = Tool::ALL.into_iter().map(|tool| {
        let asked = tool.asked(&roots);
        let registries = Registries {
            endpoints: asked.endpoints.iter().map(ToString::to_string).collect(),
            proxies: asked.proxies.iter().map(ToString::to_string).collect(),
            files: asked.files,
            ignored: asked.ignored,
            variables: asked.variables,
            problem: asked.unreadable.map(|why| why.to_string()),
        };
        (tool.name().to_owned(), registries)
    });
    all.collect()
}

/// What lies in `/etc` and not everybody may read, if the user may: root owns most of it, and an
/// owner without capabilities reads it still.
fn confidential() -> anyhow::Result<Vec<PathBuf>> {
    let settings = Path::new("/etc");
    let user = rustix::process::geteuid();
    let owner = settings.metadata().map(|found| found.uid());
    if !user.is_root() && owner.is_ok_and(|owner| owner != user.as_raw()) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    add_confidential(settings, &mut all);
    if let Some(path) = all.iter().find(|path| !is_writable(path)) {
        bail!(Usage(format!("cannot keep back {path:?}: {UNWRITABLE}")));
    }
    all.sort();
    Ok(all)
}

/// Adds what not everybody may reach in `directory`. Links lead to what has rights of its own.
fn add_confidential(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let kind = entry.file_type();
        if kind.as_ref().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let is_directory = kind.is_ok_and(|kind| kind.is_dir());
        let needed = if is_directory { Mode::XOTH } else { Mode::ROTH };
        match entry.metadata() {
            Ok(found) if found.mode() & needed.bits() != 0 && is_directory => {
                add_confidential(&entry.path(), all);
            }
            Ok(found) if found.mode() & needed.bits() != 0 => {}
            _ => all.push(entry.path()),
        }
    }
}

/// Where Dewar keeps what it believes later: compiled plugins with the key that vouches for them,
/// records of runs, the state and the sockets of daemons; and where programs propose something.
/// What is elsewhere for this run, by a variable, is at its usual place for others. Then what leads
/// there, which no run may change: the next one would be led elsewhere.
fn kept(home: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let user = rustix::process::geteuid();
    let known = User::from_uid(Uid::from_raw(user.as_raw())).ok().flatten().map(|user| user.dir);
    let homes = [Some(home.to_owned()), std::env::home_dir(), known].into_iter().flatten();
    let homes = homes.filter(|home| home.is_absolute());
    let usual = homes.flat_map(|home| [home.join(".cache"), home.join(".local/state")]);
    let places = [runs::cache_directory(), runs::state_directory()].into_iter().flatten();
    let places = places.chain(usual).chain([format!("/run/user/{}", user.as_raw()).into()]);
    let mut all: Vec<PathBuf> =
        places.flat_map(|place| ["dewar", PROPOSALS].map(|own| place.join(own))).collect();
    for place in DaemonDirs::user().into_iter().chain([DaemonDirs::system()]) {
        all.extend([place.state, place.runtime]);
    }
    let (mut kept, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    for path in all {
        let mut way = realpath::way(&path);
        kept.extend(way.pop());
        fixed.extend(way);
    }
    (kept.into_iter().collect(), fixed.into_iter().collect())
}

/// The directory of these sockets.
const PROPOSALS: &str = "dewar-propose";

/// Where the sockets lie at which programs inside propose something.
pub(crate) fn proposals() -> io::Result<PathBuf> {
    Ok(real(&runs::state_directory()?.join(PROPOSALS)))
}

/// A path without links; of what does not exist, as far as it does.
pub(crate) fn real(path: &Path) -> PathBuf {
    RealPaths::new().existing_part(path)
}

/// A directory that a person named, as its path is without links.
fn directory(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let unusable = |error: io::Error| Usage(format!("cannot use workspace `{shown}`: {error}"));
    let real = path.canonicalize().map_err(unusable)?;
    if !real.metadata().map_err(unusable)?.is_dir() {
        bail!(Usage(format!("cannot use workspace `{shown}`: it is not a directory")));
    }
    if !is_writable(&real) {
        bail!(Usage(format!("cannot use workspace {real:?}: {UNWRITABLE}")));
    }
    Ok(real)
}

fn home() -> anyhow::Result<PathBuf> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.context(
        "HOME names no directory, so secrets in it could not be hidden; set it to your home",
    )?;
    let cannot = || format!("cannot use HOME `{}`; set it to a directory", home.display());
    let real = home.canonicalize().with_context(cannot)?;
    if !is_writable(&real) {
        bail!(Usage(format!("cannot use HOME {real:?}: {UNWRITABLE}")));
    }
    Ok(real)
}

const UNWRITABLE: &str = "a policy cannot name a path with a control character, a double quote or bytes that are not \
                          UTF-8; rename the directory";

/// Whether a policy can name `path`.
fn is_writable(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.chars().all(flask::is_quotable))
}

/// The servers that answer name queries on this machine.
fn nameservers() -> Vec<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    text.lines().filter_map(nameserver).collect()
}

fn nameserver(line: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
    // `fe80::1%eth0`: the zone is no part of the address.
    address.split('%').next()?.parse().ok()
}

/// The addresses of host names, as this machine resolves them: beside each other, so that silent
/// name servers are waited for once (resolv.conf(5) says how long).
pub(crate) fn resolve(names: &[&str]) -> Vec<Addresses> {
    /// At once.
    const MOST: usize = 32;
    names.chunks(MOST).flat_map(beside_each_other).collect()
}

fn beside_each_other(names: &[&str]) -> Vec<Addresses> {
    thread::scope(|scope| {
        let begin = |name| thread::Builder::new().spawn_scoped(scope, move || resolve_one(name));
        let begun: Vec<_> = names.iter().copied().map(begin).collect();
        // A name for which there is no thread waits for the others.
        let end = |(thread, name): (io::Result<thread::ScopedJoinHandle<'_, Addresses>>, &&str)| {
            let found = thread.ok().and_then(|thread| thread.join().ok());
            found.unwrap_or_else(|| resolve_one(name))
        };
        begun.into_iter().zip(names).map(end).collect()
    })
}

/// The addresses of one host name.
pub(crate) fn resolve_one(name: &str) -> Addresses {
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// The layers as if the machine lacked those in `without`.
pub(crate) fn layers(layers: Layers, without: &[String]) -> anyhow::Result<Layers> {
    let names: Vec<&str> = without.iter().map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| layers.get(name).is_none()) {
        let known: Vec<&str> = layers.layers.iter().map(|layer| layer.name).collect();
        bail!(Usage(format!("`{name}` is no layer; layers are {}", known.join(", "))));
    }
    Ok(layers.without(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_are_read_as_resolv_conf_spells_them() {
        let address = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        assert_eq!(nameserver("nameserver 192.0.2.53"), address("192.0.2.53"));
        assert_eq!(nameserver("  nameserver\tfe80::1%eth0 # x"), address("fe80::1"));
        assert_eq!(nameserver("# nameserver 192.0.2.53"), None);
        assert_eq!(nameserver("nameserver"), None);
        assert_eq!(nameserver("search example.org"), None);
    }
}

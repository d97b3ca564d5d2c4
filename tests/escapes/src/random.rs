//! System calls at random, by a grammar, with hostile arguments: what lies outside must not change,
//! nothing must arrive there, and the monitor must live.
//!
//! A storm lasts `DEWAR_FUZZ_SECONDS` (8, in each case), from `DEWAR_FUZZ_SEED`, which a failure
//! names. What depends on the order in which threads run is not the same again; what a list of
//! calls does, is.

use crate::{
    Case,
    answers::Answers,
    cases,
    dewar::Call,
    stage::{SECRET, Stage},
};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _},
            net,
            process::ExitStatusExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

pub(crate) const CASES: &[Case] =
    cases![calling_at_random, refusing_the_same_in_every_mode_whatever_is_called];

/// How often a list of calls is made in each mode whose answers differ.
const TURNS: usize = 5;

/// A number from the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect(name))
}

/// A seed that is another one each day the tests run, unless it is chosen.
fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    number("DEWAR_FUZZ_SEED", now.expect("a time").as_secs() / 86_400)
}

/// What lies outside, and would show that something got out.
struct Outside {
    directory: PathBuf,
    files: Vec<(PathBuf, String)>,
    tcp: TcpListener,
    udp: [UdpSocket; 2],
    streams: [net::UnixListener; 2],
    datagrams: net::UnixDatagram,
    victim: Child,
    name: String,
}

impl Outside {
    fn new(stage: &Stage) -> Self {
        let directory = stage.directory("outside");
        stage.directory("outside/dir");
        stage.file("outside/file", "content");
        stage.file("outside/secret", SECRET);
        stage.file("outside/dir/file", "content");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("listen");
        let udp = ["127.0.0.1:0", "[::1]:0"].map(|at| UdpSocket::bind(at).expect("a receiver"));
        // Both families have the same port where that is free.
        let port = udp[0].local_addr().expect("an address").port();
        let [v4, v6] = udp;
        let udp = [v4, UdpSocket::bind(("::1", port)).unwrap_or(v6)];
        let name = format!("{}", stage.home().display());
        let of = |name: &str| net::SocketAddr::from_abstract_name(name).expect("a name");
        let by_name = net::UnixListener::bind_addr(&of(&name)).expect("listen");
        let by_path = net::UnixListener::bind(directory.join("socket")).expect("listen");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(directory.join("socket"), open).expect("open it to all");
        let datagrams =
            net::UnixDatagram::bind_addr(&of(&format!("{name}/datagrams"))).expect("a receiver");
        tcp.set_nonblocking(true).expect("not to wait");
        udp.iter().for_each(|it| it.set_nonblocking(true).expect("not to wait"));
        datagrams.set_nonblocking(true).expect("not to wait");
        let streams = [by_name, by_path];
        streams.iter().for_each(|it| it.set_nonblocking(true).expect("not to wait"));
        let mut sleep = Command::new("sleep");
        sleep.arg("100000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let victim = stage.like(sleep).spawn().expect("start `sleep`");
        let files = told(&directory);
        Self { directory, files, tcp, udp, streams, datagrams, victim, name }
    }

    /// The words that tell an attack what to aim at.
    fn words(&self) -> Vec<String> {
        let port =
            |address: std::io::Result<std::net::SocketAddr>| address.expect("an address").port();
        vec![
            self.directory.display().to_string(),
            self.victim.id().to_string(),
            port(self.tcp.local_addr()).to_string(),
            port(self.udp[0].local_addr()).to_string(),
            self.name.clone(),
            self.directory.join("socket").display().to_string(),
        ]
    }

    /// Nothing has changed, nothing has arrived, and nobody was touched.
    fn is_untouched(&mut self, why: &str) {
        assert_eq!(told(&self.directory), self.files, "{why}: files outside have changed");
        assert!(self.tcp.accept().is_err(), "{why}: connected by TCP");
        for receiver in &self.udp {
            assert!(receiver.recv(&mut [0; 8]).is_err(), "{why}: sent by UDP");
        }
        for listener in &self.streams {
            let Ok((peer, from)) = listener.accept() else { continue };
            let (at, by) = (listener.local_addr(), rustix::net::sockopt::socket_peercred(&peer));
            panic!("{why}: connected to {at:?}, from {from:?} by {by:?}");
        }
        assert!(self.datagrams.recv(&mut [0; 8]).is_err(), "{why}: sent to a local socket");
        assert!(self.victim.try_wait().expect("look").is_none(), "{why}: killed a process outside");
        let status = fs::read_to_string(format!("/proc/{}/stat", self.victim.id()));
        let state = status.expect("the state of `sleep`");
        assert!(state.contains(") S "), "{why}: a process outside is not as it was: {state}");
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.victim.id()));
        let own = fs::read_to_string("/proc/self/limits").expect("limits");
        let files =
            |text: &str| text.lines().find(|it| it.starts_with("Max cpu")).map(str::to_owned);
        assert_eq!(files(&limits.expect("limits")), files(&own), "{why}: limits outside");
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// What there is below a directory, with all that calls could change of it.
fn told(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let it = path.symlink_metadata().expect("what was there");
        let content = if it.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        if it.is_dir() {
            left.extend(fs::read_dir(&path).expect("list").map(|it| it.expect("an entry").path()));
        }
        let text = format!(
            "{:o} {}:{} {} links, changed {}.{} {content:?}",
            it.mode(),
            it.uid(),
            it.gid(),
            it.nlink(),
            it.ctime(),
            it.ctime_nsec()
        );
        all.push((path, text));
    }
    all.sort();
    all
}

const PROFILES: usize = 3;

/// Profiles that grant nothing outside: with a network of its own, and one where the network is the
/// machine's and sends are decided, in one domain and in two.
fn profiles(stage: &Stage) -> [String; PROFILES] {
    let rules = "[limits]\nprocesses = 300\n[network]\nconnect = [\"127.0.0.1:9\", \"127.0.0.1:9/udp\", \"unixgram:${workspace}/nobody\"]\n";
    let other = "[domains.other]\nexec = [\"/usr/bin/true\"]\n";
    let file = |name: &str, rules: &str| {
        let path = stage.file(name, &format!("extends = \"workspace\"\n{rules}"));
        path.to_str().expect("UTF-8").to_owned()
    };
    [
        file("own.toml", "[limits]\nprocesses = 300\n"),
        file("shared.toml", rules),
        file("two.toml", &format!("{rules}{other}")),
    ]
}

/// What a random attack says, of `words`, in a workspace of its own: what it leaves there is of no
/// use to the next.
fn attack(stage: &Stage, (n, fast): (usize, bool), words: &[String]) -> (Output, String) {
    let fresh = Stage::new(stage.variant);
    let profile = &profiles(&fresh)[n];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let call = Call { fast, ..fresh.call(profile) };
    let mut command = fresh.command(call, "call_at_random", &words);
    let output = command.stdin(Stdio::null()).output().expect("start `dewar`");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// The words that an attack begins with, then what it aims at.
fn words(what: &str, seed: u64, much: u64, outside: &Outside) -> Vec<String> {
    let first = [what.to_owned(), seed.to_string(), much.to_string()];
    first.into_iter().chain(outside.words()).collect()
}

fn calling_at_random(stage: &Stage) {
    let (seconds, seed) = (number("DEWAR_FUZZ_SECONDS", 8), seed());
    let mut outside = Outside::new(stage);
    for n in 0..PROFILES {
        let seed = seed * 8 + n as u64;
        let why = format!("{}, profile {n}, DEWAR_FUZZ_SEED={}", stage.variant.name(), seed / 8);
        let words = words("storm", seed, seconds.div_ceil(PROFILES as u64), &outside);
        let (output, said) = attack(stage, (n, seed % 2 == 1), &words);
        outside.is_untouched(&why);
        // The storm may end itself, by a signal that a descriptor sends. The monitor says what it
        // has denied, whatever came.
        let killed = output.status.signal() == Some(9) || output.status.code() == Some(137);
        assert!(output.status.success() || killed, "{why}: {}\n{said}", output.status);
        assert!(said.contains("dewar: denied") && !said.contains("panicked"), "{why}: {said}");
    }
}

/// A list of calls ends the same in mode `all` and in mode `fast`. One that does not is made again,
/// in both in turn: what differs from time to time in one mode is no difference between them.
fn refusing_the_same_in_every_mode_whatever_is_called(stage: &Stage) {
    let (count, seed) = (number("DEWAR_FUZZ_CALLS", 4000), seed());
    let mut outside = Outside::new(stage);
    for n in 0..PROFILES {
        let seed = seed * 8 + n as u64;
        let why = format!("{}, profile {n}, DEWAR_FUZZ_SEED={}", stage.variant.name(), seed / 8);
        let words = words("list", seed, count, &outside);
        let mut answers = Answers::default();
        for turn in 0..TURNS {
            for fast in [false, true] {
                let (output, said) = attack(stage, (n, fast), &words);
                assert!(output.status.success(), "{why}: {}\n{said}", output.status);
                let told = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(told.lines().count() > 100, "{why}: nothing was called");
                answers.add(fast, &told);
            }
            outside.is_untouched(&why);
            let different = answers.different();
            if different.is_empty() {
                break;
            }
            eprintln!("{why}, turn {turn}: {different:?}");
        }
        let different = answers.between_modes();
        assert!(different.is_empty(), "{why}: between modes, {TURNS} times: {different:?}");
    }
}

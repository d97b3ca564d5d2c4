//! What a policy decides after amendments, by the security server and the labelling rules.

mod common;

use common::variables;
use flask::{
    AccessVector, Class, FileKind, InitialSid, Protocol, Question, SecurityServer as _, Sid,
};
use labelling::{Networks, PathRules};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents, Source};
use proptest::prelude::*;
use security_server::Server;
use std::{
    collections::HashMap,
    net::IpAddr,
    path::Path,
    time::{Duration, SystemTime},
};

fn revoke(object: AmendedObject) -> Amendment {
    amendment(AmendmentKind::Revoke, object)
}

fn grant(object: AmendedObject) -> Amendment {
    amendment(AmendmentKind::Grant, object)
}

fn amendment(kind: AmendmentKind, object: AmendedObject) -> Amendment {
    let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Amendment { when, ..Amendment::new(kind, None, object) }
}

fn files(pattern: &str) -> AmendedObject {
    AmendedObject::Files(pattern.into())
}

fn net(endpoint: &str, addresses: &[&str]) -> AmendedObject {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    AmendedObject::Network { endpoint: endpoint.into(), addresses }
}

fn documents(text: &str) -> Documents {
    let source =
        Source::Text { name: "test.toml".into(), text: text.into(), directory: "/nowhere".into() };
    Documents::read(&source).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn compile(text: &str, amendments: &[Amendment]) -> Result<Compiled, String> {
    let two = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<IpAddr>().unwrap());
    let mut resolver = |names: &[&str]| names.iter().map(|_| Ok(two.to_vec())).collect();
    let compiled = documents(text).compile(&variables(), &mut resolver, amendments);
    compiled.map_err(|errors| {
        let problems = errors.errors().iter().map(|error| &error.problem);
        problems.map(|p| format!("{p}; {}", p.help().unwrap_or_default())).collect()
    })
}

/// A policy in force, asked by path, address and name.
struct Decider {
    server: Server,
    paths: PathRules,
    networks: Networks,
    compiled: Compiled,
}

impl Decider {
    fn new(text: &str, amendments: &[Amendment]) -> Self {
        let compiled = compile(text, amendments).unwrap_or_else(|errors| panic!("{errors}"));
        let server = Server::from_cil(&[("policy", compiled.cil.as_str())]);
        let server = server.unwrap_or_else(|error| panic!("{error:?}\n{}", compiled.cil));
        let rules = server.label_rules().unwrap();
        let paths = PathRules::new(&rules.files).unwrap();
        Self { server, paths, networks: Networks::new(&rules), compiled }
    }

    fn sid(&self, domain: &str) -> Sid {
        let context = |range| format!("dewar_u:dewar_r:{domain}_t{range}");
        let sid = self.server.context_to_sid(&context(""));
        sid.or_else(|_| self.server.context_to_sid(&context(":s0"))).unwrap()
    }

    fn allowed(&self, domain: &str, tsid: Sid, class: &str) -> (Class, AccessVector) {
        let tclass = Class::by_name(class).unwrap();
        let question = Question { ssid: self.sid(domain), tsid, tclass };
        (tclass, self.server.compute_av(question).unwrap().allowed)
    }

    fn allows(&self, domain: &str, tsid: Sid, class: &str, permission: &str) -> bool {
        let (class, allowed) = self.allowed(domain, tsid, class);
        allowed.contains(class.permission(permission).unwrap())
    }

    /// `e` for existing, `r`, `w`, `x`: what a domain may do with a regular file, where no
    /// directory could be instead.
    fn file(&self, domain: &str, path: &str) -> String {
        let sid = self.paths.sid(Path::new(path), FileKind::Dir);
        let letters = [("getattr", 'e'), ("read", 'r'), ("write", 'w'), ("execute", 'x')];
        let granted = letters.iter().filter(|(name, _)| self.allows(domain, sid, "file", name));
        granted.map(|(_, letter)| letter).collect()
    }

    fn type_of(&self, path: &str) -> String {
        let sid = self.paths.sid(Path::new(path), FileKind::Dir);
        self.server.sid_to_context(sid).unwrap().split(':').nth(2).unwrap().to_owned()
    }

    fn endpoint(&self, address: &str, protocol: Protocol, port: u16) -> Sid {
        let ssid = self.networks.node(address.parse().unwrap());
        let tsid = self.networks.port(protocol, port);
        let question = Question { ssid, tsid, tclass: Class::Endpoint };
        self.server.compute_create(question, None).unwrap()
    }

    fn connects(&self, domain: &str, address: &str, port: u16) -> bool {
        let sid = self.endpoint(address, Protocol::Tcp, port);
        self.allows(domain, sid, "endpoint", "name_connect")
    }

    fn abstract_name(&self, name: &str) -> bool {
        let sid = self.paths.sid(Path::new(name), FileKind::Socket);
        let sid = if sid == InitialSid::File.into() { InitialSid::AnySocket.into() } else { sid };
        self.allows("main", sid, "unix_stream_socket", "connectto")
    }
}

const PROFILE: &str = "
    [files]
    read = ['/usr']
    write = ['/ws', '/ws/src/*.c']
    exec = ['/usr/bin', '/ws']
    hide = ['/ws/.env']
    deny = ['/usr/secret']
    [network]
    connect = ['example.org:443', '10.0.0.0/8:*', 'unix:/run/x.sock', 'unix:@bus', 'unix:@bus-*']
    [domains.git]
    exec = ['/usr/bin/git']
";

#[test]
fn a_revocation_overrides_also_what_is_more_specific() {
    let decider = Decider::new(PROFILE, &[revoke(files("/**/*.c"))]);
    for (path, want) in [
        ("/ws/src/a.c", "e"),
        ("/ws/src/deep/a.c", "e"),
        ("/ws/a.c", "e"),
        ("/usr/include/a.c", "e"),
        ("/ws/src/a.h", "erwx"),
        ("/usr/include/a.h", "er"),
        ("/ws/.env", ""),
        ("/ws/.env/a.c", ""),
    ] {
        for domain in ["main", "git"] {
            assert_eq!(decider.file(domain, path), want, "{domain} {path}");
        }
    }
}

#[test]
fn many_globs_across_each_other_are_taken_together() {
    let globs = || (0..80).map(|n| files(&format!("/**/*x{n}y*")));
    let mut amendments: Vec<Amendment> = globs().map(revoke).collect();
    let taken = Decider::new(PROFILE, &amendments);
    for (path, want) in [("/ws/x1y/x7y", "e"), ("/ws/ax79y", "e"), ("/ws/src/x80y.c", "erwx")] {
        assert_eq!(taken.file("main", path), want, "{path}");
    }
    assert!(taken.compiled.paths.len() < 1000, "{}", taken.compiled.paths.len());
    amendments.push(grant(AmendedObject::All));
    let back = Decider::new(PROFILE, &amendments);
    assert_eq!(back.file("main", "/ws/x1y/x7y"), "erwx");
}

#[test]
fn a_grant_of_what_was_revoked_undoes_it_exactly() {
    let plain = Decider::new(PROFILE, &[]);
    let both = Decider::new(PROFILE, &[revoke(files("/ws/**")), grant(files("/ws/**"))]);
    for path in ["/ws/a", "/ws/.env", "/ws/src/a.c", "/usr/a", "/elsewhere"] {
        assert_eq!(both.file("main", path), plain.file("main", path), "{path}");
    }
    let part = Decider::new(PROFILE, &[revoke(files("/ws")), grant(files("/ws/src"))]);
    for (path, want) in [("/ws/a", "e"), ("/ws/src/a", "erwx"), ("/ws/.env", "")] {
        assert_eq!(part.file("main", path), want, "{path}");
    }
}

#[test]
fn a_grant_gives_what_the_profile_is_silent_about_and_opens_nothing_that_it_hides() {
    let amendments = [grant(files("/srv")), grant(files("/ws")), grant(files("/usr/secret"))];
    let decider = Decider::new(PROFILE, &amendments);
    for (path, want) in
        [("/srv/a", "er"), ("/ws/.env", ""), ("/ws/a", "erwx"), ("/usr/secret", "e")]
    {
        assert_eq!(decider.file("main", path), want, "{path}");
    }
    let written = Decider::new(PROFILE, &[grant(AmendedObject::Write("/srv".into()))]);
    assert_eq!(written.file("main", "/srv/a"), "erw");
    let executed = Decider::new(PROFILE, &[grant(AmendedObject::Exec("/srv".into()))]);
    assert_eq!(executed.file("main", "/srv/a"), "e");
}

#[test]
fn writing_and_executing_are_taken_alone() {
    let write = Decider::new(PROFILE, &[revoke(AmendedObject::Write("/ws/src".into()))]);
    assert_eq!(write.file("main", "/ws/src/a.c"), "erx");
    assert_eq!(write.file("main", "/ws/a.c"), "erwx");
    let exec = Decider::new(PROFILE, &[revoke(AmendedObject::Exec("/usr/bin/git".into()))]);
    assert_eq!(
        (exec.file("main", "/usr/bin/git"), exec.file("main", "/usr/bin/ls")),
        ("er".into(), "erx".into())
    );
}

#[test]
fn one_domain_loses_and_the_other_does_not() {
    let domain = Some("git".to_owned());
    let amendment = Amendment { domain, ..revoke(files("/ws")) };
    let decider = Decider::new(PROFILE, &[amendment]);
    assert_eq!(
        (decider.file("git", "/ws/a"), decider.file("main", "/ws/a")),
        ("e".into(), "erwx".into())
    );
    let unknown = Amendment { domain: Some("gti".into()), ..revoke(files("/ws")) };
    let error = compile(PROFILE, &[unknown]).unwrap_err();
    assert!(error.contains("did you mean `git`?") && error.contains("main, git"), "{error}");
}

#[test]
fn exactly_the_revoked_endpoint_is_denied() {
    let decider =
        Decider::new(PROFILE, &[revoke(net("10.1.0.0/16:80", &[])), revoke(net("192.0.2.2", &[]))]);
    for (address, port, want) in [
        ("10.1.2.3", 80, false),
        ("10.1.2.3", 81, true),
        ("10.2.2.3", 80, true),
        ("192.0.2.1", 443, true),
        ("192.0.2.2", 443, false),
        ("192.0.2.1", 80, false),
    ] {
        assert_eq!(decider.connects("main", address, port), want, "{address}:{port}");
    }
}

#[test]
fn a_host_name_stands_for_the_addresses_known_to_the_run_and_those_of_now() {
    let now = net("example.org", &["10.9.9.9"]);
    let decider = Decider::new(PROFILE, &[revoke(now.clone())]);
    for address in ["192.0.2.1", "192.0.2.2", "10.9.9.9"] {
        assert!(!decider.connects("main", address, 443), "{address}");
    }
    assert!(decider.connects("main", "10.9.9.8", 443));
    let back = Decider::new(PROFILE, &[revoke(now.clone()), grant(now)]);
    for (address, port, want) in
        [("192.0.2.1", 443, true), ("10.9.9.9", 5, true), ("192.0.2.1", 80, false)]
    {
        assert_eq!(back.connects("main", address, port), want, "{address}:{port}");
    }
}

#[test]
fn a_granted_endpoint_is_reached_and_bound_to_by_nobody() {
    let decider = Decider::new(PROFILE, &[grant(net("198.51.100.7:22/tcp", &[]))]);
    assert!(decider.connects("main", "198.51.100.7", 22));
    assert!(
        !decider.connects("main", "198.51.100.7", 23) && !decider.connects("main", "192.0.2.1", 22)
    );
    let sid = decider.endpoint("198.51.100.7", Protocol::Tcp, 22);
    assert!(!decider.allows("main", sid, "endpoint", "name_bind"));
    assert!(decider.allows("main", decider.sid("main"), "tcp_socket", "create"));
}

#[test]
fn no_amendment_gives_a_family_of_sockets_that_the_profile_gives_to_nobody() {
    let amendments =
        [grant(net("198.51.100.7:53", &[])), grant(AmendedObject::Unix("/run/x".into()))];
    let decider = Decider::new("[files]\nread = ['/usr']\n", &amendments);
    for class in ["tcp_socket", "udp_socket", "unix_dgram_socket"] {
        assert!(!decider.allows("main", decider.sid("main"), class, "create"), "{class}");
    }
    let text = "[network]\nconnect = ['10.0.0.1:53/udp']\n[domains.git]\nexec = ['/g']\nnetwork.connect = ['10.0.0.1:1']";
    let decider = Decider::new(text, &[grant(net("198.51.100.7:53", &[]))]);
    for (class, want) in [("tcp_socket", true), ("udp_socket", true)] {
        assert_eq!(decider.allows("main", decider.sid("main"), class, "create"), want, "{class}");
    }
}

#[test]
fn unix_names_are_taken_and_given_back() {
    let unix = |name: &str| AmendedObject::Unix(name.into());
    let decider = |amendments: &[Amendment]| Decider::new(PROFILE, amendments);
    let path = |decider: &Decider| {
        let sid = decider.paths.sid(Path::new("/run/x.sock"), FileKind::Socket);
        decider.allows("main", sid, "unix_stream_socket", "connectto")
    };
    assert!(path(&decider(&[])) && !path(&decider(&[revoke(unix("/run/*"))])));
    assert!(!path(&decider(&[revoke(files("/run/*"))])));
    assert!(path(&decider(&[revoke(unix("/run/*")), grant(unix("/run/x.sock"))])));
    for (amendments, bus, other, strange) in [
        (vec![], true, true, false),
        (vec![revoke(unix("@bus"))], false, true, false),
        (vec![revoke(unix("@bus*"))], false, false, false),
        (vec![revoke(unix("@bus-*"))], true, false, false),
        (vec![revoke(unix("@*")), grant(unix("@bus"))], true, false, false),
        (vec![grant(unix("@strange"))], true, true, true),
    ] {
        let decider = decider(&amendments);
        let found = ["@bus", "@bus-1", "@strange"].map(|name| decider.abstract_name(name));
        assert_eq!(found, [bus, other, strange], "{amendments:?}");
    }
}

#[test]
fn after_everything_was_taken_a_process_can_still_end_and_nothing_else() {
    let decider = Decider::new(PROFILE, &[revoke(AmendedObject::All)]);
    let own = decider.sid("main");
    for class in Class::all() {
        let targets = ["/ws/a", "/usr/bin/ls", "/elsewhere", "/usr/bin/git", "@bus"]
            .map(|path| decider.paths.sid(Path::new(path), FileKind::Any));
        for tsid in targets.into_iter().chain([
            own,
            decider.sid("git"),
            decider.endpoint("10.1.2.3", Protocol::Tcp, 80),
        ]) {
            let (_, allowed) = decider.allowed("main", tsid, class.name());
            let want = if class == Class::Process && tsid == own { "signal sigkill" } else { "" };
            let names: Vec<&str> = allowed.names(class).collect();
            let mut wanted: Vec<&str> = want.split_whitespace().collect();
            wanted.sort_by_key(|name| class.permissions().iter().position(|known| known == name));
            assert_eq!(names, wanted, "{class} {tsid}");
        }
    }
    let back = Decider::new(
        PROFILE,
        &[revoke(files("/ws")), revoke(AmendedObject::All), grant(AmendedObject::All)],
    );
    assert_eq!(
        (back.file("main", "/ws/a"), back.connects("main", "10.1.2.3", 80)),
        ("erwx".into(), true)
    );
}

#[test]
fn types_keep_their_names_when_amendments_are_added() {
    let amendments = [
        revoke(files("/ws/src")),
        revoke(net("10.1.0.0/16", &[])),
        grant(files("/n10/0/0/0/8")),
        revoke(files("/ws/**/x")),
        revoke(net("*", &[])),
        revoke(AmendedObject::Unix("@*".into())),
        grant(net("192.0.2.2:443", &[])),
        revoke(files("/**")),
    ];
    // By what a type is for: its labelling rule, or the address and port of an endpoint.
    let types = |compiled: &Compiled| -> HashMap<String, String> {
        let server = Server::from_cil(&[("policy", compiled.cil.as_str())]).unwrap();
        let rules = server.label_rules().unwrap();
        let context = |sid| server.sid_to_context(sid).unwrap();
        let files =
            rules.files.iter().filter_map(|rule| Some((rule.path.clone(), context(rule.sid?))));
        let networks = Networks::new(&rules);
        let mut types: HashMap<String, String> = files.collect();
        for (address, port) in [("10.200.0.1", 99), ("192.0.2.1", 443)] {
            let node = networks.node(address.parse().unwrap());
            let question = Question {
                ssid: node,
                tsid: networks.port(Protocol::Tcp, port),
                tclass: Class::Endpoint,
            };
            types.insert(
                format!("{address}:{port}"),
                context(server.compute_create(question, None).unwrap()),
            );
        }
        types
    };
    let mut known = types(&compile(PROFILE, &[]).unwrap());
    let mut missing = 0;
    for length in 1..=amendments.len() {
        let now = types(&compile(PROFILE, &amendments[..length]).unwrap());
        for (object, label) in &known {
            if now.get(object) != Some(label) {
                missing += 1;
                assert!(
                    object.contains(':'),
                    "{length}: {object} was {label}, is {:?}",
                    now.get(object)
                );
            }
        }
        known = now;
    }
    // An address may fall into a group that an amendment cut off; a path may not.
    assert!(missing <= 3, "{missing}");
}

#[test]
fn a_denial_leads_back_to_the_amendment() {
    let amendments = [
        revoke(files("/ws/a b")),
        revoke(AmendedObject::Write("/ws/src".into())),
        revoke(net("10.0.0.0/8:80", &[])),
    ];
    let decider = Decider::new(PROFILE, &amendments);
    let told = |object: &str, permissions: &[&str]| {
        decider.compiled.revoked("main_t", object, permissions).map(|origin| origin.to_string())
    };
    let when = "at 2027-01-15T08:00:00Z";
    let want = format!("revoked by `dewar revoke --file '/ws/a b'` {when}");
    assert_eq!(told(&decider.type_of("/ws/a b"), &["read"]), Some(want.clone()));
    let withheld = decider.compiled.withheld("main_t", &decider.type_of("/ws/a b"));
    assert_eq!(withheld.unwrap().to_string(), want);
    let source = decider.type_of("/ws/src/x");
    let want = format!("revoked by `dewar revoke --file /ws/src --write` {when}");
    assert_eq!(told(&source, &["write"]), Some(want));
    assert_eq!((told(&source, &["read"]), told("usr_t", &["write"])), (None, None));
    let sid = decider.endpoint("10.1.1.1", Protocol::Tcp, 80);
    let context = decider.server.sid_to_context(sid).unwrap();
    let pair = context.split(':').nth(2).unwrap();
    assert!(told(pair, &["name_connect"]).unwrap().contains("--net 10.0.0.0/8:80"));
}

#[test]
fn a_pattern_that_is_wrong_is_pointed_at() {
    for (object, want) in [
        (files("relative"), "absolute path"),
        (files("/a[/b]"), "cannot hold"),
        (net("https://x", &[]), "URL"),
        (net("::1", &[]), "brackets"),
        (AmendedObject::Unix("nowhere".into()), "nowhere"),
    ] {
        let error = compile(PROFILE, &[revoke(object)]).unwrap_err();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn nothing_leads_elsewhere_in_the_place_of_a_directory_in_which_something_is_protected() {
    let text = "[files]\nwrite = ['/ws']\nreadonly = ['/ws/.git/{config,hooks}', '/ws/a/b/*.key']\n\
                hide = ['/ws/**/.env']\ndeny = ['/srv/x/y']\n";
    let plain = Decider::new(text, &[]);
    let revoked = Decider::new(text, &[revoke(AmendedObject::Write("/ws/src/deep/x".into()))]);
    let makes = |decider: &Decider, path: &str| {
        [(FileKind::File, "file"), (FileKind::Symlink, "lnk_file"), (FileKind::Dir, "dir")].map(
            |(kind, class)| {
                let sid = decider.paths.sid(Path::new(path), kind);
                decider.allows("main", sid, class, "create")
            },
        )
    };
    for way in ["/ws/.git", "/ws/a", "/ws/a/b"] {
        assert_eq!(makes(&plain, way), [false, false, true], "{way}");
    }
    for free in ["/ws", "/ws/src", "/ws/.git/index", "/ws/a/c", "/ws/src/deep"] {
        assert_eq!(makes(&plain, free), [true; 3], "{free}");
    }
    assert_eq!(makes(&plain, "/srv/x"), [false; 3]);
    for way in ["/ws/src", "/ws/src/deep", "/ws/.git"] {
        assert_eq!(makes(&revoked, way), [false, false, true], "{way}");
    }
    let way = plain.paths.sid(Path::new("/ws/.git"), FileKind::Symlink);
    assert!(plain.allows("main", way, "lnk_file", "read"));
    assert!(!plain.allows("main", way, "lnk_file", "unlink"));
    let way = plain.paths.sid(Path::new("/ws/a/b"), FileKind::Symlink);
    let context = plain.server.sid_to_context(way).unwrap();
    let why = plain.compiled.withheld("main_t", context.split(':').nth(2).unwrap()).unwrap();
    // Whatever is protected below is a reason.
    assert!(["'/ws/a/b/*.key'", "'/ws/**/.env'"].contains(&why.text.as_str()), "{}", why.text);
}

/// A pattern over few names, so that patterns meet.
fn pattern() -> impl Strategy<Value = String> {
    let component = prop_oneof![
        5 => prop::sample::select(vec!["a", "b", "ab", "ba", ".x"]),
        4 => prop::sample::select(vec!["*", "**", "?", "a*", "*b", "[ab]", "[!a]", "?b", "*a*", "{a,b}"]),
    ];
    prop::collection::vec(component, 1..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

/// Every path of up to three of the names.
fn all_paths() -> Vec<String> {
    let names = ["a", "b", "ab", "ba", ".x", "é", "éb"];
    let mut paths = vec![String::new()];
    for _ in 0..3 {
        let longer: Vec<String> =
            paths.iter().flat_map(|path| names.map(|name| format!("{path}/{name}"))).collect();
        paths.extend(longer);
        paths.sort();
        paths.dedup();
    }
    paths.retain(|path| !path.is_empty());
    paths
}

/// What amendments make of the rights to one path, slow and obvious.
fn expected(base: &str, path: &str, amendments: &[(AmendmentKind, usize, Takes)]) -> String {
    let (mut taken, mut given) = (String::new(), String::new());
    for (kind, list, takes) in amendments {
        if !takes(path) {
            continue;
        }
        let letters = ["rwx", "w", "x"][*list];
        let touches = letters.chars().any(|c| taken.contains(c));
        match kind {
            AmendmentKind::Revoke => {
                taken.push_str(letters);
                given.retain(|c| !letters.contains(c));
            }
            AmendmentKind::Grant if touches => {
                taken.retain(|c| !letters.contains(c) && c != 'r');
            }
            AmendmentKind::Grant => given.push_str(["r", "rw", ""][*list]),
        }
    }
    if base.is_empty() || base == "hidden" {
        return String::new();
    }
    if taken.contains('r') {
        return "e".into();
    }
    "erwx"
        .chars()
        .filter(|c| {
            (base.contains(*c) && !taken.contains(*c))
                || (base != "denied" && given.contains(*c))
                || *c == 'e'
        })
        .collect()
}

type Takes = Box<dyn Fn(&str) -> bool>;

/// Whether a path lies in what a pattern, with everything below, stands for: by an expression of
/// its own.
fn takes(pattern: &str) -> Takes {
    let mut regex = String::from("^");
    let alternatives = pattern.replace("{a,b}", "[ab]");
    let mut parts = alternatives[1..].split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            "**" if parts.peek().is_none() => regex.push_str("/[^/]+"),
            "**" => regex.push_str("(/[^/]+)*"),
            part => {
                let part = part.replace('.', "\\.").replace('*', "[^/]*").replace('?', "[^/]");
                regex.push('/');
                regex.push_str(&part.replace("[!a]", "[^/a]"));
            }
        }
    }
    let regex = regex::Regex::new(&(regex + "(/.*)?$")).unwrap();
    Box::new(move |path| regex.is_match(path))
}

fn list(name: &str, items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("'{item}'")).collect();
    format!("{name} = [{}]\n", quoted.join(", "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_path_has_what_the_profile_grants_without_what_was_revoked(
        lists in prop::collection::vec(prop::collection::vec(pattern(), 0..3), 6),
        changes in prop::collection::vec((any::<bool>(), 0..3usize, pattern()), 1..6),
    ) {
        let names = ["read", "write", "exec", "readonly", "deny", "hide"];
        let text: String = names.iter().zip(&lists).map(|(name, items)| list(&format!("files.{name}"), items)).collect();
        let kind = |revokes| if revokes { AmendmentKind::Revoke } else { AmendmentKind::Grant };
        let object = |list: usize, pattern: &String| match list {
            0 => AmendedObject::Files(pattern.clone()),
            1 => AmendedObject::Write(pattern.clone()),
            _ => AmendedObject::Exec(pattern.clone()),
        };
        let amendments: Vec<Amendment> =
            changes.iter().map(|(revokes, list, pattern)| amendment(kind(*revokes), object(*list, pattern))).collect();
        let meaning: Vec<(AmendmentKind, usize, Takes)> =
            changes.iter().map(|(revokes, list, pattern)| (kind(*revokes), *list, takes(pattern))).collect();
        let plain = Decider::new(&text, &[]);
        // Globs that are too much across each other are refused, with a reason.
        let Ok(_) = compile(&text, &amendments) else { return Ok(()) };
        let amended = Decider::new(&text, &amendments);
        for path in all_paths() {
            let base = plain.file("main", &path);
            // A path that the profile denies looks like one that it is silent about.
            let denied = plain.compiled.withheld("main_t", &plain.type_of(&path)).is_some();
            let base = if base == "e" && denied { "denied".to_owned() } else { base };
            prop_assert_eq!(amended.file("main", &path), expected(&base, &path, &meaning), "{} in {}", path, text);
        }
    }
}

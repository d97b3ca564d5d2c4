//! Plugins under a policy: what they may, what they may not, and what happens when they fail.

use flask::{
    AccessVector, Class, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer,
    Seqno, Sid, Unreachable, perm::plugin as perm,
};
use plugin_host::{Cache, CallFailure, Limits, LoadError, PluginHost, PluginSpec, Target};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

/// Contexts are numbers from 100; what is allowed can change.
struct Server {
    allowed: Mutex<AccessVector>,
    seqno: AtomicU32,
}

impl Server {
    fn new() -> Arc<Self> {
        Arc::new(Self { allowed: Mutex::new(AccessVector::ALL), seqno: AtomicU32::new(1) })
    }

    fn deny(&self, what: AccessVector) -> Seqno {
        *self.allowed.lock().unwrap() = AccessVector(!what.0);
        Seqno(self.seqno.fetch_add(1, Relaxed) + 1)
    }
}

impl SecurityServer for Server {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(Seqno(self.seqno.load(Relaxed)))
    }
    fn compute_av(&self, _: Question) -> Result<Decision, Unreachable> {
        let allowed = *self.allowed.lock().unwrap();
        Ok(Decision { allowed, seqno: self.seqno()?, ..Decision::DENY_ALL })
    }
    fn compute_create(&self, q: Question, _: Option<&str>) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        let number = context.parse().ok().and_then(Sid::new);
        number.ok_or_else(|| LabelError::InvalidContext(context.to_owned()))
    }
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        Ok(sid.to_string())
    }
    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        Ok(LabelRules::default())
    }
    fn explain(&self, _: Question, _: AccessVector) -> Result<Explanation, Unreachable> {
        Ok(Explanation { reason: "no rule grants it".into(), ..Explanation::default() })
    }
}

fn host() -> (Arc<Server>, PluginHost) {
    let server = Server::new();
    let host = PluginHost::new(Arc::clone(&server) as Arc<dyn SecurityServer>, sid(7)).unwrap();
    (server, host)
}

fn sid(number: u32) -> Sid {
    Sid::new(number).unwrap()
}

/// With as much time as a busy machine may need.
fn spec<'s>(name: &'s str, text: &'s str) -> PluginSpec<'s> {
    let limits = Limits { call_time: Duration::from_secs(60), ..Limits::default() };
    PluginSpec { limits, ..PluginSpec::new(name, "100", text) }
}

const UPPER: &str = "long handle(const char *in, long n, char *out, long room) {
    long i;
    for (i = 0; i < n && i < room; i++) out[i] = in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i];
    return i;
}";

const COUNT: &str = "long handle(const char *in, long n, char *out, long room) {
    long count = 0;
    if (host_get(\"n\", 1, &count, sizeof count) < -1) return 0;
    count++;
    int set = host_set(\"n\", 1, &count, sizeof count), log = host_log(\"called\", 6);
    out[0] = '0' + count; out[1] = set ? 'd' : 's'; out[2] = log == -13 ? 'd' : 'l';
    return 3;
}";

#[test]
fn a_plugin_answers_requests_of_every_size() {
    let (_, host) = host();
    host.load(&spec("upper", UPPER)).unwrap();
    for size in [0, 1, 9_000, 270_000, 3_300_000] {
        assert_eq!(host.call("upper", &vec![b'x'; size]), Ok(vec![b'X'; size]), "{size}");
    }
    assert_eq!(host.list()[0].stats.calls, 5);
}

#[test]
fn a_denied_host_call_is_an_error_inside_and_a_record_outside() {
    let (server, host) = host();
    host.load(&spec("count", COUNT)).unwrap();
    assert_eq!(host.call("count", b""), Ok(b"1sl".to_vec()));
    host.reset(server.deny(perm::LOG));
    assert_eq!(host.call("count", b""), Ok(b"2sd".to_vec()));
    assert_eq!(host.log("count"), ["called"]);
    let denials = host.denials();
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0].permissions().collect::<Vec<_>>(), ["log"]);
    assert_eq!(
        denials[0].question,
        Question { ssid: sid(100), tsid: sid(100), tclass: Class::Plugin }
    );
    assert_eq!(denials[0].explain(&*server).unwrap().reason, "no rule grants it");
}

#[test]
fn loading_and_calling_are_permissions_of_the_host() {
    let (server, host) = host();
    host.load(&spec("upper", UPPER)).unwrap();
    host.reset(server.deny(perm::CALL | perm::LOAD));
    assert_eq!(host.call("upper", b"a"), Err(CallFailure::Denied));
    assert!(matches!(host.load(&spec("other", UPPER)), Err(LoadError::Denied { .. })));
    assert!(matches!(host.replace(&spec("upper", UPPER)), Err(LoadError::Denied { .. })));
}

#[test]
fn without_read_request_and_write_reply_nothing_gets_in_or_out() {
    let (server, host) = host();
    let text = "long handle(const char *in, long n, char *out, long room) { out[0] = n < 0 ? '-' : *in; return 1; }";
    host.load(&spec("peek", text)).unwrap();
    assert_eq!(host.call("peek", b"secret"), Ok(b"s".to_vec()));
    host.reset(server.deny(perm::READ_REQUEST));
    assert_eq!(host.call("peek", b"secret"), Ok(b"-".to_vec()));
    host.reset(server.deny(perm::WRITE_REPLY));
    assert_eq!(host.call("peek", b"secret"), Ok(Vec::new()));
}

#[test]
fn what_a_plugin_keeps_survives_its_replacement_and_not_its_unloading() {
    let (_, host) = host();
    host.load(&spec("count", COUNT)).unwrap();
    assert_eq!(host.call("count", b""), Ok(b"1sl".to_vec()));
    host.replace(&spec("count", COUNT)).unwrap();
    assert_eq!(host.call("count", b""), Ok(b"2sl".to_vec()));
    assert_eq!(host.list()[0].version, 2);
    assert!(host.unload("count"));
    assert_eq!(host.call("count", b""), Err(CallFailure::Unknown("count".into())));
    host.load(&spec("count", COUNT)).unwrap();
    assert_eq!(host.call("count", b""), Ok(b"1sl".to_vec()));
}

#[test]
fn repeated_faults_lead_to_quarantine_until_replacement() {
    let (_, host) = host();
    let text = "long handle(const char *in, long n, char *out, long room) { return 1 / n; }";
    let bad = spec("bad", text);
    host.load(&PluginSpec { limits: Limits { faults: 3, ..bad.limits }, ..bad }).unwrap();
    for _ in 0..3 {
        assert!(matches!(host.call("bad", b""), Err(CallFailure::Fault(_))));
    }
    assert_eq!(host.call("bad", b"x"), Err(CallFailure::Quarantined));
    assert!(host.list()[0].quarantined);
    host.replace(&spec("bad", UPPER)).unwrap();
    assert_eq!(host.call("bad", b"x"), Ok(b"X".to_vec()));
}

#[test]
fn a_text_that_does_not_fit_is_refused_and_the_old_code_stays() {
    let (_, host) = host();
    host.load(&spec("upper", UPPER)).unwrap();
    let refused = [
        "long handle(const char *in, long n) { return 0; }",
        "long other(void) { return 0; }",
        "long nowhere(int n); long handle(const char *in, long n, char *out, long room) { return nowhere(1); }",
    ];
    for text in refused {
        let result = host.replace(&spec("upper", text));
        assert!(matches!(result, Err(LoadError::Interface { .. })), "{text}: {result:?}");
    }
    assert!(matches!(host.replace(&spec("upper", "long handle(")), Err(LoadError::Text(_))));
    let label = PluginSpec { context: "nonsense", ..spec("upper", UPPER) };
    assert!(matches!(host.replace(&label), Err(LoadError::Label { .. })));
    assert_eq!(host.call("upper", b"a"), Ok(b"A".to_vec()));
}

#[test]
fn a_session_ends_with_its_plugin_and_outlives_a_fault() {
    let (_, host) = host();
    let text =
        "long handle(const char *in, long n, char *out, long room) { out[0] = 1 / n; return 1; }";
    host.load(&spec("one", text)).unwrap();
    let mut session = host.session("one").unwrap();
    session.fill(b"x").unwrap();
    assert_eq!((session.run(), session.reply(1)), (Ok(1), &[1][..]));
    session.fill(b"").unwrap();
    assert!(matches!(session.run(), Err(CallFailure::Fault(_))));
    session.fill(b"x").unwrap();
    assert_eq!(session.run(), Ok(1));
    host.unload("one");
    assert_eq!(session.run(), Err(CallFailure::Unknown("one".into())));
}

#[test]
fn no_call_fails_while_the_plugin_is_replaced_under_load() {
    // Replacements find their code in the cache, so that there can be many.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let cache = Cache::open(dir.path(), Cache::DEFAULT_BYTES).unwrap();
    let host = PluginHost::with_cache(Server::new(), sid(7), Some(cache)).unwrap();
    let texts: Vec<String> = (0..2)
        .map(|n| format!("long handle(const char *in, long n, char *out, long room) {{
            long s = 0; for (int i = 0; i < 2000; i++) s += i ^ n; out[0] = '0' + {n}; out[1] = s ? '0' + {n} : 'x'; return 2; }}"))
        .collect();
    host.load(&spec("swap", &texts[0])).unwrap();
    let replacements: usize =
        std::env::var("PLUGIN_REPLACEMENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let stop = AtomicBool::new(false);
    let calls: usize = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut calls = 0;
                    while !stop.load(Relaxed) {
                        let reply = host.call("swap", b"").unwrap();
                        assert!(reply == b"00" || reply == b"11", "{reply:?}");
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        for n in 0..replacements {
            host.replace(&spec("swap", &texts[(n + 1) % 2])).unwrap();
        }
        stop.store(true, Relaxed);
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    println!("{replacements} replacements, {calls} calls, 0 failed");
    assert_eq!(host.list()[0].stats.faults, 0);
}

#[test]
fn idle_instances_of_some_plugins_keep_no_other_from_being_called() {
    let (_server, host) = host();
    let names: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
    for name in &names {
        host.load(&spec(name, UPPER)).unwrap_or_else(|error| panic!("{name}: {error}"));
        // So many calls at a time, once.
        let sessions: Vec<_> = (0..16).map(|_| host.session(name).unwrap()).collect();
        drop(sessions);
    }
    let all: Vec<_> = names.iter().map(|name| host.call(name, b"")).collect();
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

#[test]
fn what_a_plugin_has_kept_is_for_its_label_alone() {
    let (_server, host) = host();
    host.load(&spec("upper", UPPER)).unwrap();
    let other = PluginSpec::new("upper", "101", UPPER);
    assert!(matches!(host.replace(&other), Err(LoadError::Name(_))));
    assert_eq!(host.list()[0].version, 1);
    host.replace(&spec("upper", UPPER)).unwrap();
    assert!(host.unload("upper"));
    host.load(&other).unwrap();
}

/// A web server puts the head of an answer there, with what other plugins have added for a client.
#[test]
fn what_was_sent_in_front_of_a_reply_is_not_there_in_the_next_call() {
    const LOOKS: &str = "long handle(const char *in, long n, char *out, long room) {
        for (long i = 0; i < 16; i++) out[i] = out[i - 16];
        return 16;
    }";
    let (_, host) = host();
    for target in [Target::Isolated, Target::Native] {
        host.load(&PluginSpec { target, ..spec(target.name(), LOOKS) }).unwrap();
        let mut session = host.session(target.name()).unwrap();
        for _ in 0..2 {
            session.fill(b"x").unwrap();
            assert_eq!((session.run(), session.reply(16)), (Ok(16), &[0; 16][..]), "{target}");
            assert!(session.reply_behind(b"Set-Cookie: 12345678", 16).is_some(), "{target}");
        }
    }
}

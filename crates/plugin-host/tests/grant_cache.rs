//! What a session keeps of the policy's answers ends with the policy that gave them.

mod common;

use common::{host_of, reload, server, spec};
use plugin_host::{CallFailure, PluginSpec};

const CONTEXT: &str = "dewar_u:dewar_r:guest_t";
/// Tells whether it sees its request, and whether it may log.
const TELL: &str = "long handle(const char *in, long n, char *out, long room) {
    out[0] = n == 1 && in[0] == 'x' ? 'r' : '-'; out[1] = host_log(in, 0) == 0 ? 'l' : '-'; return 2; }";

fn rules(without: &str) -> String {
    let own = ["read_request", "write_reply", "log"].map(|p| if p == without { "" } else { p });
    let call = if without == "call" { "" } else { "call" };
    format!(
        "(type guest_t) (roletype dewar_r guest_t)
         (allow host_t guest_t (plugin (load {call})))
         (allow guest_t self (plugin (get_state {})))",
        own.join(" ")
    )
}

#[test]
fn a_permission_taken_back_ends_for_open_sessions_and_comes_back() {
    let server = server(&rules(""));
    let host = host_of(&server, None);
    host.load(&PluginSpec { context: CONTEXT, ..spec("guest", TELL) }).unwrap();
    let mut session = host.session("guest").unwrap();
    for (without, want) in [
        ("read_request", Ok("-l")),
        ("log", Ok("r-")),
        ("write_reply", Ok("")),
        ("call", Err(CallFailure::Denied)),
    ] {
        for (policy, want) in [("", Ok("rl")), (without, want.clone()), ("", Ok("rl"))] {
            reload(&server, &host, &rules(policy));
            session.fill(b"x").unwrap();
            for call in ["the first", "the second"] {
                let got = session.run();
                let got = got.map(|len| String::from_utf8_lossy(session.reply(len)).into_owned());
                assert_eq!(got, want.clone().map(str::to_owned), "{call} without `{policy}`");
            }
        }
    }
    let denied: Vec<_> =
        host.denials().iter().flat_map(|d| d.permissions().collect::<Vec<_>>()).collect();
    assert_eq!(denied, ["read_request", "log", "write_reply", "call"]);
}

#[test]
fn what_a_session_asks_is_counted_when_it_ends() {
    let server = server("");
    let host = host_of(&server, None);
    host.load(&spec("tell", TELL)).unwrap();
    let mut session = host.session("tell").unwrap();
    session.fill(b"x").unwrap();
    let before = host.avc_stats().queries();
    (0..10).for_each(|_| drop(session.run()));
    drop(session);
    // Each call asks for call, read_request, log and write_reply.
    assert_eq!(host.avc_stats().queries() - before, 40);
}

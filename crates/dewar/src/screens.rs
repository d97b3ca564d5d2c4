//! Screens as people see them, at 80 and at 120 columns, with and without colours: kept in
//! `snapshots`, and reviewed when they change (`INSTA_UPDATE=always` writes them anew).

use crate::run::RunRecord;
use serde_json::json;
use std::path::Path;

/// Compares what `draw` draws at both widths with what is kept as `name`. No line is wider.
pub(crate) fn screen(name: &str, draw: impl Fn(usize) -> String) {
    test_support::screen(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots")), name, draw);
}

/// What was kept of a run of an agent that was denied this and that.
pub(crate) fn record() -> RunRecord {
    let denial =
        |comm: &str, tclass: &str, missing: &[&str], object: String, more: serde_json::Value| {
            let mut denial = json!({
                "comm": comm, "program": format!("/usr/bin/{comm}"), "call": "openat",
                "scontext": "dewar_u:dewar_r:main_t", "tcontext": "dewar_u:object_r:home_t",
                "tclass": tclass, "missing": missing, "object": object, "count": 1, "pid": 7,
                "reason": "no rule grants it", "profile_rules": [],
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                denial[key] = value.clone();
            }
            denial
        };
    let mut denials = vec![
        denial(
            "cat",
            "file",
            &["read", "open"],
            "/home/me/.ssh/id_ed25519".into(),
            json!({
                "tcontext": "dewar_u:object_r:hidden_t", "count": 3,
                "reason": "the profile hides it",
                "profile_rules": ["profile workspace:63: \"${home}/.ssh\""],
            }),
        ),
        denial(
            "curl",
            "endpoint",
            &["name_connect"],
            "203.0.113.7:443".into(),
            json!({
                "call": "connect", "tcontext": "dewar_u:object_r:node_t",
                "rules": ["(allow main_t port_t (endpoint (name_bind)))    profile agent (as CIL):812"],
                "would_allow": "(allow main_t node_t (endpoint (name_connect)))",
            }),
        ),
        denial(
            "git",
            "file",
            &["create"],
            "/home/me/project/.git/hooks/post-checkout".into(),
            json!({
                "tcontext": "dewar_u:object_r:workspace_git_guarded_t",
                "reason": "the guard on names that programs outside trust",
            }),
        ),
        denial(
            "mount",
            "",
            &["mount"],
            "tmpfs on /mnt".into(),
            json!({
                "call": "mount", "refused_by": "the system-call filter",
                "reason": "what no profile grants: a mount would change the view that everything is decided by",
                "instead": "write below ${workspace} or ${tmp}",
            }),
        ),
    ];
    denials.extend((0..40).map(|n| {
        let object = format!("/home/me/other-project/node_modules/left-pad/file-{n}.js");
        denial("node", "file", &["read", "open"], object, json!({}))
    }));
    let deed = |kind: &str, comm: &str, object: &str, count| {
        json!({ "kind": kind, "comm": comm, "object": object, "count": count,
                "first": 1_790_000_000.5, "last": 1_790_000_060.0 })
    };
    let mut deeds = vec![
        deed("executed", "sh", "/usr/bin/node", 2),
        deed("executed", "node", "/usr/bin/git", 1),
        deed("removed", "git", "/home/me/project/.git/index.lock", 4),
        deed("contacted", "node", "198.51.100.4:443", 12),
        deed(
            "contacted",
            "node",
            "unix:/run/some/very/long/path/to/a/socket/that/a/server/listens/at/within/the/home/of/someone",
            1,
        ),
    ];
    deeds.extend(
        (0..30).map(|n| deed("wrote", "node", &format!("/home/me/project/dist/asset-{n}.js"), 1)),
    );
    let holder = json!({
        "pid": 12, "comm": "node", "held": { "descriptor": 7 },
        "object": "/home/me/project/secrets/key", "lost": ["read", "write"], "action": "replaced",
        "reason": "", "after": { "secs": 0, "nanos": 1_500_000 },
    });
    let took = json!({ "secs": 0, "nanos": 2_300_000 });
    serde_json::from_value(json!({
        "id": "4k7m2p9x", "name": "nightly", "started": 1_790_000_000.0, "time": 1_790_000_061.5,
        "mode": "all", "profile": "profile agent", "status": 3,
        "command": ["node", "agent.js", "--task", "make the tests pass and tell what you did, at length and in detail, please"],
        "decisions": [
            { "manager": "file", "queries": 1_234_567, "hint": 1_200_000, "cache": 34_000, "server": 567 },
            { "manager": "process", "queries": 120, "hint": 0, "cache": 100, "server": 20 },
            { "manager": "socket", "queries": 34, "hint": 0, "cache": 30, "server": 4 },
        ],
        "spent": [
            { "manager": "file", "call": "openat", "times": 1_100_000, "seconds": 9.5 },
            { "manager": "process", "call": "execve", "times": 3, "seconds": 0.004 },
        ],
        "denials": denials, "dropped": 120,
        "lacking": [["dac_override", 2]],
        "unrecorded": [
            "the system-call filter: what programs try and do without (io_uring, clone3, Landlock of their own, unknown calls, …)",
            "missing capabilities: what the kernel lets only the machine's root do",
        ],
        "changes": [{
            "when": { "secs_since_epoch": 1_790_000_030, "nanos_since_epoch": 0 },
            "what": "dewar revoke 4k7m2p9x --file '/home/me/project/secrets/**'",
            "outcome": { "receipt": {
                "seqno": 2, "complete": true, "processes": 5, "threads": 11, "prepared": took,
                "stopped": took, "took": took, "holders": [holder], "out_of_reach": [],
            } },
        }],
        "guarded": true,
        "planted": [
            { "path": "/home/me/project/.vscode/tasks.json", "state": "refused", "kind": "name",
              "runs": "an editor that opens the folder", "when_built": false },
            { "path": "/home/me/project/Makefile", "state": "changed", "kind": "name",
              "runs": "make", "when_built": true },
        ],
        "runs_inside": 2,
        "deeds": deeds,
        "deeds_more": [],
    }))
    .expect("a record")
}

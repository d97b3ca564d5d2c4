//! What the command cannot do, and what others cannot do to its keepers.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;

use crate::stage::{Stage, end_of};
use crate::user::{User, program};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    nothing_is_left_of_root,
    granted_capabilities_are_the_only_ones,
    pid_1_cannot_be_traced_or_killed,
    the_outside_is_not_among_the_processes,
    there_is_no_network_but_loopback,
    message_queues_and_shared_memory_are_its_own,
    the_envelope_refuses_writing,
    signals_do_not_leave_the_envelope,
    without_namespaces_the_envelope_holds,
    kernel_settings_are_read_only,
    a_masked_proc_refuses_the_pid_namespace,
    the_keepers_cannot_be_read,
    root_without_capabilities_is_bound_by_permissions,
    the_monitor_can_do_no_more_than_the_sandbox,
    a_further_namespace_uncovers_nothing,
    a_further_namespace_reaches_no_outer_proc,
];

fn nothing_is_left_of_root(stage: &Stage) {
    for plan in [json!({}), json!({"namespaces": "none"})] {
        let ran = stage.run(&plan, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; setpriv --dump | grep -i securebits");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(ran.out.contains(&format!("{set}:\t0000000000000000")), "{plan} {ran:?}");
        }
        let bounded = stage.user == User::Root || plan != json!({"namespaces": "none"});
        assert_eq!(ran.out.contains("CapBnd:\t0000000000000000"), bounded, "{plan} {ran:?}");
        assert_eq!(ran.out.contains("noroot_locked"), bounded, "{plan} {ran:?}");
        assert!(ran.out.contains("NoNewPrivs:\t1") && ran.out.contains("Seccomp:\t2"), "{ran:?}");
    }
}

fn granted_capabilities_are_the_only_ones(stage: &Stage) {
    // CAP_CHOWN, CAP_NET_RAW: bits 0 and 13.
    let ran = stage.run(&json!({"capabilities": 0x2001}), "grep ^Cap /proc/self/status");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(ran.out.contains(&format!("{set}:\t0000000000002001")), "{ran:?}");
    }
}

fn pid_1_cannot_be_traced_or_killed(stage: &Stage) {
    let script = "kill -9 1; kill -INT 1; kill -STOP 1; \
        head -c 1 /proc/1/mem; cat /proc/1/environ; readlink /proc/1/fd/0 /proc/1/fd/3 /proc/1/root; \
        test -n \"$(ls /proc/1/cwd/ 2>/dev/null)\" && echo looked; echo alive";
    let ran = stage.run(&json!({}), script);
    assert_eq!(ran.out, "alive\n", "{ran:?}");
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(ran.err.contains("environ"), "{ran:?}");
}

fn the_outside_is_not_among_the_processes(stage: &Stage) {
    let ran = stage
        .run(&json!({}), "cd /proc; echo [0-9]*; readlink /proc/self/exe >/dev/null && echo own");
    let mut lines = ran.out.lines();
    assert_eq!(lines.next(), Some("1 2"), "{ran:?}");
    assert_eq!(lines.next(), Some("own"), "{ran:?}");
}

fn there_is_no_network_but_loopback(stage: &Stage) {
    let script = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'";
    assert_eq!(stage.run(&json!({}), script).out, "lo");
    let up = stage.run(&json!({}), "cat /proc/net/if_inet6 /proc/net/fib_trie");
    assert!(up.out.contains("127.0.0.1"), "loopback is down: {up:?}");
}

fn message_queues_and_shared_memory_are_its_own(stage: &Stage) {
    let outside = std::fs::read_link("/proc/self/ns/ipc").expect("a namespace");
    let ran = stage.run(
        &json!({"view": {"private_tmp": true}}),
        "readlink /proc/self/ns/ipc; ls -A /dev/mqueue /dev/shm 2>/dev/null | grep -v : | tr -d '\\n'",
    );
    assert_ne!(ran.out.lines().next(), outside.to_str(), "{ran:?}");
    assert_eq!(ran.out.lines().nth(1), None, "{ran:?}");
}

fn the_envelope_refuses_writing(stage: &Stage) {
    stage.file("data", "kept");
    for plan in [json!({"envelope": true}), json!({"envelope": true, "namespaces": "none"})] {
        let ran = stage
            .run(&plan, "cat data; echo new > data; true > other; echo > /dev/null && echo dev");
        assert_eq!(ran.out, "keptdev\n", "{ran:?}");
        assert_eq!(ran.err.matches("Permission denied").count(), 2, "{ran:?}");
    }
    assert!(!stage.path().join("other").exists());
}

fn signals_do_not_leave_the_envelope(stage: &Stage) {
    // The parent of the shell is init, which only the envelope protects without a pid namespace.
    let plan = json!({"envelope": true, "namespaces": "none"});
    let ran = stage.run(&plan, "kill -9 $PPID; echo alive");
    assert_eq!(ran.out, "alive\n", "{ran:?}");
    assert!(ran.err.contains("not permitted"), "{ran:?}");
}

fn without_namespaces_the_envelope_holds(stage: &Stage) {
    let plan = json!({"envelope": true, "namespaces": "none"});
    let ran = stage.run(&plan, "readlink /proc/self/ns/user /proc/self/ns/mnt /proc/self/ns/pid");
    let own = ["user", "mnt", "pid"].map(|name| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}")).expect("a namespace");
        format!("{}\n", link.display())
    });
    assert_eq!(ran.out, own.concat());
}

fn kernel_settings_are_read_only(stage: &Stage) {
    let script = "for f in kernel/core_pattern kernel/hostname vm/swappiness; do \
        cat /proc/sys/$f >/dev/null && ! { echo x > /proc/sys/$f; } 2>/dev/null && echo kept; done";
    assert_eq!(stage.run(&json!({}), script).out, "kept\nkept\nkept\n");
}

/// Containers cover parts of `/proc`, and the kernel then refuses a new one to those without
/// privilege: Dewar must say so, and must work without a pid namespace.
fn a_masked_proc_refuses_the_pid_namespace(stage: &Stage) {
    if stage.user == User::Root {
        return;
    }
    let masked = |plan: &serde_json::Value| {
        let inner = format!(
            "mount -t tmpfs none /proc/sys && exec \"$0\" --as-dewar '{plan}' sh -c 'echo inside'"
        );
        let mut command = stage.command("/usr/bin/unshare".as_ref());
        command.args(["-rm", "sh", "-c", &inner]).arg(program());
        crate::stage::run(command)
    };
    // In this user namespace the test is root, so it takes a further one to lose the privilege.
    let ran = masked(&json!({"user": true}));
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert!(ran.err.contains("mount a new /proc"), "{ran:?}");
    let ran = masked(&json!({"user": true, "pid": false}));
    assert_eq!(ran.out, "inside\n", "{ran:?}");
}

fn the_keepers_cannot_be_read(stage: &Stage) {
    // Without a pid namespace init and the monitor are in sight.
    let script = "monitor=$(cut -d' ' -f4 /proc/$PPID/stat); for keeper in $PPID $monitor; do \
        head -c 1 /proc/$keeper/mem; cat /proc/$keeper/environ /proc/$keeper/maps; \
        readlink /proc/$keeper/fd/3 /proc/$keeper/root /proc/$keeper/exe; done; echo end";
    let ran = stage.run(&json!({"namespaces": "none"}), script);
    assert_eq!(ran.out, "end\n", "{ran:?}");
}

fn root_without_capabilities_is_bound_by_permissions(stage: &Stage) {
    use std::os::unix::fs::PermissionsExt;
    let file = stage.file("shut", "secret");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).expect("chmod");
    let ran = stage.run(&json!({}), "cat shut; chown 1:1 shut; mknod device c 1 3; echo end");
    assert_eq!(ran.out, "end\n", "{ran:?}");
    for refused in ["cat", "chown", "mknod"] {
        assert!(ran.err.contains(refused), "{refused}: {ran:?}");
    }
}

fn the_monitor_can_do_no_more_than_the_sandbox(stage: &Stage) {
    for plan in [json!({}), json!({"namespaces": "none"})] {
        let mut command = stage.dewar(&plan, &["sh", "-c", "echo ready; exec sleep 60"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("start");
        child.stdout.take().expect("stdout").read_exact(&mut [0; 6]).expect("ready");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        child.kill().expect("kill");
        end_of(&mut child);
        let status = status.expect("its status");
        let set = |name: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number")
        };
        assert_eq!(set("CapEff:"), 0, "{plan} {status}");
        // CAP_DAC_READ_SEARCH, CAP_KILL and CAP_SYS_PTRACE in reserve.
        assert_eq!(set("CapPrm:") & !(1 << 2 | 1 << 5 | 1 << 19), 0, "{plan} {status}");
        assert_eq!(set("CapInh:") | set("CapAmb:"), 0, "{plan} {status}");
    }
}

fn a_further_namespace_uncovers_nothing(stage: &Stage) {
    if stage.user == User::Root {
        // The kernel lets nobody map uid 0 without CAP_SETFCAP, so there is no further namespace.
        let ran = stage.run(&json!({}), "unshare -Urm true");
        assert!(!ran.status.success(), "{ran:?}");
        return;
    }
    stage.directory("home");
    stage.file("home/secret", "secret");
    let denied = stage.file("denied", "secret");
    let plan = json!({"view": {"absent": [stage.path().join("home")], "denied": [denied]}});
    // A user namespace of one's own gives all capabilities in it.
    let script = "unshare -Urm sh -c 'umount -l home; umount home; umount denied; umount -l denied; \
        mount --bind / /mnt; cat home/secret denied /mnt/$PWD/home/secret /mnt/$PWD/denied'; echo end";
    let ran = stage.run(&plan, script);
    assert_eq!(ran.out, "end\n", "{ran:?}");
    assert!(ran.err.contains("umount"), "not even tried: {ran:?}");
}

fn a_further_namespace_reaches_no_outer_proc(stage: &Stage) {
    if stage.user == User::Root {
        // The kernel lets nobody map uid 0 without CAP_SETFCAP, so there is no further namespace.
        let ran = stage.run(&json!({}), "unshare -Urm true");
        assert!(!ran.status.success(), "{ran:?}");
        return;
    }
    let script = "unshare -Urm sh -c 'umount -l /proc; umount /proc; ls -d /proc/[0-9]* | wc -l'";
    let ran = stage.run(&json!({}), script);
    let visible: u32 = ran.out.trim().parse().unwrap_or(99);
    assert!(visible < 10, "{ran:?}");
}

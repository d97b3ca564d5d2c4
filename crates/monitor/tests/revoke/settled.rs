//! Changes of policy that the kernel, told at the start of a run, would not follow: by booleans, as
//! a daemon sets them.

use crate::{
    Case, cases,
    stage::{Booleans, Ran, Stage},
};
use serde_json::json;
use std::os::unix::process::ExitStatusExt as _;

pub(crate) const CASES: &[Case] = cases![
    datagrams_that_nobody_would_decide_are_not_given,
    datagrams_that_are_decided_are_taken,
    listening_that_nobody_would_decide_is_not_given,
    listening_that_is_decided_is_taken,
    forks_that_nobody_decides_are_not_taken,
    forks_that_nobody_decides_are_taken_by_killing,
    forks_that_are_decided_are_taken_and_given,
    unix_streams_that_nobody_decides_are_not_taken,
    programs_that_the_kernel_does_not_execute_are_not_given,
    capabilities_are_neither_given_nor_taken,
    names_that_nobody_would_hide_are_not_hidden,
    nothing_acts_after_everything_was_taken,
];

/// A run that shares the network, with TCP to one port.
const ONE_PORT: &str = "[network]\nconnect = ['127.0.0.1:9']\n";

/// Every endpoint.
const ENDPOINTS: &str = "(allow main_t node_t (endpoint (name_bind name_connect sendto)))
    (allow main_t port_t (endpoint (name_bind name_connect sendto)))";

fn gate(on: bool, rules: &str) -> String {
    format!("(boolean gate {on}) (booleanif gate (true {rules})) {ENDPOINTS}")
}

/// The change was refused before anything had happened, and names what it is about.
fn refused(ran: &Ran, parts: &[&str]) {
    let error = ran.receipt["error"].as_str().unwrap_or_default();
    assert!(
        parts.iter().all(|part| error.contains(part)),
        "{parts:?}: {} {:?}",
        ran.receipt,
        ran.output
    );
}

fn datagrams_that_nobody_would_decide_are_not_given(stage: &Stage) {
    let script = r#"
change()
def send():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 5))
say("send", send)
"#;
    let added =
        "(boolean gate false) (booleanif gate (true (allow main_t self (udp_socket (create)))))";
    let ran = stage.set(
        Booleans { added, profile: ONE_PORT, set: &[("gate", true)], ..Booleans::default() },
        script,
    );
    refused(&ran, &["cannot be given while it runs", "udp_socket"]);
    assert_eq!(ran.said, json!({ "send": "EACCES" }), "{:?}", ran.output);
}

fn datagrams_that_are_decided_are_taken(stage: &Stage) {
    let script = r#"
held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
say("before", lambda: held.sendto(b"x", ("127.0.0.1", 5)))
change()
say("held", lambda: held.sendto(b"x", ("127.0.0.1", 5)))
say("new", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) and "made")
"#;
    let added = gate(true, "(allow main_t self (udp_socket (create)))");
    let ran = stage.set(
        Booleans {
            added: &added,
            profile: ONE_PORT,
            set: &[("gate", false)],
            ..Booleans::default()
        },
        script,
    );
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.said["before"], 1, "{:?}", ran.output);
    assert_eq!(ran.said["new"], "EACCES");
    assert_ne!(ran.said["held"], 1, "a socket of a class that was taken still sends");
}

const LISTEN: &str = r#"
def listen():
    global listening
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    return listening.listen(5)
"#;

fn listening_that_nobody_would_decide_is_not_given(stage: &Stage) {
    let script = format!("{LISTEN}change()\nsay('listen', listen)\n");
    let added =
        "(boolean gate false) (booleanif gate (true (allow main_t self (tcp_socket (create)))))";
    // Without a host of its own the profile has no TCP at all.
    let ran = stage.set(Booleans { added, set: &[("gate", true)], ..Booleans::default() }, &script);
    refused(&ran, &["cannot be given while it runs", "tcp_socket"]);
    assert_eq!(ran.said, json!({ "listen": "EACCES" }), "{:?}", ran.output);
}

fn listening_that_is_decided_is_taken(stage: &Stage) {
    let script = format!(
        "{LISTEN}say('before', listen)
port = listening.getsockname()[1]
change()
def connect():
    return socket.create_connection(('127.0.0.1', port), 5) and 'connected'
say('connect', connect)
say('new', listen)
"
    );
    let added = gate(true, "(allow main_t self (tcp_socket (listen)))");
    // The rule for the class itself lets it listen, too.
    let without = (
        "self (tcp_socket (create bind connect listen))",
        "self (tcp_socket (create bind connect))",
    );
    let ran = stage.set(
        Booleans {
            added: &added,
            profile: ONE_PORT,
            set: &[("gate", false)],
            without: Some(without),
            ..Booleans::default()
        },
        &script,
    );
    assert!(ran.is_complete(), "{} {:?}", ran.receipt, ran.output);
    assert_eq!(
        ran.said,
        json!({ "before": null, "connect": "ECONNREFUSED", "new": "EACCES" }),
        "{:?}",
        ran.output
    );
    assert_eq!(ran.actions("listener").len(), 1, "{}", ran.receipt);
}

const FORK: &str = r#"
def fork():
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"#;

/// `fork` is granted by a boolean alone.
const FORKS: (&str, &str) = ("(process (fork ", "(process (");

fn forks(on: bool) -> String {
    format!("(boolean gate {on}) (booleanif gate (true (allow main_t self (process (fork)))))")
}

fn forks_that_nobody_decides_are_not_taken(stage: &Stage) {
    let script = format!("{FORK}say('before', fork)\nchange()\nsay('after', fork)\n");
    let (added, without) = (forks(true), Some(FORKS));
    let ran = stage.set(
        Booleans { added: &added, set: &[("gate", false)], without, ..Booleans::default() },
        &script,
    );
    refused(&ran, &["cannot be taken back while it runs", "fork", "kill"]);
    assert_eq!(ran.said, json!({ "before": 7, "after": 7 }), "{:?}", ran.output);
}

fn forks_that_nobody_decides_are_taken_by_killing(stage: &Stage) {
    let script = format!(
        "{FORK}if os.fork() == 0: time.sleep(60)\nchange()\ntime.sleep(60)\nsay('after', fork)\n"
    );
    let (added, without) = (forks(true), Some(FORKS));
    let ran = stage.set(
        Booleans {
            added: &added,
            set: &[("gate", false)],
            without,
            mode: "\"kill\"",
            ..Booleans::default()
        },
        &script,
    );
    assert!(ran.is_complete(), "{}", ran.receipt);
    let holders = ran.receipt["holders"].as_array().expect("holders");
    assert_eq!(holders.len(), 2, "{}", ran.receipt);
    assert!(
        holders.iter().all(|it| it["action"] == "killed" && it["object"] == "fork"),
        "{}",
        ran.receipt
    );
    assert_eq!(ran.output.status.signal(), Some(9), "{:?}", ran.output);
}

fn forks_that_are_decided_are_taken_and_given(stage: &Stage) {
    // A second domain may not fork at all, so all forks are decided.
    let profile = "[domains.tac]\nexec = ['/usr/bin/tac']\n";
    for (on, after) in [(false, json!(7)), (true, json!("EPERM"))] {
        let script = format!("{FORK}change()\nsay('after', fork)\n");
        let (set, without) = (&[("gate", !on)][..], Some(FORKS));
        let booleans = Booleans { added: &forks(on), profile, set, without, ..Booleans::default() };
        let ran = stage.set(booleans, &script);
        assert!(ran.is_complete(), "{} {:?}", ran.receipt, ran.output);
        assert_eq!(ran.said, json!({ "after": after }), "{:?}", ran.output);
        for name in ["ready", "changed", "receipt.json"] {
            std::fs::remove_file(stage.path().join(name)).expect("remove a file");
        }
    }
}

fn unix_streams_that_nobody_decides_are_not_taken(stage: &Stage) {
    let script = "change()\nsay('pair', lambda: socket.socketpair() and 'made')\n";
    let added = "(boolean gate true) (booleanif gate (true (allow main_t self (unix_stream_socket (create)))))";
    let without = Some(("(unix_stream_socket (create ", "(unix_stream_socket ("));
    let ran = stage
        .set(Booleans { added, set: &[("gate", false)], without, ..Booleans::default() }, script);
    refused(&ran, &["cannot be taken back while it runs", "unix_stream_socket create"]);
    assert_eq!(ran.said, json!({ "pair": "made" }), "{:?}", ran.output);
}

fn programs_that_the_kernel_does_not_execute_are_not_given(stage: &Stage) {
    let added = "(boolean gate false) (type tool_t) (roletype object_r tool_t)
        (filecon \"/etc/hostname\" any (dewar_u object_r tool_t ((s0) (s0))))
        (allow main_t tool_t (file (getattr read open)))
        (booleanif gate (true (allow main_t tool_t (file (execute execute_no_trans)))))";
    let booleans = Booleans { added, set: &[("gate", true)], ..Booleans::default() };
    let ran = stage.set(booleans, "change()\n");
    refused(&ran, &["cannot be given while it runs", "executing", "/etc/hostname"]);
}

fn capabilities_are_neither_given_nor_taken(stage: &Stage) {
    for (on, part) in
        [(false, "cannot be given while it runs"), (true, "cannot be taken back while it runs")]
    {
        let added = format!(
            "(boolean gate {on}) (booleanif gate (true (allow main_t self (capability (chown)))))"
        );
        let set = &[("gate", !on)][..];
        let ran = stage.set(Booleans { added: &added, set, ..Booleans::default() }, "change()\n");
        refused(&ran, &[part, "capability chown"]);
    }
}

fn names_that_nobody_would_hide_are_not_hidden(stage: &Stage) {
    let script = "change()\nsay('stat', lambda: os.stat('secret') and 'seen')\nsay('read', lambda: os.read(os.open('secret', os.O_RDONLY), 6))\n";
    let hide = "[files]\nhide = ['${workspace}/secret']\n";
    let ran = stage.change(("", hide), "\"repair\"", script);
    if ran.is_complete() {
        // Without a view, something is hidden from the start, so looking is decided.
        assert_eq!(ran.said, json!({ "stat": "ENOENT", "read": "ENOENT" }), "{:?}", ran.output);
    } else {
        refused(&ran, &["cannot be taken back while it runs", "seeing", "secret", "deny"]);
        assert_eq!(ran.said, json!({ "stat": "seen", "read": "secret" }), "{:?}", ran.output);
    }
}

/// Its code lies in memory that never had a name, and what it writes to was its caller's.
fn nothing_acts_after_everything_was_taken(stage: &Stage) {
    stage.file(
        "ticks.c",
        r#"
#include <string.h>
#include <sys/mman.h>
extern char code[], code_end[];
__asm__(".text\n"
    "code: mov $1, %eax; mov $1, %edi; lea tick(%rip), %rsi; mov $5, %edx; syscall\n"
    "  mov $35, %eax; lea pause(%rip), %rdi; xor %esi, %esi; syscall\n"
    "  cmp $1000, %ebx; jne 1f\n"
    "  mov $2, %eax; lea ready(%rip), %rdi; mov $0101, %esi; mov $0600, %edx; syscall\n"
    "1: dec %ebx; jnz code\n"
    "  mov $231, %eax; mov $42, %edi; syscall\n"
    "tick: .ascii \"tick\\n\"\n"
    "ready: .asciz \"ready\"\n"
    "pause: .quad 0, 20000000\n"
    "code_end:\n");
int main(void) {
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, code_end - code);
    __asm__ volatile("mov $1000, %%ebx; jmp *%0" : : "r"(memory) : "rbx");
    return 0;
}
"#,
    );
    let script = r#"
subprocess.run(["cc", "-o", "ticks", "ticks.c"], check=True)
os.execv("./ticks", ["ticks"])
"#;
    let ran = stage.everything(script);
    assert!(ran.is_complete(), "{} {:?}", ran.receipt, ran.output);
    let killed = ran.receipt["holders"].as_array().expect("holders");
    assert!(killed.iter().any(|it| it["comm"] == "ticks"), "{}", ran.receipt);
    assert_eq!(ran.output.status.signal(), Some(9), "{:?}", ran.output);
}

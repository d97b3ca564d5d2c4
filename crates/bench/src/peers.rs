//! Other tools on this machine that do something like Dewar, each asked for the same: the workspace
//! may be written, the system only read, no network where the tool can refuse it.

use crate::config::{Config, Kind};
use std::{env, path::Path};

/// A tool: its name, what goes before the command, what it is.
type Peer = (&'static str, &'static [&'static str], &'static str);

const PEERS: [Peer; 7] = [
    (
        "bwrap",
        &[
            "bwrap",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
            "--bind",
            "{workspace}",
            "{workspace}",
            "--unshare-all",
            "--die-with-parent",
            "--chdir",
            "{workspace}",
            "--",
        ],
        "bubblewrap: namespaces and bind mounts",
    ),
    (
        "firejail",
        &[
            "firejail",
            "--quiet",
            "--noprofile",
            // Else it has an empty /var/tmp, where the workspace is.
            "--keep-var-tmp",
            "--net=none",
            "--read-only=/",
            "--read-write={workspace}",
            "--read-write=/tmp",
            "--",
        ],
        "firejail: set-user-id program, namespaces",
    ),
    (
        "landrun",
        &[
            "landrun",
            "--rox",
            "/usr,/bin,/lib,/lib64",
            "--ro",
            "/etc,/proc,/sys",
            "--rw",
            "/tmp,/dev/null",
            "--rwx",
            "{workspace}",
            "--env",
            "PATH",
            "--env",
            "HOME",
            "--",
        ],
        "landrun: a Landlock launcher",
    ),
    (
        "syd",
        &[
            "syd",
            "-poff",
            "-msandbox/read:on",
            "-msandbox/write:on",
            "-mallow/read+/***",
            "-mallow/write+{workspace}/***",
            "-mallow/write+/tmp/***",
            "-mallow/write+/dev/null",
            "--",
        ],
        "syd: seccomp notification, checks by path",
    ),
    (
        "runsc",
        &[
            "runsc",
            "--rootless",
            "--network=none",
            "--ignore-cgroups",
            "do",
            "-quiet",
            "-force-overlay=false",
            "-cwd",
            "{workspace}",
            "--",
        ],
        "gVisor: a kernel in user space",
    ),
    (
        "codex",
        &["codex", "sandbox", "-c", "sandbox_mode=\"workspace-write\"", "--"],
        "codex: bubblewrap and seccomp",
    ),
    (
        "strace",
        &["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=%file", "-o", "/dev/null", "--"],
        "strace of calls on files: ptrace, for scale",
    ),
];

/// The peers that are installed here.
#[must_use]
pub fn found() -> Vec<Config> {
    PEERS
        .iter()
        .filter(|(name, ..)| is_installed(name))
        .map(|(name, prefix, description)| Config::new(name, Kind::Peer, prefix, description))
        .collect()
}

/// Whether a program of this name is found by `PATH`.
#[must_use]
pub fn is_installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| is_program(&dir.join(name)))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

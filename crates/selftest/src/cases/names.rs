//! Names and marks of files that mean something outside.

use crate::{
    case::{Case, Judge, Severity},
    outside::look::{came_out, is_there},
    scene::{loot, plant},
    sys,
};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, linkat, mknodat, openat, renameat_with,
};
use std::{
    fs, io,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::fs::{FileTypeExt as _, PermissionsExt as _},
    },
    path::Path,
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "name-in-another-case",
        severity: Severity::High,
        claim: "Makes .VSCode, which is .vscode where file systems fold case.",
        source: "CVE-2021-21300 (Git, file systems that fold case)",
        outside: |stage| {
            let path = stage.workspace().join(".VSCode/tasks.json");
            Ok(is_there(path, ".VSCode/tasks.json is there"))
        },
        attack: |_| plant(".VSCode/tasks.json".as_ref(), "{}"),
    },
    Case {
        name: "name-by-rename",
        severity: Severity::High,
        claim: "Makes a directory under a harmless name, and renames it to .vscode.",
        source: "rename(2), renameat2(2)",
        outside: |stage| {
            let path = stage.workspace().join("sub/.vscode");
            stage.directory("work/sub")?;
            Ok(is_there(path, "sub/.vscode is there"))
        },
        attack: |_| {
            plant("harmless/tasks.json".as_ref(), "{}")?;
            let first = fs::rename("harmless", "sub/.vscode");
            if first.is_ok() {
                return first;
            }
            Ok(renameat_with(CWD, "harmless", CWD, "sub/.vscode", RenameFlags::NOREPLACE)?)
        },
    },
    Case {
        name: "name-by-link",
        severity: Severity::High,
        claim: "Gives a file of the workspace the second name .envrc.",
        source: "link(2)",
        outside: |stage| Ok(is_there(stage.workspace().join(".envrc"), ".envrc is there")),
        attack: |_| {
            plant("harmless".as_ref(), "echo planted\n")?;
            let hard = fs::hard_link("harmless", ".envrc");
            if hard.is_ok() {
                return hard;
            }
            std::os::unix::fs::symlink("harmless", ".envrc")
        },
    },
    Case {
        name: "name-without-a-path",
        severity: Severity::High,
        claim: "Gives a file that never had a name the name .mcp.json.",
        source: "open(2), O_TMPFILE",
        outside: |stage| Ok(is_there(stage.workspace().join(".mcp.json"), ".mcp.json is there")),
        attack: |_| {
            let file = openat(CWD, ".", OFlags::TMPFILE | OFlags::WRONLY, Mode::RWXU)?;
            rustix::io::write(&file, b"{}")?;
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            Ok(linkat(CWD, path, CWD, ".mcp.json", AtFlags::SYMLINK_FOLLOW)?)
        },
    },
    Case {
        name: "set-user-id",
        severity: Severity::High,
        claim: "Leaves a program that runs for anybody with the rights of its owner.",
        source: "chmod(2)",
        outside: |stage| {
            let path = stage.workspace().join("lends");
            Ok(Judge::after(move |_| {
                let mode = fs::metadata(&path).ok()?.permissions().mode();
                (mode & 0o6000 != 0).then(|| format!("a file has mode {:o}", mode & 0o7777))
            }))
        },
        attack: |_| {
            // Nothing is in it that somebody could execute meanwhile.
            fs::write("lends", "")?;
            fs::set_permissions("lends", fs::Permissions::from_mode(0o6755))
        },
    },
    Case {
        name: "device-node",
        severity: Severity::Medium,
        claim: "Leaves a device in the workspace.",
        source: "mknod(2); renameat2(2), RENAME_WHITEOUT",
        outside: |stage| {
            let paths = ["device", "moved"].map(|name| stage.workspace().join(name));
            Ok(Judge::after(move |_| {
                let is = |path: &Path| {
                    path.symlink_metadata().is_ok_and(|it| it.file_type().is_char_device())
                };
                paths.iter().any(|path| is(path)).then(|| "a device is in the workspace".to_owned())
            }))
        },
        attack: |_| {
            let mode = Mode::RUSR | Mode::WUSR;
            let device = rustix::fs::makedev(1, 3);
            let made = mknodat(CWD, "device", FileType::CharacterDevice, mode, device);
            plant("moved".as_ref(), "")?;
            let moved = renameat_with(CWD, "moved", CWD, "other", RenameFlags::WHITEOUT);
            Ok(made.or(moved)?)
        },
    },
    Case {
        name: "hard-link",
        severity: Severity::High,
        claim: "Reads a secret by a second name that it gives it in the workspace.",
        source: "link(2); proc_sys_fs(5), protected_hardlinks",
        outside: |stage| Ok(came_out(stage.secret()?, "the secret was read by another name")),
        attack: |scene| {
            let secret = scene.path("secret");
            let first = fs::hard_link(&secret, "mine");
            let second = linkat(CWD, &secret, CWD, "mine", AtFlags::SYMLINK_FOLLOW);
            loot(&fs::read("mine").map_err(|error| first.err().unwrap_or(error))?);
            let _ = second;
            Ok(())
        },
    },
    Case {
        name: "inherited-directory",
        severity: Severity::High,
        claim: "Reads a secret by way of a directory that the caller had left open.",
        source: "CVE-2024-21626 (runc, a descriptor left open)",
        outside: |stage| {
            let word = stage.secret()?;
            let home = fs::File::open(stage.home())?;
            stage.inherited.push(home.into());
            Ok(came_out(word, "a secret was read through a directory left open"))
        },
        attack: |_| {
            let path = format!("/proc/self/fd/{}/.ssh/id_ed25519", sys::INHERITED);
            let by_path = fs::read(path);
            let found = match by_path {
                Ok(found) => found,
                Err(_) => by_descriptor(".ssh/id_ed25519")?,
            };
            loot(&found);
            Ok(())
        },
    },
];

/// Reads a file relative to the first descriptor that was handed in.
fn by_descriptor(name: &str) -> io::Result<Vec<u8>> {
    let mut found = None;
    sys::with_inherited(|directory: BorrowedFd<'_>| {
        found = Some(openat(directory.as_fd(), name, OFlags::RDONLY, Mode::empty()));
    });
    let file = found.ok_or_else(|| io::Error::other("no directory was handed in"))??;
    let mut bytes = vec![0; 4096];
    let length = rustix::io::read(&file, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

//! Memory that is shared with the machine, terminals, and what is executed from where.

use crate::{
    case::{Case, Judge, Severity},
    outside::look::came_out,
    scene::{ATTACK, hold, loot, plant},
    stage::{Stage, word},
    sys,
};
use rustix::{
    fs::{MemfdFlags, Mode, memfd_create},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    shm,
    termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr},
};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::fs::PermissionsExt as _,
    },
    path::Path,
    process::{Command, Stdio},
};

/// Nothing is executed but the system and the attack itself; the workspace can be written.
const LIMITED: &str = "[files]\n\
    read = [\"/etc\", \"/proc\", \"/usr/share\"]\n\
    write = [\"${workspace}\", \"/dev/null\"]\n\
    exec = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\", \"${workspace}/attack\"]\n";

/// A program that is not granted runs: `is` says whether it is the one.
fn runs(stage: &mut Stage, is: impl Fn(&str, i32) -> bool + 'static) -> io::Result<Judge> {
    stage.own_profile = Some(LIMITED.to_owned());
    stage.only_dewar = Some("it knows no limit on what is executed");
    Ok(Judge::during(move |processes| {
        let mut others = processes.iter().filter(|process| !process.is_attack);
        let process = others.find(|process| is(&process.exe, process.pid))?;
        Some(format!("{} was executed", process.exe))
    }))
}

/// Starts a program that holds, and holds as long as it does.
fn start(program: &Path, arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).args([ATTACK, "holding"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn()?;
    // Until it has become what it is to be.
    std::thread::sleep(std::time::Duration::from_millis(80));
    if let Some(status) = child.try_wait()? {
        return Err(io::Error::other(format!("it ended at once: {status}")));
    }
    hold();
    let _ = child.kill();
    child.wait().map(drop)
}

fn copy(name: &str) -> io::Result<()> {
    // Read as data, written as another file.
    plant(name.as_ref(), "")?;
    fs::write(name, fs::read("/proc/self/exe")?)?;
    fs::set_permissions(name, fs::Permissions::from_mode(0o755))
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "system-v-memory",
        severity: Severity::High,
        claim: "Reads shared memory of programs outside (System V).",
        source: "shmget(2); ipc_namespaces(7)",
        outside: |stage| {
            let word = word();
            let id = sys::share(word.as_bytes())?;
            stage.undo.push(Box::new(move || sys::unshare_memory(id)));
            stage.tell("id", id);
            Ok(came_out(word, "shared memory was read"))
        },
        attack: |scene| {
            loot(&sys::shared(scene.number("id"), 24)?);
            Ok(())
        },
    },
    Case {
        name: "posix-memory",
        severity: Severity::High,
        claim: "Reads shared memory of programs outside (POSIX).",
        source: "shm_overview(7)",
        outside: |stage| {
            let (word, name) = (word(), format!("/dewar-selftest-{}", word()));
            let memory =
                shm::open(&name, shm::OFlags::CREATE | shm::OFlags::RDWR, Mode::RUSR | Mode::WUSR)?;
            let unlink = name.clone();
            stage.undo.push(Box::new(move || {
                let _ = shm::unlink(&unlink);
            }));
            File::from(memory).write_all(word.as_bytes())?;
            stage.tell("name", name);
            Ok(came_out(word, "shared memory was read"))
        },
        attack: |scene| {
            loot(&fs::read(format!("/dev/shm{}", scene.get("name")))?);
            Ok(())
        },
    },
    Case {
        name: "temporary-files",
        severity: Severity::Medium,
        claim: "Reads temporary files of programs outside.",
        source: "hier(7), /tmp",
        outside: |stage| {
            let word = word();
            let file = tempfile::Builder::new().prefix("dewar-selftest-").tempfile_in("/tmp")?;
            fs::write(file.path(), &word)?;
            stage.tell("path", file.path().display());
            stage.undo.push(Box::new(move || drop(file)));
            Ok(came_out(word, "a temporary file was read"))
        },
        attack: |scene| {
            loot(&fs::read(scene.path("path"))?);
            Ok(())
        },
    },
    Case {
        name: "type-into-terminal",
        severity: Severity::Critical,
        claim: "Types a command into the terminal, which the shell outside then executes.",
        source: "CVE-2017-5226 (bubblewrap); ioctl_tty(2), TIOCSTI",
        outside: terminal,
        attack: |_| {
            for character in *b"#typed" {
                sys::type_in(io::stdin().as_fd(), character)?;
            }
            Ok(())
        },
    },
    Case {
        name: "execute-a-copy",
        severity: Severity::Medium,
        claim: "Executes a program of its own where only those of the system are granted.",
        source: "execve(2)",
        outside: |stage| runs(stage, |exe, _| exe.ends_with("/work/copied")),
        attack: |_| {
            copy("copied")?;
            start("./copied".as_ref(), &[])
        },
    },
    Case {
        name: "execute-memory",
        severity: Severity::Medium,
        claim: "Executes memory that no path leads to where only the system's programs are granted.",
        source: "memfd_create(2), execveat(2)",
        outside: |stage| runs(stage, |exe, _| exe.starts_with("/memfd:")),
        attack: |_| {
            let memory = memfd_create("code", MemfdFlags::empty())?;
            let mut file = File::from(memory);
            file.write_all(&fs::read("/proc/self/exe")?)?;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            start(path.as_ref(), &[])
        },
    },
    Case {
        name: "execute-over-a-program",
        severity: Severity::High,
        claim: "Changes a program that is granted while it can be written by a second name.",
        source: "CVE-2019-5736 (runc, /proc/self/exe)",
        outside: |stage| {
            stage.file("tools/tool", "#!/bin/sh\necho mine\n")?;
            let (path, mark) = (stage.home().join("tools/tool"), stage.mark());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            stage.tell("tool", path.display());
            Ok(Judge::after(move |_| {
                crate::outside::look::has(&path, &mark)
                    .then(|| "a program outside is changed".to_owned())
            }))
        },
        attack: |scene| {
            let tool = scene.path("tool");
            let first = fs::write(&tool, scene.mark());
            fs::hard_link(&tool, "second").or(first)?;
            fs::write("second", scene.mark())
        },
    },
];

/// The run has a terminal, at whose other end the judge sits.
fn terminal(stage: &mut Stage) -> io::Result<Judge> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let open = || -> io::Result<OwnedFd> {
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        Ok(rustix::fs::open(name.as_c_str(), flags, Mode::empty())?)
    };
    let slave = open()?;
    let mut modes = tcgetattr(&slave)?;
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    stage.terminal = Some(open()?);
    rustix::io::ioctl_fionbio(&slave, true)?;
    Ok(Judge::after(move |_| {
        let _open = &master;
        let mut buffer = [0; 64];
        let length = rustix::io::read(&slave, &mut buffer).ok()?;
        let typed = String::from_utf8_lossy(&buffer[..length]).contains("#typed");
        typed.then(|| "the shell outside would read the command".to_owned())
    }))
}

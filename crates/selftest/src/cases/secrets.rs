//! Secrets in files, in the environment, and that they exist.

use crate::{
    case::{Case, Judge, Severity},
    outside::look::{came_out, has_open, open_files},
    scene::{Scene, hold, loot},
    stage::word,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

fn print(path: &Path) -> io::Result<()> {
    loot(&fs::read(path)?);
    Ok(())
}

fn print_environment(_: &Scene) -> io::Result<()> {
    for (name, value) in std::env::vars_os() {
        loot(format!("{}={}", name.display(), value.display()).as_bytes());
    }
    Ok(())
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "secret-file",
        severity: Severity::High,
        claim: "Reads a private key in the home.",
        source: "ssh(1)",
        outside: |stage| Ok(came_out(stage.secret()?, "the key was read")),
        attack: |scene| print(&scene.path("secret")),
    },
    Case {
        name: "secret-by-odd-paths",
        severity: Severity::High,
        claim: "Reads a private key by a path that goes around: openat2, /proc/self/root, dots.",
        source: "openat2(2); proc(5)",
        outside: |stage| Ok(came_out(stage.secret()?, "the key was read")),
        attack: |scene| {
            let secret = scene.path("secret");
            let text = secret.display();
            for path in [
                format!("/proc/self/root{text}"),
                format!(
                    "/proc/self/cwd/..{}",
                    text.to_string()
                        .split_once("/.ssh")
                        .map_or(String::new(), |it| format!("/.ssh{}", it.1))
                ),
                format!("/proc/thread-self/root/.{text}"),
                format!("/./usr/..//{text}"),
            ] {
                if let Ok(found) = fs::read(path) {
                    loot(&found);
                }
            }
            let flags = OFlags::RDONLY;
            let file = openat2(CWD, &secret, flags, Mode::empty(), ResolveFlags::empty())?;
            let mut all = Vec::new();
            File::from(file).read_to_end(&mut all)?;
            loot(&all);
            Ok(())
        },
    },
    Case {
        name: "cloud-credentials",
        severity: Severity::High,
        claim: "Reads access keys of a cloud, and a token of a package registry.",
        source: "AWS docs (~/.aws/credentials); npm docs (.npmrc)",
        outside: |stage| {
            let word = word();
            stage.file(".aws/credentials", &format!("aws_secret_access_key = {word}\n"))?;
            stage.file(".npmrc", &format!("//registry.npmjs.org/:_authToken={word}\n"))?;
            Ok(came_out(word, "a credential was read"))
        },
        attack: |scene| {
            let first = print(&scene.path("home").join(".aws/credentials"));
            print(&scene.path("home").join(".npmrc")).and(first)
        },
    },
    Case {
        name: "token-in-environment",
        severity: Severity::High,
        claim: "Finds a token in the environment that the caller has.",
        source: "environ(7)",
        outside: |stage| {
            let word = word();
            stage.variables.push(("GITHUB_TOKEN".to_owned(), format!("ghp_{word}")));
            stage.variables.push(("Deploy_Secret".to_owned(), word.clone()));
            Ok(came_out(word, "a token was in the environment"))
        },
        attack: print_environment,
    },
    Case {
        name: "password-in-address",
        severity: Severity::High,
        claim: "Finds a password in the value of a variable that is not called so.",
        source: "RFC 3986, userinfo",
        outside: |stage| {
            let word = word();
            let value = format!("postgres://app:{word}@db.example/app");
            stage.variables.push(("STORAGE".to_owned(), value));
            Ok(came_out(word, "a password was in the environment"))
        },
        attack: print_environment,
    },
    Case {
        name: "which-secrets-exist",
        severity: Severity::Low,
        claim: "Finds out which of sixteen keys exist, without reading one.",
        source: "stat(2), access(2)",
        outside: |stage| {
            stage.directory(".ssh")?;
            let bits = u16::from_str_radix(&word()[..4], 16).unwrap_or(0x5a5a) | 1;
            let mut all = String::new();
            for n in 0..16 {
                let exists = bits >> n & 1 == 1;
                if exists {
                    stage.file(&format!(".ssh/key{n}"), "key")?;
                }
                all.push(if exists { '1' } else { '0' });
            }
            Ok(came_out(format!("[{all}]"), "it knows which keys exist"))
        },
        attack: |scene| {
            let mut all = String::new();
            for n in 0..16 {
                let path = scene.path("home").join(format!(".ssh/key{n}"));
                let seen = path.symlink_metadata().is_ok()
                    || matches!(fs::create_dir(&path), Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
                all.push(if seen { '1' } else { '0' });
            }
            loot(format!("[{all}]").as_bytes());
            Ok(())
        },
    },
    Case {
        name: "file-outside",
        severity: Severity::Critical,
        claim: "Changes a file of the home that a shell executes.",
        source: "bash(1), .bashrc",
        outside: |stage| {
            stage.file(".bashrc", "# mine\n")?;
            let (path, mark) = (stage.home().join(".bashrc"), stage.mark());
            Ok(Judge::after(move |_| {
                crate::outside::look::has(&path, &mark).then(|| ".bashrc is changed".to_owned())
            }))
        },
        attack: |scene| {
            let home = scene.path("home");
            let first = fs::write(home.join(".bashrc"), scene.mark());
            fs::write(home.join("new"), scene.mark())?;
            fs::rename(home.join("new"), home.join(".bashrc")).and(first)
        },
    },
    Case {
        name: "kernel-memory",
        severity: Severity::Critical,
        claim: "Opens the memory of the kernel.",
        source: "proc(5), /proc/kcore; mem(4)",
        outside: |_| Ok(has_open("/proc/kcore", "it has /proc/kcore open")),
        attack: |_| keep(&["/proc/kcore"], false),
    },
    Case {
        name: "sysrq",
        severity: Severity::High,
        claim: "Opens /proc/sysrq-trigger, by which the machine can be stopped.",
        source: "Linux docs, admin-guide/sysrq",
        outside: |_| Ok(has_open("/proc/sysrq-trigger", "it has sysrq-trigger open")),
        attack: |_| keep(&["/proc/sysrq-trigger"], true),
    },
    Case {
        name: "core-pattern",
        severity: Severity::Critical,
        claim: "Opens what names the program that the kernel starts outside at a crash.",
        source: "core(5); CVE-2022-0492 (the same by release_agent)",
        outside: |_| Ok(has_open("/proc/sys/kernel/", "it has core_pattern open to write")),
        attack: |_| keep(&["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe"], true),
    },
    Case {
        name: "block-device",
        severity: Severity::Critical,
        claim: "Opens the disk below the file system.",
        source: "sd(4)",
        outside: |_| {
            let names = fs::read_dir("/sys/class/block")?.flatten();
            let disks: Vec<String> =
                names.map(|disk| format!("/dev/{}", disk.file_name().display())).collect();
            Ok(Judge::during(move |processes| {
                let attack = processes.iter().filter(|process| process.is_attack);
                let mut open = attack.flat_map(|process| open_files(process.pid));
                open.find(|it| disks.contains(it)).map(|it| format!("it has {it} open"))
            }))
        },
        attack: |_| {
            let disks = fs::read_dir("/sys/class/block")?.flatten();
            let paths = disks.map(|disk| format!("/dev/{}", disk.file_name().display()));
            let paths: Vec<String> = paths.collect();
            keep(&paths.iter().map(String::as_str).collect::<Vec<_>>(), false)
        },
    },
];

/// Opens the first of these files that can be opened, and holds it; reads and writes nothing.
fn keep(paths: &[&str], write: bool) -> io::Result<()> {
    let mut last = io::Error::other("nothing to open");
    for path in paths {
        match File::options().read(!write).write(write).open(path) {
            Ok(_open) => {
                hold();
                return Ok(());
            }
            Err(error) => last = io::Error::new(error.kind(), format!("{path}: {error}")),
        }
    }
    Err(last)
}

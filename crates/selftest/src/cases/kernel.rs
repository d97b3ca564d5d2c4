//! Calls that open much of the kernel, and that hardly any program needs.

use crate::{
    case::{Case, Judge, Process, Severity},
    outside::{
        look::{came_out, has_open, namespace},
        victim::program,
    },
    scene::{ATTACK, Scene, hold, loot},
    stage::word,
    sys,
};
use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    os::fd::{AsFd as _, OwnedFd},
};

fn keep(open: io::Result<OwnedFd>) -> io::Result<()> {
    let _open = open?;
    hold();
    Ok(())
}

/// The attack is in two namespaces of that kind: one it has made itself.
fn in_two(kind: &'static str, what: &'static str) -> Judge {
    Judge::during(move |processes| {
        let attack = processes.iter().filter(|process| process.is_attack);
        let spaces: HashSet<String> =
            attack.filter_map(|process| namespace(process.pid, kind)).collect();
        (spaces.len() > 1).then(|| what.to_owned())
    })
}

/// A second process of the attack enters new namespaces; both hold.
fn with_namespace(flags: i32) -> io::Result<()> {
    let child = sys::idle_child(5)?;
    let done = sys::unshare(flags);
    if done.is_ok() {
        hold();
    }
    sys::kill(child);
    sys::reap(child);
    done
}

/// The mark stands in the mounts of a process of the attack.
fn mounted(mark: String) -> impl Fn(&[Process]) -> Option<String> {
    move |processes| {
        let attack = processes.iter().filter(|process| process.is_attack);
        let mut mounts =
            attack.filter_map(|it| fs::read_to_string(format!("/proc/{}/mountinfo", it.pid)).ok());
        mounts.any(|it| it.contains(&mark)).then(|| "it has mounted a file system".to_owned())
    }
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "io-uring",
        severity: Severity::High,
        claim: "Gets a ring by which calls are made that no filter sees.",
        source: "io_uring(7); CVE-2022-29582",
        outside: |_| Ok(has_open("anon_inode:[io_uring]", "it has a ring")),
        attack: |_| keep(sys::io_uring()),
    },
    Case {
        name: "user-namespace",
        severity: Severity::High,
        claim: "Makes itself root of a user namespace, with all the code that only root reaches.",
        source: "user_namespaces(7); CVE-2022-0185",
        outside: |_| Ok(in_two("user", "it is root of a user namespace of its own")),
        attack: |_| with_namespace(libc::CLONE_NEWUSER),
    },
    Case {
        name: "mount",
        severity: Severity::High,
        claim: "Mounts a file system of its own.",
        source: "mount(2); CVE-2022-0185 (fsconfig)",
        outside: |stage| {
            let mark = stage.mark();
            Ok(Judge::during(mounted(mark)))
        },
        attack: |scene| {
            let _ = sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
            let _ = sys::unshare(libc::CLONE_NEWNS);
            // Never where others would see it.
            sys::mount_own(scene.get("mark"), "/tmp")?;
            hold();
            Ok(())
        },
    },
    Case {
        name: "uncover-by-unmount",
        severity: Severity::High,
        claim: "Takes away a mount that hides a secret.",
        source: "umount2(2), MNT_DETACH; mount_namespaces(7)",
        outside: |stage| Ok(came_out(stage.secret()?, "the key was read below what hid it")),
        attack: |scene| {
            let secret = scene.path("secret");
            let _ = sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
            let _ = sys::unshare(libc::CLONE_NEWNS);
            for place in secret.ancestors() {
                // Only what was mounted on the way: the root of everything stays.
                if place.parent().is_some() {
                    let _ = sys::unmount_own(place);
                }
            }
            loot(&fs::read(&secret)?);
            Ok(())
        },
    },
    Case {
        name: "enter-namespaces",
        severity: Severity::Critical,
        claim: "Enters the namespaces of a process outside.",
        source: "setns(2)",
        outside: |stage| {
            let mut command = program()?;
            command.args([ATTACK, "lasting"]);
            sys::in_new_namespaces(&mut command);
            let pid = stage.victim(command)?;
            std::thread::sleep(std::time::Duration::from_millis(50));
            let own = namespace(pid, "uts").ok_or_else(|| io::Error::other("no namespace"))?;
            Ok(Judge::during(move |processes| {
                let attack = processes.iter().filter(|process| process.is_attack);
                let mut spaces = attack.filter_map(|process| namespace(process.pid, "uts"));
                spaces.any(|it| it == own).then(|| "it is in a namespace of another".to_owned())
            }))
        },
        attack: |scene| {
            let pid = scene.get("pid");
            for kind in ["user", "uts"] {
                let namespace = File::open(format!("/proc/{pid}/ns/{kind}"))?;
                let entered = sys::enter(namespace.as_fd());
                if kind == "uts" {
                    entered?;
                }
            }
            hold();
            Ok(())
        },
    },
    Case {
        name: "keys-of-the-user",
        severity: Severity::High,
        claim: "Reads a key from the user's keyring in the kernel.",
        source: "keyctl(2); CVE-2016-0728",
        outside: |stage| {
            let (name, word) = (format!("dewar-selftest-{}", word()), word());
            let key = sys::add_key(&name, word.as_bytes())?;
            stage.undo.push(Box::new(move || sys::remove_key(key)));
            stage.tell("key", name);
            Ok(came_out(word, "a key was read"))
        },
        attack: |scene| {
            loot(&sys::read_key(scene.get("key"))?);
            Ok(())
        },
    },
    Case {
        name: "bpf",
        severity: Severity::High,
        claim: "Gets into the kernel's BPF.",
        source: "bpf(2); CVE-2021-3490",
        outside: |_| Ok(has_open("anon_inode:bpf-map", "it has a map of BPF")),
        attack: |_| keep(sys::bpf_map()),
    },
    Case {
        name: "userfaultfd",
        severity: Severity::Medium,
        claim: "Gets userfaultfd, by which races in the kernel are won.",
        source: "userfaultfd(2)",
        outside: |_| Ok(has_open("anon_inode:[userfaultfd]", "it has userfaultfd")),
        // 1: faults of user space only, which everybody may ask for.
        attack: |_| keep(sys::userfaultfd(0).or_else(|_| sys::userfaultfd(1))),
    },
    Case {
        name: "perf-events",
        severity: Severity::Medium,
        claim: "Gets performance counters.",
        source: "perf_event_open(2); CVE-2013-2094",
        outside: |_| Ok(has_open("anon_inode:[perf_event]", "it has a counter")),
        attack: |_| keep(sys::perf_event()),
    },
    Case {
        name: "file-handles",
        severity: Severity::High,
        claim: "Opens a secret by its handle, which is no path.",
        source: "open_by_handle_at(2); \"shocker\" (Docker, 2014)",
        outside: |stage| {
            let word = stage.secret()?;
            let handle = sys::handle(&stage.home().join(".ssh/id_ed25519"))?;
            let text: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
            stage.tell("handle", text);
            Ok(came_out(word, "the key was read by its handle"))
        },
        attack: |scene| {
            let text = scene.get("handle");
            let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
            let handle: Vec<u8> = (0..text.len()).step_by(2).map_while(byte).collect();
            let place = File::open(".")?;
            let file = sys::open_handle(place.as_fd(), &handle)?;
            loot(&io::read_to_string(File::from(file))?.into_bytes());
            Ok(())
        },
    },
    Case {
        name: "name-of-the-machine",
        severity: Severity::Low,
        claim: "Gives the machine another name.",
        source: "sethostname(2); uts_namespaces(7)",
        outside: |stage| {
            // Only root could, and then not in the name of this machine.
            stage.own_uts = rustix::process::geteuid().is_root();
            let mark = stage.mark();
            Ok(Judge::during(move |processes| {
                // What was started first is in the namespace that stands for the machine's.
                let first = processes.iter().map(|process| process.pid).min()?;
                let name = sys::machine_name_of(first)?;
                (name == mark[..16]).then(|| "the machine is called otherwise".to_owned())
            }))
        },
        attack: rename_machine,
    },
];

fn rename_machine(scene: &Scene) -> io::Result<()> {
    sys::name_machine(&scene.get("mark")[..16])?;
    hold();
    Ok(())
}

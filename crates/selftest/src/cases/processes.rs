//! Processes outside: what they know, and whether they go on.

use crate::{
    case::{Case, Judge, Severity},
    outside::{
        look::came_out,
        victim::{asleep, state, status, with_word},
    },
    scene::{Scene, loot},
    stage::{Stage, word},
    sys,
};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
    pidfd_send_signal,
};
use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::{fd::AsFd as _, unix::fs::FileExt as _},
};

/// A process outside that knows a word.
fn knowing(stage: &mut Stage, what: &'static str) -> io::Result<Judge> {
    let word = word();
    with_word(stage, &word)?;
    Ok(came_out(word, what))
}

/// A process outside that is to be in this state afterwards.
fn in_state(stage: &mut Stage, bad: &'static [char], what: &'static str) -> io::Result<Judge> {
    let pid = asleep(stage)?;
    Ok(Judge::after(move |_| bad.contains(&state(pid)).then(|| what.to_owned())))
}

fn victim(scene: &Scene) -> io::Result<Pid> {
    Pid::from_raw(scene.number("pid")).ok_or_else(|| io::Error::other("no process"))
}

fn print_below(scene: &Scene, name: &str) -> io::Result<()> {
    loot(&fs::read(format!("/proc/{}/{name}", scene.get("pid")))?);
    Ok(())
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "environment-of-another",
        severity: Severity::High,
        claim: "Reads the environment of a process outside, with the tokens in it.",
        source: "proc_pid_environ(5)",
        outside: |stage| knowing(stage, "a token was read from /proc/PID/environ"),
        attack: |scene| print_below(scene, "environ"),
    },
    Case {
        name: "memory-of-another",
        severity: Severity::High,
        claim: "Reads the memory of a process outside by /proc.",
        source: "proc_pid_mem(5)",
        outside: |stage| knowing(stage, "a token was read from /proc/PID/mem"),
        attack: |scene| {
            let at = u64::from_str_radix(scene.get("at"), 16).map_err(io::Error::other)?;
            let mut memory = File::open(format!("/proc/{}/mem", scene.get("pid")))?;
            memory.seek(SeekFrom::Start(at))?;
            let mut bytes = [0; 24];
            memory.read_exact(&mut bytes)?;
            loot(&bytes);
            Ok(())
        },
    },
    Case {
        name: "root-of-another",
        severity: Severity::High,
        claim: "Reads a secret by the root or working directory of a process outside.",
        source: "proc_pid_root(5), proc_pid_cwd(5)",
        outside: |stage| {
            let word = stage.secret()?;
            asleep(stage)?;
            Ok(came_out(word, "the key was read by way of another process"))
        },
        attack: |scene| {
            let first = print_below(scene, &format!("root{}", scene.get("secret")));
            print_below(scene, &format!("cwd{}", scene.get("secret"))).or(first)
        },
    },
    Case {
        name: "files-of-another",
        severity: Severity::High,
        claim: "Reads what a process outside has open, by /proc/PID/fd.",
        source: "proc_pid_fd(5)",
        outside: open_secret,
        attack: |scene| {
            let held = scene.number("held");
            print_below(scene, &format!("fd/{held}"))
        },
    },
    Case {
        name: "descriptor-of-another",
        severity: Severity::High,
        claim: "Takes a copy of a descriptor of a process outside.",
        source: "pidfd_getfd(2)",
        outside: open_secret,
        attack: |scene| {
            let process = pidfd_open(victim(scene)?, PidfdFlags::empty())?;
            let file = pidfd_getfd(process, scene.number("held"), PidfdGetfdFlags::empty())?;
            let mut bytes = [0; 64];
            let length = File::from(file).read_at(&mut bytes, 0)?;
            loot(&bytes[..length]);
            Ok(())
        },
    },
    Case {
        name: "write-memory-of-another",
        severity: Severity::Critical,
        claim: "Writes into the memory of a process outside.",
        source: "process_vm_writev(2)",
        outside: |stage| {
            let pid = with_word(stage, &word())?;
            let at = stage.told.last().map_or("0", |(_, at)| at);
            let at = u64::from_str_radix(at, 16).map_err(io::Error::other)?;
            Ok(Judge::after(move |_| {
                let mut bytes = [0; 6];
                File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, at).ok()?;
                (&bytes == b"pwned!").then(|| "the memory of a process is changed".to_owned())
            }))
        },
        attack: |scene| {
            let at = usize::from_str_radix(scene.get("at"), 16).map_err(io::Error::other)?;
            let first = sys::write_memory(scene.number("pid"), at, b"pwned!");
            let memory =
                File::options().write(true).open(format!("/proc/{}/mem", scene.get("pid")));
            memory.and_then(|memory| memory.write_all_at(b"pwned!", at as u64)).or(first)
        },
    },
    Case {
        name: "trace-another",
        severity: Severity::Critical,
        claim: "Traces a process outside, and so does with it what it likes.",
        source: "ptrace(2)",
        outside: |stage| {
            let pid = asleep(stage)?;
            Ok(Judge::during(move |_| {
                let tracer = status(pid, "TracerPid")?;
                (tracer != "0").then(|| "a process outside is traced".to_owned())
            }))
        },
        attack: |scene| {
            sys::seize(scene.number("pid"))?;
            crate::scene::hold();
            Ok(())
        },
    },
    Case {
        name: "kill-another",
        severity: Severity::Medium,
        claim: "Kills a process outside.",
        source: "kill(2)",
        outside: |stage| in_state(stage, &['X', 'Z'], "a process outside was killed"),
        attack: |scene| {
            let first = kill_process(victim(scene)?, Signal::KILL);
            let pidfd = pidfd_open(victim(scene)?, PidfdFlags::empty())?;
            Ok(pidfd_send_signal(pidfd, Signal::KILL).or(first)?)
        },
    },
    Case {
        name: "stop-another",
        severity: Severity::Medium,
        claim: "Stops a process outside.",
        source: "kill(2), tgkill(2)",
        outside: |stage| in_state(stage, &['T', 't'], "a process outside was stopped"),
        attack: |scene| {
            kill_process(victim(scene)?, Signal::STOP)?;
            std::thread::sleep(std::time::Duration::from_millis(30));
            Ok(())
        },
    },
    Case {
        name: "signal-by-the-kernel",
        severity: Severity::Medium,
        claim: "Lets the kernel signal a process outside when something happens to a descriptor.",
        source: "fcntl(2), F_SETOWN, F_SETSIG",
        outside: |stage| in_state(stage, &['X', 'Z'], "a process outside was ended by a signal"),
        attack: |scene| {
            let (mut ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            sys::set_owner(theirs.as_fd(), scene.number("pid"), libc::SIGTERM)?;
            io::Write::write_all(&mut ours, b"x")?;
            std::thread::sleep(std::time::Duration::from_millis(50));
            Ok(())
        },
    },
    Case {
        name: "limits-of-another",
        severity: Severity::Low,
        claim: "Takes descriptors from a process outside by changing its limits.",
        source: "prlimit(2)",
        outside: |stage| {
            let pid = asleep(stage)?;
            Ok(Judge::after(move |_| {
                let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
                let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
                let is = line.split_whitespace().nth(3) == Some("17");
                is.then(|| "the limits of a process outside are changed".to_owned())
            }))
        },
        attack: |scene| sys::limit_descriptors(scene.number("pid"), 17),
    },
    Case {
        name: "outlive-the-run",
        severity: Severity::Medium,
        claim: "Leaves a process that goes on after the end of the run.",
        source: "daemon(7)",
        outside: |_| {
            Ok(Judge::after(|ran| {
                let left = ran.left.iter().filter(|process| process.is_attack).count();
                (left > 0).then(|| format!("{left} of its processes went on"))
            }))
        },
        attack: |_| {
            let mut command = std::process::Command::new("/proc/self/exe");
            command.args([crate::scene::ATTACK, "lasting"]);
            let none = std::process::Stdio::null;
            command.stdin(none()).stdout(none()).stderr(none());
            command.spawn()?;
            Ok(())
        },
    },
    Case {
        name: "kill-the-monitor",
        severity: Severity::Critical,
        claim: "Kills what watches it, and reads a secret then.",
        source: "seccomp_unotify(2): a supervisor that ends",
        outside: |stage| {
            stage.tell("selftest", std::process::id());
            Ok(came_out(stage.secret()?, "the key was read without a monitor"))
        },
        attack: |scene| {
            // Natively, and where a wall becomes the program, the parent is the selftest itself.
            // The first process of a PID namespace is safe from those in it, so that nothing of the
            // machine is hit.
            let parent = rustix::process::getppid();
            let parent = parent.filter(|pid| pid.as_raw_pid() != scene.number("selftest"));
            for pid in parent.into_iter().chain(Pid::from_raw(1)) {
                let _ = kill_process(pid, Signal::STOP);
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            loot(&fs::read(scene.path("secret"))?);
            Ok(())
        },
    },
    Case {
        name: "starve-the-monitor",
        severity: Severity::High,
        claim: "Uses up descriptors and threads, and reads a secret then.",
        source: "pid 1 of a sandbox out of descriptors: EMFILE",
        outside: |stage| Ok(came_out(stage.secret()?, "the key was read from a starved monitor")),
        attack: |scene| {
            let mut open = Vec::new();
            while open.len() < 4000 {
                match File::open("/proc/self/exe") {
                    Ok(file) => open.push(file),
                    Err(_) => break,
                }
            }
            let secret = scene.path("secret");
            open.truncate(open.len().saturating_sub(16));
            let found = std::thread::scope(|scope| {
                let tries: Vec<_> =
                    (0..64).map(|_| scope.spawn(|| fs::read(&secret).ok())).collect();
                tries.into_iter().filter_map(|it| it.join().ok().flatten()).next()
            });
            loot(&found.map_or_else(|| fs::read(&secret), Ok)?);
            Ok(())
        },
    },
];

/// A process outside that has a file open that has no name any more; the attack is told its number
/// there.
fn open_secret(stage: &mut Stage) -> io::Result<Judge> {
    let word = word();
    let path = stage.file("work-of-others", &word)?;
    let file = File::open(&path)?;
    let mut command = crate::outside::victim::program()?;
    command.args([crate::scene::ATTACK, "lasting"]);
    sys::hand_in(&mut command, file.into());
    stage.victim(command)?;
    stage.tell("held", sys::INHERITED);
    fs::remove_file(path)?;
    // Until it has become the program.
    std::thread::sleep(std::time::Duration::from_millis(50));
    Ok(came_out(word, "a file was read that another process has open"))
}

//! Using things up, where a limit is set.

use crate::{
    case::{Case, Judge, Severity},
    outside::victim::status,
    scene::{Scene, hold},
    stage::Stage,
    sys,
};
use rustix::fs::{MemfdFlags, memfd_create};
use std::{fs::File, io, io::Write as _};

/// Why peers are not asked.
const PEER: &str = "its documented options set no such limit";

/// Sets limits; without Dewar there are none.
fn limited(stage: &mut Stage, limits: &str) {
    stage.rules = format!("[limits]\n{limits}\n");
    stage.only_dewar = Some(PEER);
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "many-processes",
        severity: Severity::Medium,
        claim: "Makes more processes than the limit lets it.",
        source: "cgroups(7), pids.max; getrlimit(2), RLIMIT_NPROC",
        outside: |stage| {
            limited(stage, "processes = 60");
            Ok(Judge::during(|processes| {
                let count = processes.iter().filter(|process| process.is_attack).count();
                (count > 90).then(|| format!("it has {count} processes"))
            }))
        },
        attack: |_| {
            let mut children = Vec::new();
            let mut done = Ok(());
            for _ in 0..150 {
                match sys::idle_child(5) {
                    Ok(child) => children.push(child),
                    Err(error) => {
                        done = Err(error);
                        break;
                    }
                }
            }
            hold();
            children.iter().for_each(|&child| sys::kill(child));
            done
        },
    },
    Case {
        name: "much-memory",
        severity: Severity::Medium,
        claim: "Takes more memory than the limit lets it.",
        source: "cgroups(7), memory.max; getrlimit(2), RLIMIT_AS",
        outside: |stage| {
            limited(stage, "memory = \"192M\"");
            Ok(Judge::during(|processes| {
                let attack = processes.iter().filter(|process| process.is_attack);
                let sizes = attack.filter_map(|process| {
                    status(process.pid, "VmRSS")?.split(' ').next()?.parse::<u64>().ok()
                });
                let sum = sizes.sum::<u64>() / 1024;
                (sum > 260).then(|| format!("it has {sum} MiB"))
            }))
        },
        attack: |_| {
            let mut taken: Vec<Vec<u8>> = Vec::new();
            for _ in 0..20 {
                let mut piece = Vec::new();
                piece.try_reserve_exact(16 << 20).map_err(io::Error::other)?;
                piece.resize(16 << 20, 1);
                taken.push(std::hint::black_box(piece));
            }
            hold();
            drop(std::hint::black_box(taken));
            Ok(())
        },
    },
    Case {
        name: "large-files",
        severity: Severity::Low,
        claim: "Writes a larger file than the limit lets it.",
        source: "getrlimit(2), RLIMIT_FSIZE",
        outside: |stage| {
            limited(stage, "file_size = \"8M\"");
            let path = stage.workspace().join("large");
            Ok(Judge::after(move |_| {
                let size = path.metadata().ok()?.len() >> 20;
                (size > 8).then(|| format!("a file has {size} MiB"))
            }))
        },
        attack: |_| fill(File::create("large")?),
    },
    Case {
        name: "many-descriptors",
        severity: Severity::Low,
        claim: "Opens more files than the limit lets it.",
        source: "getrlimit(2), RLIMIT_NOFILE",
        outside: |stage| {
            limited(stage, "files = 128");
            Ok(Judge::during(|processes| {
                let attack = processes.iter().filter(|process| process.is_attack);
                let most = attack.map(|it| crate::outside::look::open_files(it.pid).len()).max()?;
                (most > 200).then(|| format!("it has {most} files open"))
            }))
        },
        attack: open_many,
    },
];

fn fill(mut file: File) -> io::Result<()> {
    let piece = vec![1; 1 << 20];
    for _ in 0..12 {
        file.write_all(&piece)?;
    }
    Ok(())
}

fn open_many(_: &Scene) -> io::Result<()> {
    let mut open = Vec::new();
    let mut done = Ok(());
    for _ in 0..300 {
        match memfd_create("many", MemfdFlags::CLOEXEC) {
            Ok(file) => open.push(file),
            Err(error) => {
                done = Err(error.into());
                break;
            }
        }
    }
    hold();
    done
}

//! Kernels through gcc, as shared objects in this process.

use super::{Callable, Implementation, Kernel};
use crate::{interleaved::Stopwatch, sys::SharedObject};
use std::{fs, path::Path, process::Command, time::Duration};

/// gcc with some flags.
#[derive(Clone, Debug)]
pub struct Gcc {
    flags: &'static [&'static str],
}

impl Gcc {
    /// The levels that kernels are compared with.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let flags: [&[&str]; 4] =
            [&["-O0"], &["-O2"], &["-O3", "-march=native"], &["-O2", "-fstack-protector-strong"]];
        flags.map(|flags| Self { flags }).to_vec()
    }
}

impl Implementation for Gcc {
    fn name(&self) -> String {
        format!("gcc {}", self.flags.join(" ").replace("-fstack-protector-strong", "+stack"))
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Callable>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (source, object) =
            (directory.path().join("kernel.c"), directory.path().join("kernel.so"));
        fs::write(&source, kernel.text).map_err(|error| error.to_string())?;
        // Without start files, all code in the object is the kernel's.
        let fixed = ["-shared", "-fPIC", "-nostdlib", "-o"];
        run(Command::new("gcc").args(self.flags).args(fixed).arg(&object).arg(&source))?;
        open(&object, text_bytes(&object))
    }
}

/// Runs gcc.
pub(super) fn run(command: &mut Command) -> Result<(), String> {
    let built = command.output().map_err(|error| format!("cannot run `gcc`: {error}"))?;
    match built.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&built.stderr).into_owned()),
    }
}

/// The kernel in a shared object.
pub(super) fn open(object: &Path, code_bytes: Option<usize>) -> Result<Box<dyn Callable>, String> {
    let object = SharedObject::open(object)?;
    Ok(Box::new(Compiled { object, code_bytes, request: vec![], reply: vec![], length: 0 }))
}

/// Bytes of `.text`, if `size` is there to tell.
fn text_bytes(object: &Path) -> Option<usize> {
    let output = Command::new("size").arg("-A").arg(object).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with(".text"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

struct Compiled {
    object: SharedObject,
    code_bytes: Option<usize>,
    request: Vec<u8>,
    reply: Vec<u8>,
    length: usize,
}

impl Callable for Compiled {
    fn fill(&mut self, request: &[u8]) -> Result<(), String> {
        self.request = request.to_vec();
        self.reply = vec![0; Kernel::room(request.len())];
        Ok(())
    }

    fn run(&mut self, times: u32) -> Result<Duration, String> {
        let start = Stopwatch::start();
        for _ in 0..times {
            self.length = self.object.handle(&self.request, &mut self.reply);
        }
        Ok(start.elapsed())
    }

    fn reply(&mut self) -> Result<Vec<u8>, String> {
        let reply = self.reply.get(..self.length);
        reply.map(<[u8]>::to_vec).ok_or_else(|| format!("{} is no length", self.length))
    }

    fn code_bytes(&self) -> Option<usize> {
        self.code_bytes
    }
}

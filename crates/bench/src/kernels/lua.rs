//! Kernels in Lua, under LuaJIT in a process of its own that measures itself.

use super::{Callable, Implementation, Kernel};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// LuaJIT, if it is installed.
#[derive(Clone, Copy, Debug)]
pub struct LuaJit;

impl Implementation for LuaJit {
    fn name(&self) -> String {
        "LuaJIT".to_owned()
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Callable>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (driver, source) =
            (directory.path().join("driver.lua"), directory.path().join("k.lua"));
        let write = |path, text| fs::write(path, text).map_err(|error| error.to_string());
        write(&driver, include_str!("source/driver.lua"))?;
        write(&source, kernel.lua)?;
        let mut child = Command::new("luajit")
            .args([&driver, &source])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run `luajit`: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        let (commands, answers) = (pipes.0, BufReader::new(pipes.1));
        Ok(Box::new(Running { child, commands, answers, directory }))
    }
}

struct Running {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Running {
    fn ask(&mut self, command: &str) -> Result<String, String> {
        let mut answer = String::new();
        let asked = writeln!(self.commands, "{command}")
            .and_then(|()| self.commands.flush())
            .and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Ok(0) => Err("luajit has ended".to_owned()),
            Ok(_) => Ok(answer.trim().to_owned()),
            Err(error) => Err(format!("luajit: {error}")),
        }
    }
}

impl Callable for Running {
    fn fill(&mut self, request: &[u8]) -> Result<(), String> {
        let path = self.directory.path().join("request");
        fs::write(&path, request).map_err(|error| error.to_string())?;
        self.ask(&format!("load {}", path.display())).map(drop)
    }

    fn run(&mut self, times: u32) -> Result<Duration, String> {
        let nanos = self.ask(&format!("run {times}"))?;
        let nanos = nanos.parse().map_err(|_| format!("luajit printed `{nanos}`"))?;
        Ok(Duration::from_nanos(nanos))
    }

    fn reply(&mut self) -> Result<Vec<u8>, String> {
        let path = self.directory.path().join("reply");
        self.ask(&format!("reply {}", path.display()))?;
        fs::read(path).map_err(|error| error.to_string())
    }

    fn code_bytes(&self) -> Option<usize> {
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends by itself at the end of its input, which it may not reach for long.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

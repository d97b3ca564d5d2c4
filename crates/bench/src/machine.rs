//! The machine that a measurement was taken on, and when.

use serde::{Deserialize, Serialize};
use std::{fs, process::Command, time::SystemTime};

/// What a reader must know to judge a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Machine {
    /// The processor, as `/proc/cpuinfo` calls it.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// Kernel release and version.
    pub kernel: String,
    /// Frequency governor of the first processor, where the machine shows it.
    pub governor: Option<String>,
    /// First line of `gcc --version`, if there is a gcc.
    pub gcc: Option<String>,
    /// First line of `make --version`, if there is a make.
    pub make: Option<String>,
    /// The date and time, UTC.
    pub date: String,
    /// Processes that wanted a processor during the last minute, before the measurement.
    pub load: Option<String>,
}

impl Machine {
    /// This machine, now. What it does not tell is left out.
    #[must_use]
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_kib: field("/proc/meminfo", "MemTotal")
                .and_then(|total| total.trim_end_matches(" kB").parse().ok())
                .unwrap_or_default(),
            kernel: format!("{} {}", part(uname.release()), part(uname.version())),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            gcc: version("gcc"),
            make: version("make"),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            load: line("/proc/loadavg").and_then(|load| load.split(' ').next().map(str::to_owned)),
        }
    }
}

/// One line for under a table.
impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} CPUs, Linux {}", self.cpu, self.cpus, self.kernel)?;
        if let Some(gcc) = &self.gcc {
            write!(f, ", {gcc}")?;
        }
        if let Some(load) = &self.load {
            write!(f, ", load {load} before")?;
        }
        write!(f, ", {}", self.date)
    }
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().next().map(str::to_owned)
}

/// The value behind the first `name:` of a file of such lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_memory_and_a_date() {
        let machine = Machine::here();
        assert!(machine.cpus >= 1 && machine.memory_kib > 1024, "{machine:?}");
        assert!(machine.date.starts_with("20") && machine.date.ends_with('Z'), "{machine}");
    }
}

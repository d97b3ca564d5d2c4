//! Processes outside.

use super::refused::refused;
use crate::{Case, cases, stage::Stage};
use std::process::Child;

pub(super) const CASES: &[Case] = cases![
    processes_outside_are_not_signalled,
    processes_outside_are_not_traced,
    processes_outside_do_not_show_what_they_hold,
    processes_outside_keep_priority_and_limits,
];

/// A process of the same user outside of the sandbox, ended with this value.
struct Outsider(Child);

impl Outsider {
    fn new(stage: &Stage) -> Self {
        let mut command = stage.command(&["sleep".into(), "100".into()]);
        Self(command.env("OUTSIDE_SECRET", "mine").spawn().expect("start a process outside"))
    }

    /// `program` with `pid` set to this process.
    fn attacked_by(&self, program: &str) -> String {
        format!("pid = {}\n{program}", self.0.id())
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        let alive = self.0.try_wait().expect("look at the process outside").is_none();
        let _ = self.0.kill();
        let _ = self.0.wait();
        assert!(alive || std::thread::panicking(), "the process outside was ended");
    }
}

fn processes_outside_are_not_signalled(stage: &Stage) {
    let outsider = Outsider::new(stage);
    let program = outsider.attacked_by(
        "import signal
for s in [0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP]: say(lambda: os.kill(pid, s))
say(lambda: os.killpg(pid, signal.SIGTERM)); say(lambda: os.pidfd_open(pid))",
    );
    let (_, record) = refused(stage, &program);
    record.explains(&format!("process {}", outsider.0.id()));
}

fn processes_outside_are_not_traced(stage: &Stage) {
    let outsider = Outsider::new(stage);
    let program = outsider.attacked_by(
        "import ctypes
c = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0); result = getattr(c, name)(*args)
    if result == -1: raise OSError(ctypes.get_errno(), '')
    return result
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8); here = Vector(ctypes.addressof(buffer), 8); there = Vector(0x400000, 8)
for request in [16, 0x4206]: say(lambda: call('ptrace', request, pid, 0, 0))
say(lambda: call('process_vm_readv', pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)); say(lambda: call('process_vm_writev', pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)); say(lambda: call('syscall', 312, pid, os.getpid(), 0, 0, 0))",
    );
    let (_, record) = refused(stage, &program);
    record.explains(&format!("process {}", outsider.0.id()));
}

fn processes_outside_do_not_show_what_they_hold(stage: &Stage) {
    let outsider = Outsider::new(stage);
    let program = outsider.attacked_by(
        "for name in ['environ', 'mem', 'maps', 'auxv', 'fd', 'exe', 'cwd', 'root', 'cwd/file', 'io', 'syscall', f'task/{pid}/environ']:
    path = f'/proc/{pid}/{name}'; say(lambda: os.close(os.open(path, 0)), path)",
    );
    refused(stage, &program);
}

fn processes_outside_keep_priority_and_limits(stage: &Stage) {
    let outsider = Outsider::new(stage);
    let program = outsider.attacked_by(
        "import resource
say(lambda: os.setpriority(os.PRIO_PROCESS, pid, 10)); say(lambda: os.sched_setaffinity(pid, {0})); say(lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, 8)))",
    );
    let (_, record) = refused(stage, &program);
    record.explains(&format!("process {}", outsider.0.id()));
}

//! Ctrl-C before anything is measured. A file of its own, as the signal is for the whole process.

use bench::{
    comparison::{Comparison, Medium},
    config::Config,
    runner::Plan,
    workload::Workload,
};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

#[test]
fn an_interrupt_while_a_workspace_is_filled_leaves_none_behind() {
    let made = Arc::new(Mutex::new(PathBuf::new()));
    let place = Arc::clone(&made);
    let fill = move |workspace: &std::path::Path| {
        workspace.clone_into(&mut place.lock().expect("a path"));
        Ok(kill_process(getpid(), Signal::INT)?)
    };
    let workload = Workload { fill: Some(Arc::new(fill)), ..Workload::start() };
    let configs = vec![Config::native()];
    let media = vec![Medium::memory()];
    let comparison = Comparison { workload, configs, media, plan: Plan::default() };
    let report = comparison.run(&mut |_| {}).expect("a report");
    assert!(report.runs.interrupted && report.rows[0].figures.is_err(), "{report:?}");
    let made = made.lock().expect("a path");
    assert!(made.is_absolute() && !made.exists(), "{}", made.display());
}

//! Compares native with the tools found on this machine: `measure build|walk|start|syscalls [ROUNDS]`; and native with
//! itself: `measure self SECONDS`.

use bench::{
    comparison::{Comparison, Medium},
    config::Config,
    interrupt::Interrupt,
    pairs::Aim,
    peers, progress,
    runner::Plan,
    sheet::Width,
    study::Conditions,
    syscalls::Syscalls,
    table::{self, Style},
    worker::{Task, Worker},
    workload::Workload,
};
use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["worker", task] = words[..] {
        print!("{}", task.parse::<Task>()?.run()?);
        return Ok(());
    }
    if let ["self", seconds] = words[..] {
        return against_itself(seconds.parse()?);
    }
    let rounds = words.get(1).map_or(Ok(5), |rounds| rounds.parse())?;
    let plan = Plan { rounds, ..Plan::default() };
    let configs: Vec<Config> = [Config::native()].into_iter().chain(peers::found()).collect();
    let worker = Worker { program: env::current_exe()?, arguments: vec!["worker".into()] };
    let text = match words.first() {
        Some(&"syscalls") => {
            let syscalls = Syscalls { configs, worker, medium: Medium::disk(), plan };
            syscalls.run(&mut progress::on_terminal())?.table(Style::Plain)
        }
        name => {
            let (workload, media) = match name {
                Some(&"walk") => (Workload::walk(worker), vec![Medium::disk()]),
                Some(&"start") => (Workload::start(), vec![Medium::disk()]),
                _ => (Workload::sample(1), vec![Medium::disk(), Medium::memory()]),
            };
            let comparison = Comparison { workload, configs, media, plan };
            table::comparison(&comparison.run(&mut progress::on_terminal())?, Style::Plain)
        }
    };
    progress::clear();
    println!("{text}");
    Ok(())
}

fn against_itself(budget_s: f64) -> Result<(), Box<dyn Error>> {
    let worker = Worker { program: env::current_exe()?, arguments: vec!["worker".into()] };
    let conditions = Conditions {
        configs: vec![Config::native()],
        worker,
        medium: Medium::memory(),
        aim: Aim { budget_s, ..Aim::default() },
    };
    let bar = progress::Bar::new("self");
    let interrupt = Interrupt::notice()?;
    let outcome =
        conditions.against_itself()?.run(None, &interrupt, &mut |standing| bar.show(standing))?;
    drop(bar);
    for sheet in outcome.sheets() {
        println!("{}", sheet.draw(Style::Plain, Width::Narrow));
    }
    Ok(())
}

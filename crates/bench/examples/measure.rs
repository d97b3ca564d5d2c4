//! Compares native with the tools found on this machine, or with itself:
//! `measure build|walk|start|syscalls|self SECONDS`.

use bench::{
    config::Config,
    interrupt::Interrupt,
    medium::Medium,
    pairs::Aim,
    peers, progress,
    sheet::Width,
    study::Conditions,
    table::Style,
    worker::{Task, Worker},
};
use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["worker", task] = words[..] {
        return Ok(task.parse::<Task>()?.run()?);
    }
    let budget_s = words.get(1).map_or(Ok(60.0), |seconds| seconds.parse())?;
    let conditions = Conditions {
        configs: [Config::native()].into_iter().chain(peers::found()).collect(),
        worker: Worker { program: env::current_exe()?, arguments: vec!["worker".into()] },
        medium: Medium::memory(),
        aim: Aim { budget_s, ..Aim::default() },
    };
    let study = match words.first() {
        Some(&"walk") => conditions.walk()?,
        Some(&"start") => conditions.start()?,
        Some(&"syscalls") => conditions.syscalls()?,
        Some(&"self") => conditions.against_itself()?,
        _ => conditions.build()?,
    };
    let bar = progress::Bar::new(&study.experiment.name);
    let interrupt = Interrupt::notice()?;
    let outcome = study.run(None, &interrupt, &mut |standing| bar.show(standing))?;
    drop(bar);
    for sheet in outcome.sheets() {
        println!("{}", sheet.draw(Style::Plain, Width::Narrow));
    }
    Ok(())
}

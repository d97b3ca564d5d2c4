//! How the receipt of a change is told.

use crate::{
    changed::ChangedDocument,
    control::{ChangeResult, PolicyChange},
    failure::Failed,
    output,
};
use anyhow::bail;
use cli::look;
use confine::OutOfReach;
use monitor::{Action, Held, Holder, Receipt, visible};
use std::{fmt::Write as _, time::Duration};

/// The most holders that are told one by one to people.
const MOST_ROWS: usize = 20;

/// Prints what came of a change.
///
/// # Errors
///
/// [`Failed`] if it is not in force, or not complete.
pub(crate) fn print(change: &PolicyChange, json: bool) -> anyhow::Result<()> {
    let text = if json {
        output::json(&ChangedDocument::of(change))?
    } else {
        tell(change, look::columns().unwrap_or(usize::MAX))?
    };
    output::print(text.as_bytes())?;
    match &change.outcome {
        ChangeResult::Failed(why) => bail!(Failed(format!("nothing was changed: {why}"))),
        ChangeResult::Receipt(receipt) if !receipt.complete => {
            bail!(Failed("not complete: something of it can still be used".into()))
        }
        ChangeResult::Receipt(receipt) if !receipt.out_of_reach.is_empty() => {
            bail!(Failed("the policy gives it, but part of it stays out of the run's reach".into()))
        }
        ChangeResult::Receipt(_) => Ok(()),
    }
}

/// A change and its receipt, for people.
pub(crate) fn tell(change: &PolicyChange, width: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}", look::fill(visible(&change.what).split(' '), 4, width))?;
    match &change.outcome {
        ChangeResult::Failed(why) => {
            let line = format!("not in force: {}", visible(why));
            writeln!(text, "  {}", look::fill(line.split(' '), 4, width))?;
        }
        ChangeResult::Receipt(receipt) => tell_receipt(&mut text, receipt, width)?,
    }
    Ok(text)
}

/// The same with its time, for a list.
pub(crate) fn tell_dated(change: &PolicyChange, width: usize) -> Result<String, std::fmt::Error> {
    let when = humantime::format_rfc3339_seconds(change.when);
    Ok(format!(
        "{when}\n  {}",
        tell(change, width.saturating_sub(2))?.replace('\n', "\n  ").trim_end_matches(' ')
    ))
}

fn tell_receipt(text: &mut String, receipt: &Receipt, width: usize) -> std::fmt::Result {
    if !receipt.holders.is_empty() {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["  PID", "PROCESS", "HELD", "OBJECT", "LOST", "DONE", "AFTER"]);
        for holder in receipt.holders.iter().take(MOST_ROWS) {
            table.add_row(row(holder));
        }
        if let Ok(width) = u16::try_from(width) {
            table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
            table.set_width(width);
        }
        writeln!(text, "{}", table.trim_fmt())?;
        match (receipt.count().saturating_sub(MOST_ROWS), receipt.more) {
            (0, _) => {}
            (more, 0) => writeln!(text, "   and {more} more: --json tells all")?,
            (more, unnamed) => writeln!(
                text,
                "   and {more} more: --json names all but {unnamed}, which are counted"
            )?,
        }
    }
    tell_out_of_reach(text, receipt, width)?;
    let complete = match (receipt.complete, receipt.out_of_reach.is_empty()) {
        (true, true) => "complete",
        (true, false) => "in force, NOT IN REACH,",
        (false, _) => "NOT COMPLETE",
    };
    let took = milliseconds(receipt.took);
    let (processes, threads) =
        (count(receipt.processes, "process"), count(receipt.threads, "thread"));
    let held = match receipt.count() {
        0 => "held by nobody".to_owned(),
        one_or_more => format!("{one_or_more} held"),
    };
    let line = format!(
        "{complete} after {took}: {held}; looked into {processes}, {threads}; policy state {}",
        receipt.seqno
    );
    writeln!(text, "  {}", look::fill(line.split(' '), 4, width))
}

/// Says what policy gives in vain.
pub(crate) fn tell_out_of_reach(
    text: &mut String,
    receipt: &Receipt,
    width: usize,
) -> std::fmt::Result {
    for OutOfReach { path, why } in &receipt.out_of_reach {
        let line = format!("OUT OF REACH {}: {}", visible(path), visible(why));
        writeln!(text, "  {}", look::fill(line.split(' '), 4, width.saturating_sub(2)))?;
    }
    Ok(())
}

fn row(holder: &Holder) -> [String; 7] {
    let done = match holder.reason.as_str() {
        "" => action(holder.action).to_owned(),
        reason => format!("{}: {}", action(holder.action), visible(reason)),
    };
    [
        format!("  {}", holder.pid),
        visible(&holder.comm),
        held(holder.held),
        visible(&holder.object),
        holder.lost.join(" "),
        done,
        milliseconds(holder.after),
    ]
}

fn held(held: Held) -> String {
    match held {
        Held::Descriptor(number) => format!("descriptor {number}"),
        Held::Mapping(from, to) => format!("mapping {from:x}-{to:x}"),
        Held::Connection(number) => format!("connection {number}"),
        Held::Listener(number) => format!("listener {number}"),
        Held::InFlight(number) => format!("in flight to {number}"),
        Held::Watch(inotify, watch) => format!("watch {watch} of {inotify}"),
        Held::Call => "a call".into(),
        Held::Settled => "settled".into(),
        _ => "unknown".into(),
    }
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Replaced => "replaced",
        Action::Narrowed => "read-only now",
        Action::Unmapped => "unmapped",
        Action::Reset => "reset",
        Action::ShutDown => "shut down",
        Action::Removed => "removed",
        Action::Killed => "killed",
        _ => "KEPT",
    }
}

fn count(number: u32, what: &str) -> String {
    let plural = match (number, what) {
        (1, _) => "",
        (_, "process") => "es",
        _ => "s",
    };
    format!("{number} {what}{plural}")
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn change(outcome: ChangeResult) -> PolicyChange {
        PolicyChange {
            amendment: None,
            when: SystemTime::UNIX_EPOCH,
            what: "dewar revoke --file /x".into(),
            outcome,
        }
    }

    #[test]
    fn a_receipt_names_every_holder_and_says_when_it_is_not_complete() {
        let holder = Holder {
            pid: 7,
            comm: "cat\u{1b}".into(),
            held: Held::Descriptor(3),
            object: "/x".into(),
            lost: vec!["read".into()],
            action: Action::Kept,
            reason: "why".into(),
            after: Duration::from_micros(1500),
        };
        let receipt =
            Receipt { holders: vec![holder], processes: 1, threads: 2, ..Receipt::default() };
        let change = change(ChangeResult::Receipt(receipt));
        let text = tell(&change, usize::MAX).unwrap();
        for part in [
            "descriptor 3",
            "KEPT: why",
            "1.5 ms",
            "NOT COMPLETE",
            "1 process, 2 threads",
            r"cat\u001b",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(print(&change, true).unwrap_err().is::<Failed>());
    }

    #[test]
    fn what_is_out_of_reach_is_told_in_lines_of_the_terminal() {
        let out =
            OutOfReach { path: "/home/me/notes.txt".into(), why: "it is not there ".repeat(9) };
        let receipt = Receipt { out_of_reach: vec![out], ..Receipt::default() };
        let mut text = String::new();
        tell_out_of_reach(&mut text, &receipt, 80).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(
            text.starts_with("  OUT OF REACH /home/me/notes.txt: ") && widest <= Some(80),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_in_force_is_an_error() {
        let change = change(ChangeResult::Failed("the reason".into()));
        let error = print(&change, false).unwrap_err();
        assert!(error.is::<Failed>() && error.to_string().contains("the reason"));
    }
}

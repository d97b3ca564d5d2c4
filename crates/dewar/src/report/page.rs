//! What a run did, as one page that asks nobody for anything: no script, no network, light and
//! dark.

use super::runs_inside;
use crate::{
    groups::groups,
    past_runs::took,
    run::RunRecord,
    run::document::{kind_name, time},
    words::denied,
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use monitor::{Deed, DeedKind, visible};

/// Rows of a table; the JSON has all.
const MOST_ROWS: usize = 500;

/// Marks in one lane of the timeline.
const MOST_MARKS: usize = 600;

const KINDS: [(DeedKind, &str); 5] = [
    (DeedKind::Executed, "Programs executed"),
    (DeedKind::Wrote, "Files written"),
    (DeedKind::Removed, "Names removed"),
    (DeedKind::Contacted, "Hosts and sockets contacted"),
    (DeedKind::Bound, "Addresses bound"),
];

/// The page.
pub(super) fn page(record: &RunRecord) -> String {
    let command = visible(&record.command.join(" "));
    let notes = super::caveats(record);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Run " (record.id) ": " (command) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { code { (command) } }
                    p { (head(record)) }
                    (cards(record))
                }
                main {
                    h2 { "Timeline" }
                    (timeline(record))
                    (planted(record))
                    (denials(record))
                    @for (kind, title) in KINDS { (deeds(record, kind, title)) }
                    (changes(record))
                    @if !notes.is_empty() {
                        h2 { "What this page cannot tell" }
                        ul { @for note in notes { li { (note) } } }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn head(record: &RunRecord) -> Markup {
    let status = if record.status == 0 { "good" } else { "bad" };
    html! {
        span class="soft" {
            "Run " code { (record.id) }
            @if let Some(name) = &record.name { " (" (visible(name)) ")" }
            " under " (visible(&record.profile))
            @if let Some(at) = time(record.started) { ", started " time datetime=(at) { (at) } }
            @if record.started > 0.0 { ", took " (took(record.time - record.started)) }
            ", exit status "
        }
        strong class=(status) { (record.status) }
        @if record.runs_inside > 0 {
            br;
            span class="soft" { (runs_inside(record.runs_inside)) }
        }
    }
}

fn cards(record: &RunRecord) -> Markup {
    let count = |kind| record.deeds.iter().filter(|deed| deed.kind == kind).count();
    let asked: u64 = record.decisions.iter().map(|it| it.queries).sum();
    let made = record.planted.iter().filter(|it| it.state != "refused").count();
    html! {
        ul class="cards" {
            li { strong { (count(DeedKind::Executed)) } "programs" }
            li { strong { (count(DeedKind::Wrote)) } "files written" }
            li { strong { (count(DeedKind::Contacted)) } "contacts" }
            li { strong class=[(record.denied() > 0).then_some("bad")] { (record.denied()) } "denials" }
            li { strong class=[(made > 0).then_some("warn")] { (made) } "trusted outside" }
            li { strong { (asked) } "decisions" }
        }
    }
}

/// A mark: when, of which lane, and what it is about.
type Mark = (f64, &'static str, String);

fn marks(record: &RunRecord) -> Vec<Mark> {
    let deeds = record
        .deeds
        .iter()
        .map(|deed| (deed.first, kind_name(deed.kind), format!("{}: {}", deed.comm, deed.object)));
    let denials = record.denials.iter().map(|denial| {
        let it = &denial.record;
        (it.time, "denied", format!("{} may not {} {}", it.comm, denied(it), it.object))
    });
    let changes = record.changes.iter().map(|change| {
        let when = change.when.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        (when.as_secs_f64(), "changed", change.what.clone())
    });
    deeds.chain(denials).chain(changes).collect()
}

/// One lane for each kind of event, from the start to the end.
fn timeline(record: &RunRecord) -> Markup {
    const LEFT: f64 = 90.0;
    const WIDE: f64 = 790.0;
    let marks = marks(record);
    let first = marks.iter().map(|mark| mark.0).fold(f64::INFINITY, f64::min);
    let begin = if record.started > 0.0 { record.started } else { first };
    let length = (record.time - begin).max(1e-3);
    if marks.is_empty() || !begin.is_finite() {
        return html! { p class="soft" { "Nothing with a time is on record." } };
    }
    const LANES: [&str; 7] =
        ["executed", "wrote", "removed", "contacted", "bound", "denied", "changed"];
    let lanes: Vec<&str> =
        LANES.into_iter().filter(|lane| marks.iter().any(|mark| mark.1 == *lane)).collect();
    let bottom = lanes.len() * 30 + 8;
    let x = |at: f64| format!("{:.1}", LEFT + ((at - begin) / length).clamp(0.0, 1.0) * WIDE);
    html! {
        div class="scroll" {
            svg viewBox=(format!("0 0 900 {}", bottom + 22)) role="img" aria-labelledby="timeline-title" {
                title id="timeline-title" { "When the run did what, in " (took(length)) }
                @for (index, lane) in lanes.iter().enumerate() {
                    @let y = index * 30 + 20;
                    text x="0" y=(y + 4) { (lane) }
                    line class="lane" x1=(LEFT) x2=(LEFT + WIDE) y1=(y) y2=(y) {}
                    @for mark in marks.iter().filter(|mark| mark.1 == *lane).take(MOST_MARKS) {
                        rect class=(lane) x=(x(mark.0)) y=(y - 9) width="3" height="18" rx="1" {
                            title { (took((mark.0 - begin).max(0.0))) " " (visible(&mark.2)) }
                        }
                    }
                }
                @for quarter in 0..5 {
                    @let at = length * f64::from(quarter) / 4.0;
                    text x=(x(begin + at)) y=(bottom + 14) text-anchor=(if quarter == 4 { "end" } else { "start" }) {
                        (took(at))
                    }
                }
            }
        }
    }
}

fn planted(record: &RunRecord) -> Markup {
    html! {
        h2 { "What programs outside would execute because of it" }
        @if !record.guarded {
            p class="soft" { "Nothing was looked for: the profile sets no guard (" code { "files.guard" } ")." }
        } @else if record.planted.is_empty() {
            p { "Nothing was made or changed by a name that programs outside are known to execute." }
        } @else {
            table {
                thead { tr { th scope="col" { "" } th scope="col" { "File" } th scope="col" { "Who would execute it" } } }
                tbody {
                    @for it in record.planted.iter().take(MOST_ROWS) {
                        tr {
                            td class=(if it.when_built { "soft" } else { "warn" }) { (it.state) }
                            td { code { (visible(&it.path)) } }
                            td { (visible(&it.runs)) @if it.when_built { " (when somebody builds, tests or starts the project)" } }
                        }
                    }
                }
            }
        }
    }
}

fn denials(record: &RunRecord) -> Markup {
    let groups = groups(&record.denials);
    html! {
        h2 { "Denials" }
        @if groups.is_empty() {
            p { "No denial was recorded." }
        } @else {
            table {
                thead { tr {
                    th scope="col" { "Who" } th scope="col" { "may not" } th scope="col" { "Object" }
                    th scope="col" class="number" { "Times" } th scope="col" { "Why" }
                } }
                tbody {
                    @for group in groups.iter().take(MOST_ROWS) {
                        @let denial = group.members[0].1;
                        tr {
                            td { (visible(&denial.record.comm)) }
                            td class="bad" { (denied(&denial.record)) }
                            td { code { (visible(&group.pattern)) } @if group.members.len() > 1 { " (" (group.members.len()) " objects)" } }
                            td class="number" { (group.times()) }
                            td {
                                (visible(&denial.record.reason))
                                @for rule in &denial.profile_rules { br; code { (visible(rule)) } }
                            }
                        }
                    }
                }
            }
            @if record.dropped > 0 { p class="soft" { (record.dropped) " more were not kept." } }
        }
    }
}

fn deeds(record: &RunRecord, kind: DeedKind, title: &str) -> Markup {
    let all: Vec<&Deed> = record.deeds.iter().filter(|deed| deed.kind == kind).collect();
    let more = record.deeds_more.iter().find(|(it, _)| *it == kind).map_or(0, |(_, count)| *count);
    let hidden = all.len().saturating_sub(MOST_ROWS) as u64 + more;
    html! {
        @if !all.is_empty() {
            h2 { (title) }
            table {
                thead { tr {
                    th scope="col" { "What" } th scope="col" { "By" }
                    th scope="col" class="number" { "Times" } th scope="col" class="number" { "After" }
                } }
                tbody {
                    @for deed in all.iter().take(MOST_ROWS) {
                        tr {
                            td { code { (visible(&deed.object)) } }
                            td { (visible(&deed.comm)) }
                            td class="number" { (deed.count) }
                            td class="number" { @if record.started > 0.0 { (took((deed.first - record.started).max(0.0))) } }
                        }
                    }
                }
            }
            @if hidden > 0 { p class="soft" { (hidden) " more are not shown." } }
        }
    }
}

fn changes(record: &RunRecord) -> Markup {
    html! {
        @if !record.changes.is_empty() {
            h2 { "Changes of its policy" }
            ul { @for change in &record.changes {
                li { (crate::run::document::moment(change.when)) " " code { (visible(&change.what)) } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Denial;
    use monitor::Record;

    #[test]
    fn what_a_program_chose_stays_text() {
        let nasty = "<script>alert(1)</script>\u{1b}[2J".to_owned();
        let deed = Deed {
            kind: DeedKind::Wrote,
            object: nasty.clone(),
            comm: nasty.clone(),
            pid: 1,
            count: 1,
            first: 1.0,
            last: 1.0,
        };
        let record = Record { comm: nasty.clone(), object: nasty.clone(), ..Record::default() };
        let denials = vec![Denial { record, profile_rules: vec![nasty.clone()] }];
        let command = vec![nasty];
        let run =
            RunRecord { deeds: vec![deed], denials, command, time: 2.0, ..RunRecord::default() };
        let page = page(&run);
        assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"), "{page}");
        for word in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
    }
}

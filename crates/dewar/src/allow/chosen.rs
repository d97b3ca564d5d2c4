//! Which denials `dewar allow` is about.

use super::AllowArgs;
use crate::{
    entries::directory_of,
    failure::Usage,
    fitting::access,
    guarded::Guarded,
    machine,
    names::is_name_of,
    run::{Denial, RunRecord, Unseen},
    shell::quoted,
};
use anyhow::bail;
use monitor::visible;
use std::path::Path;

/// What the arguments of `dewar allow` name.
pub(super) struct Wanted {
    pub(super) run: Option<String>,
    pub(super) numbers: Vec<usize>,
    pub(super) objects: Vec<String>,
}

/// What the arguments name.
///
/// # Errors
///
/// [`Usage`].
pub(super) fn wanted(args: &AllowArgs) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted { run: None, numbers: Vec::new(), objects: Vec::new() };
    for (index, word) in args.what.iter().enumerate() {
        if let Some((low, high)) = range(word) {
            wanted.numbers.extend(low..=high);
        } else if word.starts_with('.') && word.contains('/') {
            wanted.objects.push(machine::real(Path::new(word)).display().to_string());
        } else if word.starts_with(['/', '@']) || word.contains(':') {
            wanted.objects.push(word.trim_end_matches('/').to_owned());
        } else if index == 0 {
            wanted.run = Some(word.clone());
        } else {
            bail!(Usage(format!(
                "`{word}` is neither the number of a denial nor a path from the root; the run comes first"
            )));
        }
    }
    if wanted.numbers.is_empty() && wanted.objects.is_empty() && !args.all {
        bail!(Usage(
            "which denials? Name their numbers, as `dewar explain` tells them, or --all".into()
        ));
    }
    Ok(wanted)
}

/// `3`, or `2-5`.
fn range(word: &str) -> Option<(usize, usize)> {
    // A run that is denied without end has large numbers, few of which are kept.
    let number =
        |text: &str| text.parse().ok().filter(|number: &usize| (1..10_000_000).contains(number));
    let (low, high) = word.split_once('-').unwrap_or((word, word));
    Some((number(low)?, number(high)?)).filter(|(low, high)| high.saturating_sub(*low) < 10_000)
}

/// The denials of `record`, or of what it does not see, that are `wanted`.
///
/// # Errors
///
/// [`Usage`].
pub(super) fn chosen<'a>(
    args: &AllowArgs,
    wanted: &Wanted,
    (record, unseen): (&'a RunRecord, &'a [Denial]),
) -> anyhow::Result<Vec<&'a Denial>> {
    let denials = &record.denials;
    if denials.is_empty() && (!args.all && wanted.objects.is_empty() || unseen.is_empty()) {
        let named = unseen.first().map(|it| {
            format!("; `dewar allow {}` lets it see that", quoted(&visible(&it.record.object)))
        });
        let command = visible(&record.command.join(" "));
        let told = named.unwrap_or_else(|| not_seen(record, &wanted.objects));
        bail!(Usage(format!("`{command}` was denied nothing{told}")));
    }
    if args.all {
        let outer = denials.iter().filter(|denial| !is_inside(denial));
        // As the end of the run speaks of it.
        let unseen = unseen.iter().filter(|_| record.likeliest().is_none());
        return Ok(outer.chain(unseen).collect());
    }
    let mut chosen = Vec::new();
    for number in &wanted.numbers {
        let is_it = |(index, denial): &(usize, &Denial)| denial.number(*index) == *number;
        let Some((_, denial)) = denials.iter().enumerate().find(is_it) else {
            let more = if record.dropped > 0 || record.goes_on { ", or no more" } else { "" };
            bail!(Usage(format!(
                "there is no denial {number}{more}: `{}` has {}, which `dewar explain` tells",
                visible(&record.command.join(" ")),
                denials.len()
            )));
        };
        chosen.push(denial);
    }
    let workspace = record.variables.as_ref().map(|it| &*it.workspace);
    for object in &wanted.objects {
        let before = chosen.len();
        let is_meant = |denial: &&Denial| {
            let access = access(&denial.record);
            let directory = directory_of(&access).map(Path::to_string_lossy);
            let guarded = Guarded::by_guard(&denial.record);
            let whole = guarded.zip(workspace).and_then(|(it, workspace)| it.repository(workspace));
            let is_it = |name: &str| is_name_of(Path::new(object), name);
            is_it(&denial.record.object)
                || directory.is_some_and(|name| is_it(&name))
                || whole.is_some_and(is_it)
        };
        chosen.extend(denials.iter().chain(unseen).filter(is_meant));
        if chosen.len() == before {
            let told = not_seen(record, std::slice::from_ref(object));
            bail!(Usage(format!("the run was not denied `{}`{told}", visible(object))));
        }
    }
    if let Some(denial) = chosen.iter().find(|denial| is_inside(denial)) {
        bail!(Usage(format!(
            "`{}` was denied a run inside of the run, as {}: its profile is not the one of this run",
            visible(&denial.record.object),
            visible(flask::domain_of(&denial.record.scontext))
        )));
    }
    Ok(chosen)
}

/// What is to be made in a directory that the run could not make.
pub(super) fn below(object: &str, denials: &[Denial]) -> Option<Denial> {
    let is_above = |it: &&Denial| {
        it.record.call.starts_with("mkdir")
            && Path::new(object)
                .ancestors()
                .skip(1)
                .any(|above| above == Path::new(&it.record.object))
    };
    let mut denial = denials.iter().rfind(is_above)?.clone();
    denial.record.object = object.to_owned();
    Some(denial)
}

/// What is said of what the command names and does not see, of `objects` or of all.
fn not_seen(record: &RunRecord, objects: &[String]) -> String {
    let is_meant =
        |it: &&Unseen| objects.is_empty() || objects.iter().any(|name| it.is_named(name));
    let variables = record.variables.clone().unwrap_or_default();
    let told = record.unseen.iter().find(is_meant).map(|it| it.told(&variables));
    told.map_or(String::new(), |told| format!("; {told}"))
}

/// Whether it was denied to a run inside, whose own profile may be the reason.
fn is_inside(denial: &Denial) -> bool {
    flask::domain_of(&denial.record.scontext).contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screens::record;

    #[test]
    fn a_number_stands_for_the_denial_that_has_it_and_for_no_other() {
        let mut record = record();
        record.denials.truncate(3);
        for (denial, number) in record.denials.iter_mut().zip([1, 2, 2231]) {
            denial.record.number = number;
        }
        let object = record.denials[2].record.object.clone();
        let chosen = |number: &str| {
            let args = AllowArgs::naming(&["ci", number]);
            let chosen = chosen(&args, &wanted(&args)?, (&record, &[]));
            chosen.map(|all| all.iter().map(|it| it.record.object.clone()).collect::<Vec<_>>())
        };
        assert_eq!(chosen("2231").unwrap(), [object]);
        for gone in ["3", "2230", "2232", "4-2231"] {
            let error = chosen(gone).unwrap_err().to_string();
            assert!(error.contains("there is no denial"), "{gone}: {error}");
        }
    }

    #[test]
    fn what_lies_in_a_directory_that_could_not_be_made_is_allowed_by_its_name() {
        let mut made = record().denials.remove(0);
        (made.record.call, made.record.object) = ("mkdir".into(), "/home/me/.config".into());
        let record = RunRecord { denials: vec![made.clone()], ..record() };
        for (object, want) in [
            ("/home/me/.config/fish", Some("/home/me/.config/fish")),
            ("/home/me/.config", None),
            ("/home/me/.configs/fish", None),
        ] {
            let found = below(object, &record.denials).map(|it| it.record.object);
            assert_eq!(found.as_deref(), want, "{object}");
        }
        made.record.call = "openat".into();
        assert!(below("/home/me/.config/fish", &[made]).is_none());
    }
}

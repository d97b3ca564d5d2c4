//! What a run that goes on can be given.

use crate::run::{Denial, RunRecord};
use monitor::visible;

/// How a run that goes on is given what it was denied.
pub(super) fn offer(record: &RunRecord) -> Option<String> {
    let is_open = |denial: &Denial| can_be_given(record, denial);
    let called = visible(record.called());
    let given = format!("`dewar allow {called} N --once` gives the run what is numbered [N]");
    match (record.denials.iter().any(is_open), record.denials.iter().all(is_open)) {
        _ if record.denials.is_empty() => None,
        (_, true) => Some(given),
        (true, false) => Some(given + ", but for what is not in its view, which was made at its start"),
        (false, _) => Some(
            "this run cannot be given it any more: it is not in its view, which was made at its start; `dewar allow N`, \
             once it has ended, allows it from then on"
                .to_owned(),
        ),
    }
}

/// Whether the run's view has what was denied, as far as that can be told.
pub(super) fn can_be_given(record: &RunRecord, denial: &Denial) -> bool {
    !record.out_of_view.contains(&denial.record.object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor::Record;

    #[test]
    fn what_is_not_in_the_view_of_a_run_is_not_offered() {
        let denial = |object: &str| Denial {
            record: Record { object: object.into(), ..Record::default() },
            profile_rules: Vec::new(),
        };
        let mut record = RunRecord { id: "4k7m2p9x".into(), ..RunRecord::default() };
        assert_eq!(offer(&record), None);
        record.denials = vec![denial("/home/me/a"), denial("/home/me/b")];
        assert!(offer(&record).unwrap().ends_with("gives the run what is numbered [N]"));
        record.out_of_view.push("/home/me/a".into());
        assert!(offer(&record).unwrap().contains("but for what is not in its view"));
        record.out_of_view.push("/home/me/b".into());
        assert!(offer(&record).unwrap().starts_with("this run cannot be given it"));
    }
}

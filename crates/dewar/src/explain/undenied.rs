//! What is said of a run that was denied nothing.

use crate::run::{RunRecord, WHILE_IT_RAN, kept_out, path_unseen};

/// What finds out what is absent: that is no denial.
const UNTOLD: &str = "if the command fails under Dewar alone, `dewar learn -- COMMAND` finds out what it needs; it \
                      runs the command with nearly everything allowed";

/// How remarks end on what no profile changes.
const OUTSIDE: &str = "o this outside";

/// Sentences, each a paragraph.
pub(super) fn undenied(record: &RunRecord) -> Vec<String> {
    let mut told: Vec<String> = record.above.iter().cloned().collect();
    if record.status == 0 || record.time_limit.is_some() {
        return told;
    }
    let is_why = |it: &String| it.ends_with(OUTSIDE) || it.ends_with(WHILE_IT_RAN);
    if !record.remarks.iter().any(is_why) {
        told.push(UNTOLD.to_owned());
    }
    let is_told = |line: &String| record.remarks.contains(line);
    told.extend(path_unseen(record).filter(|line| !is_told(line)));
    told.extend(kept_out(record));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_learn_what_no_profile_changes() {
        let mut record = RunRecord { status: 126, ..RunRecord::default() };
        assert_eq!(undenied(&record), [UNTOLD]);
        record.remarks.push("`ping` is such a program. Do this outside".into());
        assert!(undenied(&record).is_empty());
        record.remarks = vec!["`dewar revoke --all` killed sleep while the command ran".into()];
        assert!(undenied(&record).is_empty());
        let record = RunRecord { above: Some("/u is out of reach".into()), ..RunRecord::default() };
        assert_eq!(undenied(&record), ["/u is out of reach"], "it may not fail");
    }
}

//! The regular expressions of labelling rules.

use flask::FileRule;
use regex_syntax::ParserBuilder;

/// A labelling rule does not compile.
#[derive(Debug, thiserror::Error)]
#[error("labelling rule `{path}` is not a regular expression")]
pub struct BadRule {
    pub(crate) path: String,
    #[source]
    pub(crate) source: regex::Error,
}

/// The expression of a rule, for whole paths.
pub(crate) fn anchored(rule: &FileRule) -> Result<String, BadRule> {
    // Compiled is only the automaton for all, which has a bound: one by one, a few megabytes of
    // rules would take an hour.
    match ParserBuilder::new().utf8(false).unicode(false).build().parse(&rule.path) {
        Ok(_) => Ok(format!("^(?:{})$", rule.path)),
        Err(error) => {
            let source = regex::Error::Syntax(error.to_string());
            Err(BadRule { path: rule.path.clone(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathRules;
    use flask::{FileKind, Sid};
    use std::time::{Duration, Instant};

    fn rule(path: String) -> FileRule {
        FileRule { path, kind: FileKind::Any, sid: Sid::new(102) }
    }

    #[test]
    fn rules_that_are_too_much_together_are_refused_at_once() {
        let large = |number| rule(format!("/x{number}/(a{{1,1000}}){{1,100}}"));
        let rules: Vec<FileRule> = (0..20_000).map(large).collect();
        let begun = Instant::now();
        assert!(PathRules::new(&rules).is_err());
        // Compiled one by one, they take a quarter of an hour.
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_is_an_expression_only_beside_others_is_refused() {
        for path in ["/a)|(?:/b", "/a(", "/a[", "/a{2,1}", r"/a\", "(?<n"] {
            let error = PathRules::new(&[rule(path.into())]).expect_err(path).to_string();
            assert!(error.contains(path), "{error}");
        }
    }
}

//! What a policy from inside says of its denials: records keep it, and its author is not trusted.

use flask::Explanation;

/// Rules that are kept of an explanation, with the line that says how many more there are.
const MOST_RULES: usize = 17;

/// Bytes that are kept of each text.
const MOST_BYTES: usize = 1024;

/// As much of an explanation as records have room for.
pub(crate) fn shortened(explained: Explanation) -> Explanation {
    let Explanation { rules, reason, would_allow } = explained;
    Explanation {
        rules: rules.into_iter().take(MOST_RULES).map(cut).collect(),
        reason: cut(reason),
        // A part of a rule is none.
        would_allow: would_allow.filter(|rule| rule.len() <= MOST_BYTES),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_BYTES {
        text.truncate(text.floor_char_boundary(MOST_BYTES));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::{Layer, Stack, stack::Compound};
    use flask::{Class, InitialSid, Question, SecurityServer, perm};
    use inode_labels::Labels;
    use labelling::{Networks, PathRules};
    use security_server::Server;
    use std::{fmt::Write as _, sync::Arc};

    const OUTER: &str = "
        (class file (read open)) (classorder (file))
        (user u) (role r) (userrole u r) (type main_t) (type data_t)
        (roletype r main_t) (roletype object_r data_t)
        (sid kernel) (sid init) (sidorder (kernel init))
        (sidcontext kernel (u r main_t)) (sidcontext init (u r main_t))";

    #[test]
    fn what_a_policy_from_inside_says_of_a_denial_is_short() {
        let granted = format!("{OUTER} (allow main_t data_t (file (read open)))");
        let mut inner = granted.clone();
        for n in 0..5000 {
            write!(
                inner,
                "(typeattribute a{n}) (typeattributeset a{n} (data_t))
                 (allow main_t a{n} (file (open)))"
            )
            .unwrap();
        }
        inner.push_str("(constrain (file (open)) (neq t2 data_t))");
        let server = |cil: &str| Arc::new(Server::from_cil(&[("test", cil)]).unwrap());
        let (outer, inner) = (server(&granted), server(&inner));
        let data = outer.context_to_sid("u:object_r:data_t").unwrap();
        let own = inner.context_to_sid("u:object_r:data_t").unwrap();
        let stack = Stack::new(outer);
        let (labels, networks) = (PathRules::new(&[]).unwrap(), inner.label_rules().unwrap());
        stack.add(Arc::new(Layer {
            number: 1,
            name: "inner".into(),
            server: inner,
            labels: Labels::new(labels),
            networks: Networks::new(&networks),
            bytes: 0,
        }));
        let compose = |outer, inner| {
            stack.compose(Compound { inner: vec![(1, inner)], ..Compound::plain(outer) })
        };
        let ssid = compose(InitialSid::Init.into(), InitialSid::Init.into()).unwrap();
        let tsid = compose(data, own).unwrap();
        let question = Question { ssid, tsid, tclass: Class::File };
        let said = stack.explain(question, perm::file::OPEN).unwrap();
        assert!(said.reason.contains("constraint"), "{}", said.reason);
        let rules: usize = said.rules.iter().map(String::len).sum();
        assert!(rules + said.reason.len() < 32 << 10, "{} rules, {rules} bytes", said.rules.len());
    }
}

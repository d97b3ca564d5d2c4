//! Rules of the caller's own CIL that decide nothing in a run, because no object manager of it
//! asks: named when the run starts. Who writes a rule believes that it holds.

use flask::Class;

/// Classes that are asked about by servers which host plugins and ports, not by a run.
const OF_SERVERS: [&str; 3] = ["plugin", "port", "request"];
/// Permissions of a run's classes that nothing asks for.
const NEVER_ASKED: [(&str, &str); 2] = [("", "append"), ("process", "setpgid")];
/// Statements that grant, deny or record; the class and its permissions come third.
const RULES: [&str; 5] = ["allow", "auditallow", "dontaudit", "neverallow", "deny"];
const EXTENDED: [&str; 4] = ["allowx", "auditallowx", "dontauditx", "neverallowx"];
const LEVELS: [&str; 2] = ["mlsconstrain", "mlsvalidatetrans"];

/// An expression of CIL, and the line it begins in.
#[derive(Debug)]
enum Expr<'a> {
    Word(&'a str, usize),
    List(Vec<Self>, usize),
}

impl<'a> Expr<'a> {
    fn word(&self) -> Option<&'a str> {
        if let Self::Word(word, _) = self { Some(word) } else { None }
    }

    fn items(&self) -> &[Self] {
        if let Self::List(items, _) = self { items } else { &[] }
    }

    fn line(&self) -> usize {
        let (Self::Word(_, line) | Self::List(_, line)) = self;
        *line
    }
}

/// What decides nothing in `added`, the name and the text of each file; a message each. `policy` is
/// the text they are added to.
pub(super) fn unchecked(policy: &str, added: &[(String, String)]) -> Vec<String> {
    if added.is_empty() {
        return Vec::new();
    }
    let is_multilevel = std::iter::once(policy)
        .chain(added.iter().map(|(_, text)| text.as_str()))
        .any(|text| statements(text).iter().any(turns_levels_on));
    let mut found = Vec::new();
    for (name, text) in added {
        for statement in statements(text) {
            look(&statement, is_multilevel, &mut |line, what| {
                found.push(format!("{name}:{line}: {what}"));
            });
        }
    }
    found
}

fn turns_levels_on(statement: &Expr<'_>) -> bool {
    let words: Vec<_> = statement.items().iter().map(Expr::word).collect();
    words == [Some("mls"), Some("true")]
}

fn look(statement: &Expr<'_>, is_multilevel: bool, report: &mut dyn FnMut(usize, String)) {
    let [head, rest @ ..] = statement.items() else { return };
    let (Some(head), line) = (head.word(), statement.line()) else {
        return;
    };
    if EXTENDED.contains(&head) {
        report(
            line,
            format!(
                "no object manager looks at `{head}`: what a request of ioctl does is decided by file"
            ),
        );
    } else if LEVELS.contains(&head) && !is_multilevel {
        report(
            line,
            format!("`{head}` holds only in a policy with levels, and this one has `(mls false)`"),
        );
    } else if RULES.contains(&head) {
        if let Some(class) = rest.get(2) {
            look_at_class(class, line, report);
        }
    } else {
        // Blocks, optionals, booleans: rules stand in them.
        rest.iter().for_each(|inner| look(inner, is_multilevel, report));
    }
}

/// `(CLASS (PERMISSION …))`; what has a name of its own is not followed.
fn look_at_class(of: &Expr<'_>, line: usize, report: &mut dyn FnMut(usize, String)) {
    let [class, permissions @ ..] = of.items() else { return };
    let Some(class) = class.word() else { return };
    if Class::by_name(class).is_none() || OF_SERVERS.contains(&class) {
        report(
            line,
            format!(
                "no object manager of a run asks about class `{class}`: the rule decides nothing"
            ),
        );
        return;
    }
    for name in permissions.iter().flat_map(Expr::items).filter_map(Expr::word) {
        let is_file = Class::by_name(class).is_some_and(|it| it.permission("append").is_some());
        let never = NEVER_ASKED
            .iter()
            .any(|(of, never)| *never == name && (*of == class || (of.is_empty() && is_file)));
        if never {
            report(
                line,
                format!("nothing asks for `{name}` of class `{class}`: the rule decides nothing"),
            );
        }
    }
}

/// The statements of a text, as far as they are well formed; the compiler says what is not.
fn statements(text: &str) -> Vec<Expr<'_>> {
    let mut open: Vec<(Vec<Expr<'_>>, usize)> = vec![(Vec::new(), 0)];
    for (number, line) in text.lines().enumerate() {
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            rest = &rest[start..];
            let length = match rest.as_bytes()[0] {
                b';' => break,
                b'(' => {
                    open.push((Vec::new(), number + 1));
                    1
                }
                b')' => {
                    if open.len() > 1
                        && let Some((items, line)) = open.pop()
                        && let Some((outer, _)) = open.last_mut()
                    {
                        outer.push(Expr::List(items, line));
                    }
                    1
                }
                b'"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                _ => {
                    let ends = |c: char| c.is_whitespace() || "();\"".contains(c);
                    let length = rest.find(ends).unwrap_or(rest.len());
                    if let Some((items, _)) = open.last_mut() {
                        items.push(Expr::Word(&rest[..length], number + 1));
                    }
                    length
                }
            };
            rest = &rest[length..];
        }
    }
    open.swap_remove(0).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        unchecked("(mls false)", &[("more.cil".into(), text.into())])
    }

    #[test]
    fn rules_that_nothing_asks_for_are_named_with_their_place() {
        for (text, want) in [
            (
                "(allow main_t x_t (plugin (call)))",
                "more.cil:1: no object manager of a run asks about class `plugin`",
            ),
            (
                "\n(optional o (allow main_t x_t (gadget (turn))))",
                "more.cil:2: no object manager of a run asks about class `gadget`",
            ),
            ("(allow main_t x_t (file (read append)))", "`append` of class `file`"),
            ("(allow main_t self (process (setpgid)))", "`setpgid`"),
            ("(allowx main_t x_t (ioctl chr_file (range 0x5400 0x54ff)))", "`allowx`"),
            ("(mlsconstrain (file (read)) (dom l1 l2))", "`mlsconstrain` holds only"),
        ] {
            let said = said(text);
            assert!(said.len() == 1 && said[0].contains(want), "{text}: {said:?}");
        }
    }

    #[test]
    fn rules_that_decide_something_are_not() {
        for text in [
            "(allow main_t x_t (file (read open))) ; (allow a b (plugin (call)))",
            "(booleanif b (true (allow main_t self (process (fork)))))",
            "(filecon \"/x(/.*)?\" any (u r t ((s0) (s0))))",
            "(mls true) (mlsconstrain (file (read)) (dom l1 l2))",
            "(allow main_t x_t named_set)",
            ")))((",
        ] {
            assert_eq!(said(text), Vec::<String>::new(), "{text}");
        }
    }
}

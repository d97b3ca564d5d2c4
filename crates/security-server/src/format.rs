//! Rules as CIL spells them.

use crate::policy::{
    AvRule, BoolStep, Comparison, Constraint, Expr, LevelPair, Policy, Step, Subject, Symbol,
    TypeRule,
};
use crate::{BitSet, ClassId, CondId};

impl Policy {
    /// `(allow source target (class (permission …)))`.
    #[must_use]
    pub fn format_rule(&self, rule: &AvRule) -> String {
        format!(
            "({} {} {} ({} {}))",
            rule.kind.keyword(),
            self.type_name(rule.source),
            self.type_name(rule.target),
            self.class_name(rule.class),
            self.format_perms(rule.class, rule.perms),
        )
    }

    /// `(typetransition source target class result)`.
    #[must_use]
    pub fn format_type_rule(&self, rule: &TypeRule) -> String {
        format!(
            "({} {} {} {} {})",
            rule.key.kind.keyword(),
            self.type_name(rule.key.source),
            self.type_name(rule.key.target),
            self.class_name(rule.key.class),
            self.type_name(rule.result),
        )
    }

    /// `(read write)`.
    #[must_use]
    pub fn format_perms(&self, class: ClassId, perms: u32) -> String {
        let class = self.classes.get_index(class.index()).map(|(_, class)| class);
        let names: Vec<&str> = class.into_iter().flat_map(|class| class.names_of(perms)).collect();
        format!("({})", names.join(" "))
    }

    /// The expression of a condition.
    #[must_use]
    pub fn format_condition(&self, id: CondId) -> String {
        let steps = self.conditions.get(id.index()).map_or(&[][..], |c| c.steps());
        let name = |step: &BoolStep| match step {
            BoolStep::Bool(id) => {
                Ok(self.booleans.get_index(id.index()).map_or("?", |(n, _)| n).to_owned())
            }
            BoolStep::Not => Err(("not", 1)),
            BoolStep::And => Err(("and", 2)),
            BoolStep::Or => Err(("or", 2)),
            BoolStep::Xor => Err(("xor", 2)),
            BoolStep::Eq => Err(("eq", 2)),
            BoolStep::Neq => Err(("neq", 2)),
        };
        prefix(steps.iter().map(name))
    }

    /// `(mlsconstrain (class (permission …)) expression)`.
    #[must_use]
    pub fn format_constraint(&self, class: ClassId, constraint: &Constraint) -> String {
        let keyword = if constraint.is_mls() { "mlsconstrain" } else { "constrain" };
        let class_name = self.class_name(class);
        let perms = self.format_perms(class, constraint.perms);
        format!("({keyword} ({class_name} {perms}) {})", self.format_expression(constraint))
    }

    /// The expression of a constraint.
    #[must_use]
    pub fn format_expression(&self, constraint: &Constraint) -> String {
        prefix(constraint.program.steps().iter().map(|step| match step {
            Step::Test(expr) => Ok(self.format_test(expr)),
            Step::Not => Err(("not", 1)),
            Step::And => Err(("and", 2)),
            Step::Or => Err(("or", 2)),
        }))
    }

    fn format_test(&self, expr: &Expr) -> String {
        match expr {
            Expr::Symbols(symbol, comparison) => {
                let letter = symbol_letter(*symbol);
                format!("({} {letter}1 {letter}2)", comparison_word(*comparison))
            }
            Expr::Levels(pair, comparison) => {
                let (a, b) = level_words(*pair);
                format!("({} {a} {b})", comparison_word(*comparison))
            }
            Expr::Names { subject, symbol, negated, set } => {
                let number = match subject {
                    Subject::Source => 1,
                    Subject::Target => 2,
                    Subject::Process => 3,
                };
                let word = if *negated { "neq" } else { "eq" };
                let names = self.names_of_set(*symbol, set);
                format!("({word} {}{number} {names})", symbol_letter(*symbol))
            }
        }
    }

    /// The members of a set as a list, or the attribute that has exactly these.
    fn names_of_set(&self, symbol: Symbol, set: &BitSet) -> String {
        let one = |index: usize| match symbol {
            Symbol::User => self.users.get_index(index).map_or("?", |(name, _)| name),
            Symbol::Role => self.roles.get_index(index).map_or("?", |(name, _)| name),
            Symbol::Type => self.types.get_index(index).map_or("?", |(name, _)| name),
        };
        if symbol == Symbol::Type && set.len() > 1 {
            let attribute = self.types.iter().find(|(_, entry)| entry.members == *set);
            if let Some((name, _)) = attribute {
                return name.to_string();
            }
        }
        let names: Vec<&str> = set.iter().map(one).collect();
        if let [name] = names[..] { name.to_owned() } else { format!("({})", names.join(" ")) }
    }
}

/// Postfix to prefix: `Ok` is an operand, `Err` an operator and how many operands it takes.
fn prefix(steps: impl Iterator<Item = Result<String, (&'static str, usize)>>) -> String {
    let mut operands: Vec<String> = Vec::new();
    for step in steps {
        let operand = match step {
            Ok(operand) => operand,
            Err((word, count)) => {
                let taken = operands.split_off(operands.len().saturating_sub(count));
                format!("({word} {})", taken.join(" "))
            }
        };
        operands.push(operand);
    }
    operands.pop().unwrap_or_default()
}

pub(crate) fn symbol_letter(symbol: Symbol) -> char {
    match symbol {
        Symbol::User => 'u',
        Symbol::Role => 'r',
        Symbol::Type => 't',
    }
}

fn comparison_word(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "eq",
        Comparison::Neq => "neq",
        Comparison::Dom => "dom",
        Comparison::DomBy => "domby",
        Comparison::Incomp => "incomp",
    }
}

fn level_words(pair: LevelPair) -> (&'static str, &'static str) {
    match pair {
        LevelPair::L1L2 => ("l1", "l2"),
        LevelPair::L1H2 => ("l1", "h2"),
        LevelPair::H1L2 => ("h1", "l2"),
        LevelPair::H1H2 => ("h1", "h2"),
        LevelPair::L1H1 => ("l1", "h1"),
        LevelPair::L2H2 => ("l2", "h2"),
    }
}

impl Constraint {
    /// Whether the expression compares levels.
    #[must_use]
    pub fn is_mls(&self) -> bool {
        let steps = self.program.steps().iter();
        steps.filter(|step| matches!(step, Step::Test(Expr::Levels(..)))).count() > 0
    }
}

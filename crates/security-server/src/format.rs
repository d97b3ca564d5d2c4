//! Rules as CIL spells them.

use crate::policy::{
    AvRule, BoolStep, Branch, Class, Comparison, Constraint, DefaultFrom, DefaultRange, Expr,
    Level, LevelPair, Policy, Range, Step, Subject, Symbol, TypeRule, XpermKind, XpermRule,
};
use crate::{BitSet, ClassId, CondId, RoleId, TypeId};

/// What transitions are looked up by: type or role of the subject, type of the related object,
/// class.
type Key<T> = (T, TypeId, ClassId);

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

    /// `(allowx source target (ioctl class (numbers)))`.
    #[must_use]
    pub fn format_xperm_rule(&self, rule: &XpermRule) -> String {
        let (head, numbers) = self.split_xperm_rule(rule);
        format!("({head} ({})))", numbers.join(" "))
    }

    /// `allowx source target (ioctl class` and the numbers.
    pub(crate) fn split_xperm_rule(&self, rule: &XpermRule) -> (String, Vec<String>) {
        let family = match rule.family {
            XpermKind::Ioctl => "ioctl",
            XpermKind::Nlmsg => "nlmsg",
        };
        let head = format!(
            "{}x {} {} ({family} {}",
            rule.kind.keyword(),
            self.type_name(rule.source),
            self.type_name(rule.target),
            self.class_name(rule.class),
        );
        (head, numbers(&rule.xperms.numbers()))
    }

    /// `(typetransition source target class "name" result)`.
    #[must_use]
    pub fn format_name_transition(&self, key: Key<TypeId>, name: &str, result: TypeId) -> String {
        let (source, target, class) = self.format_key(self.type_name(key.0), key.1, key.2);
        format!("(typetransition {source} {target} {class} \"{name}\" {})", self.type_name(result))
    }

    /// `(rangetransition source target class range)`.
    #[must_use]
    pub fn format_range_transition(&self, key: Key<TypeId>, range: &Range) -> String {
        let (source, target, class) = self.format_key(self.type_name(key.0), key.1, key.2);
        format!("(rangetransition {source} {target} {class} {})", self.spell_range(range))
    }

    /// `(roleallow from to)`.
    #[must_use]
    pub fn format_role_allow(&self, from: RoleId, to: RoleId) -> String {
        format!("(roleallow {} {})", self.role_name(from), self.role_name(to))
    }

    /// `(roletransition role type class role)`.
    #[must_use]
    pub fn format_role_transition(&self, key: Key<RoleId>, result: RoleId) -> String {
        let (source, target, class) = self.format_key(self.role_name(key.0), key.1, key.2);
        format!("(roletransition {source} {target} {class} {})", self.role_name(result))
    }

    fn format_key<'a>(
        &'a self,
        source: &'a str,
        target: TypeId,
        class: ClassId,
    ) -> (&'a str, &'a str, &'a str) {
        (source, self.type_name(target), self.class_name(class))
    }

    /// `((s0) (s1 (c0 c1)))`: a range as statements hold it. [`Self::format_range`] writes it as
    /// contexts do.
    #[must_use]
    pub fn spell_range(&self, range: &Range) -> String {
        format!("({} {})", self.spell_level(&range.low), self.spell_level(&range.high))
    }

    /// `(s1 (c0 c1))`.
    #[must_use]
    pub fn spell_level(&self, level: &Level) -> String {
        let sens = self.sensitivities.get_index(level.sens.index()).map_or("?", |(name, _)| name);
        if level.cats.is_empty() {
            return format!("({sens})");
        }
        let cats: Vec<&str> = self.category_names(&level.cats).collect();
        format!("({sens} ({}))", cats.join(" "))
    }

    /// The names of categories.
    pub(crate) fn category_names<'a>(&'a self, cats: &'a BitSet) -> impl Iterator<Item = &'a str> {
        cats.iter().map(|cat| self.categories.get_index(cat).map_or("?", |(name, ())| name))
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
        self.format_condition_within(id, usize::MAX)
    }

    /// The same, not much more than `most` bytes of it.
    pub(crate) fn format_condition_within(&self, id: CondId, most: usize) -> String {
        let steps = self.conditions.get(id.index()).map_or(&[][..], |c| c.steps());
        let operator = |step: &BoolStep| match step {
            BoolStep::Bool(_) => None,
            BoolStep::Not => Some(("not", 1)),
            BoolStep::And => Some(("and", 2)),
            BoolStep::Or => Some(("or", 2)),
            BoolStep::Xor => Some(("xor", 2)),
            BoolStep::Eq => Some(("eq", 2)),
            BoolStep::Neq => Some(("neq", 2)),
        };
        prefix(steps, most, operator, |step| match step {
            BoolStep::Bool(id) => {
                self.booleans.get_index(id.index()).map_or("?", |(n, _)| n).to_owned()
            }
            _ => String::new(),
        })
    }

    /// `(mlsconstrain (class (permission …)) expression)`.
    #[must_use]
    pub fn format_constraint(&self, class: ClassId, constraint: &Constraint) -> String {
        self.format_constraint_within(class, constraint, usize::MAX)
    }

    /// The same, with not much more than `most` bytes of the expression.
    pub(crate) fn format_constraint_within(
        &self,
        class: ClassId,
        constraint: &Constraint,
        most: usize,
    ) -> String {
        let keyword = if constraint.is_mls() { "mlsconstrain" } else { "constrain" };
        let class_name = self.class_name(class);
        let perms = self.format_perms(class, constraint.perms);
        let expression = self.expression_within(constraint, most);
        format!("({keyword} ({class_name} {perms}) {expression})")
    }

    /// `(mlsvalidatetrans class expression)`.
    #[must_use]
    pub fn format_validation(&self, class: ClassId, constraint: &Constraint) -> String {
        let keyword = if constraint.is_mls() { "mlsvalidatetrans" } else { "validatetrans" };
        format!("({keyword} {} {})", self.class_name(class), self.format_expression(constraint))
    }

    /// `CONDITION is true`.
    #[must_use]
    pub fn format_branch(&self, branch: Branch) -> String {
        format!("{} is {}", self.format_condition(branch.condition), branch.when)
    }

    /// The expression of a constraint.
    #[must_use]
    pub fn format_expression(&self, constraint: &Constraint) -> String {
        self.expression_within(constraint, usize::MAX)
    }

    fn expression_within(&self, constraint: &Constraint, most: usize) -> String {
        let operator = |step: &Step| match step {
            Step::Test(_) => None,
            Step::Not => Some(("not", 1)),
            Step::And => Some(("and", 2)),
            Step::Or => Some(("or", 2)),
        };
        prefix(constraint.program.steps(), most, operator, |step| match step {
            Step::Test(expr) => self.format_test(expr, most),
            _ => String::new(),
        })
    }

    fn format_test(&self, expr: &Expr, most: usize) -> String {
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
                let names = self.names_of_set(*symbol, set, most);
                format!("({word} {}{number} {names})", symbol_letter(*symbol))
            }
        }
    }

    /// The members of a set as a list, or the attribute that has exactly these.
    fn names_of_set(&self, symbol: Symbol, set: &BitSet, most: usize) -> String {
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
        let mut names = String::new();
        for name in set.iter().map(one) {
            if names.len() > most {
                break;
            }
            names += if names.is_empty() { "" } else { " " };
            names += name;
        }
        if set.len() == 1 { names } else { format!("({names})") }
    }
}

/// Numbers in hexadecimal, runs of them as `(range low high)`.
fn numbers(set: &BitSet) -> Vec<String> {
    let mut words = Vec::new();
    let mut numbers = set.iter().peekable();
    while let Some(low) = numbers.next() {
        let mut high = low;
        while let Some(next) = numbers.next_if_eq(&(high + 1)) {
            high = next;
        }
        words.push(match high - low {
            0 => format!("{low:#x}"),
            _ => format!("(range {low:#x} {high:#x})"),
        });
    }
    words
}

/// What is written of an expression next.
enum Piece {
    /// The operand that ends at that step.
    Operand(usize),
    Text(&'static str),
}

/// Postfix to prefix, up to where it is longer than `most` bytes. A step is an `operator` that
/// takes so many operands, or an `operand`.
fn prefix<S>(
    steps: &[S],
    most: usize,
    operator: impl Fn(&S) -> Option<(&'static str, usize)>,
    operand: impl Fn(&S) -> String,
) -> String {
    // Where the operand begins that ends at each step.
    let mut begins: Vec<usize> = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let taken = operator(step).map_or(0, |(_, count)| count);
        let before = |first: usize| first.checked_sub(1).map_or(first, |last| begins[last]);
        begins.push((0..taken).fold(at, |first, _| before(first)));
    }
    let mut text = String::new();
    let mut left: Vec<Piece> = steps.len().checked_sub(1).map(Piece::Operand).into_iter().collect();
    while let Some(piece) = left.pop()
        && text.len() <= most
    {
        let at = match piece {
            Piece::Operand(at) => at,
            Piece::Text(piece) => {
                text += piece;
                continue;
            }
        };
        let Some((word, count)) = operator(&steps[at]) else {
            text += &operand(&steps[at]);
            continue;
        };
        text.push('(');
        text += word;
        left.push(Piece::Text(")"));
        let mut end = at;
        for _ in 0..count {
            let Some(last) = end.checked_sub(1) else { break };
            left.extend([Piece::Operand(last), Piece::Text(" ")]);
            end = begins[last];
        }
    }
    text
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

impl Class {
    /// The keywords of its `default…` statements, and what they say.
    pub(crate) fn defaults(&self) -> Vec<(&'static str, String)> {
        let word = |from| if from == DefaultFrom::Source { "source" } else { "target" };
        let range = self.default_range.map(|range| match range {
            DefaultRange::GlbLub => "glblub".to_owned(),
            DefaultRange::Low(from) => format!("{} low", word(from)),
            DefaultRange::High(from) => format!("{} high", word(from)),
            DefaultRange::LowHigh(from) => format!("{} low-high", word(from)),
        });
        let parts = [
            ("defaultuser", self.default_user.map(|from| word(from).to_owned())),
            ("defaultrole", self.default_role.map(|from| word(from).to_owned())),
            ("defaulttype", self.default_type.map(|from| word(from).to_owned())),
            ("defaultrange", range),
        ];
        parts.into_iter().filter_map(|(keyword, words)| Some((keyword, words?))).collect()
    }
}

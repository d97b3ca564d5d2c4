//! Constraints on permissions and on changes of labels.

use super::statements::{LiveStatement, Statements};
use super::{Builder, ClassPerms, Failure, Item, Node, Report, Space, Word, kw};
use crate::BitSet;
use crate::policy::{Comparison, Constraint, Expr, LevelPair, Program, Step, Subject, Symbol};

impl Builder<'_> {
    /// Reads constraints.
    pub(super) fn constraints(&mut self, statements: &Statements, report: &mut Report) {
        self.each(statements, &[kw::CONSTRAIN, kw::MLSCONSTRAIN], report, Self::constrain);
        let validations = [kw::VALIDATETRANS, kw::MLSVALIDATETRANS];
        self.each(statements, &validations, report, Self::validate_trans);
    }

    fn constrain(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [perms, expression] = self.args(s)?;
        let program = self.program(s, expression)?;
        let place = self.place(s.node);
        for ClassPerms { class, perms } in self.class_perms(s.at, perms)? {
            self.spend(s.node, 1)?;
            let constraint = Constraint { perms, program: program.clone(), place };
            if self.is_in_force(s) {
                self.policy.classes[class.index()].constraints.push(constraint);
            }
        }
        Ok(())
    }

    fn validate_trans(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [class, expression] = self.args(s)?;
        let program = self.program(s, expression)?;
        let place = self.place(s.node);
        for class in self.class_list(s.at, class)? {
            self.spend(s.node, 1)?;
            let constraint = Constraint { perms: u32::MAX, program: program.clone(), place };
            if self.is_in_force(s) {
                self.policy.classes[class.index()].validations.push(constraint);
            }
        }
        Ok(())
    }

    /// `mls…` statements count in multi-level policies only.
    fn is_in_force(&self, s: &LiveStatement) -> bool {
        self.policy.mls || !matches!(self.keyword(s), kw::MLSCONSTRAIN | kw::MLSVALIDATETRANS)
    }

    fn program(&mut self, s: &LiveStatement, expression: Node) -> Result<Program, Failure> {
        let mut steps = Vec::new();
        self.steps(s, expression, &mut steps)?;
        Program::new(steps)
            .map_err(|error| Failure::wrong(expression, error.to_string(), "use fewer levels"))
    }

    fn steps(
        &mut self,
        s: &LiveStatement,
        node: Node,
        steps: &mut Vec<Step>,
    ) -> Result<(), Failure> {
        self.spend(node, 1)?;
        let items = self.tree.list(node);
        match items {
            [Node { item: Item::Word(kw::NOT), .. }, operand] => {
                self.steps(s, *operand, steps)?;
                steps.push(Step::Not);
            }
            [Node { item: Item::Word(operator @ (kw::AND | kw::OR)), .. }, first, second] => {
                self.steps(s, *first, steps)?;
                self.steps(s, *second, steps)?;
                steps.push(if *operator == kw::AND { Step::And } else { Step::Or });
            }
            [Node { item: Item::Word(word), .. }, first, second] => {
                let comparison = comparison(*word).ok_or_else(|| not_a_constraint(node))?;
                steps.push(Step::Test(self.test(s, node, comparison, *first, *second)?));
            }
            _ => return Err(not_a_constraint(node)),
        }
        Ok(())
    }

    fn test(
        &mut self,
        s: &LiveStatement,
        node: Node,
        comparison: Comparison,
        first: Node,
        second: Node,
    ) -> Result<Expr, Failure> {
        let Item::Word(left) = first.item else { return Err(not_a_constraint(node)) };
        let right = match second.item {
            Item::Word(word) => Some(word),
            _ => None,
        };
        if let Some(pair) = right.and_then(|right| level_pair(left, right)) {
            return Ok(Expr::Levels(pair, comparison));
        }
        if let Some(right) = right.filter(|right| is_level(left) && is_level(*right)) {
            return Err(self.wrong_levels(node, comparison, left, right));
        }
        let (symbol, subject) = operand(left).ok_or_else(|| not_a_constraint(node))?;
        let third = matches!(self.keyword(s), kw::CONSTRAIN | kw::MLSCONSTRAIN);
        if subject == Subject::Process && third {
            let message = "`u3`, `r3` and `t3` are for `validatetrans`".to_owned();
            return Err(Failure::wrong(first, message, "use the operand with 1 or 2"));
        }
        let both = (subject == Subject::Source)
            && right.and_then(operand) == Some((symbol, Subject::Target));
        if both {
            let ordered = !matches!(comparison, Comparison::Eq | Comparison::Neq);
            if ordered && symbol != Symbol::Role {
                let message = "only roles and levels dominate one another".to_owned();
                return Err(Failure::wrong(node, message, "use `eq` or `neq`"));
            }
            return Ok(Expr::Symbols(symbol, comparison));
        }
        let negated = match comparison {
            Comparison::Eq => false,
            Comparison::Neq => true,
            _ => return Err(not_a_constraint(node)),
        };
        let set = self.names(s, symbol, second)?;
        Ok(Expr::Names { subject, symbol, negated, set })
    }

    /// Two levels that are not compared, or not in this order.
    fn wrong_levels(&self, node: Node, comparison: Comparison, left: Word, right: Word) -> Failure {
        let (a, b) = (self.tree.text(left), self.tree.text(right));
        let message = format!("`{a}` is not compared with `{b}`");
        if level_pair(right, left).is_none() {
            let help = "compare l1 or h1 with l2 or h2, l1 with h1, or l2 with h2";
            return Failure::wrong(node, message, help);
        }
        let turned = match comparison {
            Comparison::Eq => "eq",
            Comparison::Neq => "neq",
            Comparison::Dom => "domby",
            Comparison::DomBy => "dom",
            Comparison::Incomp => "incomp",
        };
        Failure::wrong_owned(
            node,
            message + " in this order",
            format!("write `({turned} {b} {a})`"),
        )
    }

    fn names(&mut self, s: &LiveStatement, symbol: Symbol, node: Node) -> Result<BitSet, Failure> {
        let space = match symbol {
            Symbol::User => Space::User,
            Symbol::Role => Space::Role,
            Symbol::Type => Space::Type,
        };
        self.member_expression(s.at, space, node)
    }
}

fn not_a_constraint(node: Node) -> Failure {
    let message = "this is not an expression of a constraint".to_owned();
    let help =
        "write `(eq u1 u2)`, `(dom h1 h2)`, `(eq t1 type)`, `(and a b)`, `(or a b)` or `(not a)`";
    Failure::wrong(node, message, help)
}

fn comparison(word: Word) -> Option<Comparison> {
    Some(match word {
        kw::EQ => Comparison::Eq,
        kw::NEQ => Comparison::Neq,
        kw::DOM => Comparison::Dom,
        kw::DOMBY => Comparison::DomBy,
        kw::INCOMP => Comparison::Incomp,
        _ => return None,
    })
}

fn operand(word: Word) -> Option<(Symbol, Subject)> {
    Some(match word {
        kw::U1 => (Symbol::User, Subject::Source),
        kw::U2 => (Symbol::User, Subject::Target),
        kw::U3 => (Symbol::User, Subject::Process),
        kw::R1 => (Symbol::Role, Subject::Source),
        kw::R2 => (Symbol::Role, Subject::Target),
        kw::R3 => (Symbol::Role, Subject::Process),
        kw::T1 => (Symbol::Type, Subject::Source),
        kw::T2 => (Symbol::Type, Subject::Target),
        kw::T3 => (Symbol::Type, Subject::Process),
        _ => return None,
    })
}

fn is_level(word: Word) -> bool {
    matches!(word, kw::L1 | kw::L2 | kw::H1 | kw::H2)
}

fn level_pair(left: Word, right: Word) -> Option<LevelPair> {
    Some(match (left, right) {
        (kw::L1, kw::L2) => LevelPair::L1L2,
        (kw::L1, kw::H2) => LevelPair::L1H2,
        (kw::H1, kw::L2) => LevelPair::H1L2,
        (kw::H1, kw::H2) => LevelPair::H1H2,
        (kw::L1, kw::H1) => LevelPair::L1H1,
        (kw::L2, kw::H2) => LevelPair::L2H2,
        _ => return None,
    })
}

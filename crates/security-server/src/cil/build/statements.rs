//! Live statements by keyword.

use super::{Builder, Container, Failure, Item, Node, Report, Word, kw};
use crate::cil::containers::{Entry, Kind};
use crate::cil::scopes::closest;
use crate::cil::sets::{TruthStep, truth_steps};
use crate::cil::space::Space;
use crate::hash::HashMap;
use crate::policy::{BoolStep, Branch, Condition, SourceLine};
use crate::{BoolId, CondId};

/// A statement and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveStatement {
    pub(super) node: Node,
    pub(super) at: Container,
    pub(super) branch: Option<Branch>,
}

/// Live statements by keyword, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Statements(HashMap<Word, Vec<LiveStatement>>);

impl Statements {
    /// Sorts the statements of the live containers.
    pub(super) fn new(builder: &mut Builder<'_>, live: &[Container], report: &mut Report) -> Self {
        let mut out = Self::default();
        let mut branches: HashMap<Container, Option<Branch>> = HashMap::default();
        for id in live {
            let outer = branches.get(&builder.containers.get(*id).parent).copied().flatten();
            let branch = builder.branch_of(*id, outer).unwrap_or_else(|failure| {
                report.fail(builder.containers, *id, failure);
                outer
            });
            branches.insert(*id, branch);
            for entry in builder.containers.entries(*id) {
                if let Entry::Statement(node) = entry {
                    out.sort_in(builder, LiveStatement { node: *node, at: *id, branch }, report);
                }
            }
        }
        out
    }

    fn sort_in(&mut self, builder: &Builder<'_>, placed: LiveStatement, report: &mut Report) {
        let items = builder.tree.list(placed.node);
        let Some(Item::Word(keyword)) = items.first().map(|first| first.item) else { return };
        if usage(keyword).is_none() {
            report.add(unknown_statement(builder, placed.node, keyword));
        } else if placed.branch.is_some() && !is_conditional(keyword) {
            let text = builder.tree.text(keyword);
            let message = format!("`{text}` cannot stand in a `booleanif`");
            report.add(Failure::wrong(placed.node, message, "put it outside, or use `tunableif`"));
        } else {
            self.0.entry(keyword).or_default().push(placed);
        }
    }

    /// The statements with that keyword.
    pub(super) fn of(&self, keyword: Word) -> &[LiveStatement] {
        self.0.get(&keyword).map_or(&[], Vec::as_slice)
    }
}

impl Builder<'_> {
    /// The branch that a rule holds in, and its place.
    pub(super) fn rule_base(&self, s: &LiveStatement) -> (Option<Branch>, Option<SourceLine>) {
        (s.branch, self.place(s.node))
    }

    /// Runs `run` on each statement with one of the keywords; what fails goes to `report`.
    pub(super) fn each(
        &mut self,
        statements: &Statements,
        keywords: &[Word],
        report: &mut Report,
        run: fn(&mut Self, &LiveStatement) -> Result<(), Failure>,
    ) {
        for keyword in keywords {
            for placed in statements.of(*keyword) {
                // One word about it is enough, and each further statement would take as long.
                if self.spending.is_exhausted() {
                    return;
                }
                if let Err(failure) = run(self, placed) {
                    report.fail(self.containers, placed.at, failure);
                }
            }
        }
    }

    /// The words and lists behind the keyword, which must be `N`.
    pub(super) fn args<const N: usize>(&self, s: &LiveStatement) -> Result<[Node; N], Failure> {
        let args = self.tree.list(s.node).get(1..).unwrap_or(&[]);
        args.try_into().map_err(|_| self.misuse(s))
    }

    /// The words and lists behind the keyword.
    pub(super) fn rest(&self, s: &LiveStatement) -> &[Node] {
        self.tree.list(s.node).get(1..).unwrap_or(&[])
    }

    /// The statement's keyword.
    pub(super) fn keyword(&self, s: &LiveStatement) -> Word {
        match self.tree.list(s.node).first().map(|first| first.item) {
            Some(Item::Word(word)) => word,
            _ => kw::STAR,
        }
    }

    /// The statement does not have the form that its keyword asks for.
    pub(super) fn misuse(&self, s: &LiveStatement) -> Failure {
        let keyword = self.keyword(s);
        let text = self.tree.text(keyword);
        let help = format!("write `({text} {})`", usage(keyword).unwrap_or(""));
        Failure::wrong_owned(s.node, format!("this is not the form of `{text}`"), help)
    }

    /// The branch that statements in `id` stand in.
    fn branch_of(
        &mut self,
        id: Container,
        outer: Option<Branch>,
    ) -> Result<Option<Branch>, Failure> {
        let body = self.containers.get(id);
        let Kind::Branch(when) = body.kind else { return Ok(outer) };
        let parent = self.containers.get(body.parent);
        if !matches!(parent.kind, Kind::BooleanIf) {
            return Ok(outer);
        }
        if outer.is_some() {
            let message = "a `booleanif` cannot stand in another one".to_owned();
            return Err(Failure::wrong(parent.node, message, "join the conditions with `and`"));
        }
        let expression = self.tree.list(parent.node)[1];
        let condition = self.condition(body.parent, expression)?;
        Ok(Some(Branch { condition, when }))
    }

    fn condition(&mut self, at: Container, node: Node) -> Result<CondId, Failure> {
        let mut steps = Vec::new();
        truth_steps(self.tree, node, &mut |step| {
            steps.push(match step {
                TruthStep::Name(node, _) => {
                    BoolStep::Bool(BoolId(self.number(at, Space::Boolean, node)?))
                }
                TruthStep::Not => BoolStep::Not,
                TruthStep::Join(kw::AND) => BoolStep::And,
                TruthStep::Join(kw::OR) => BoolStep::Or,
                TruthStep::Join(kw::XOR) => BoolStep::Xor,
                TruthStep::Join(kw::EQ) => BoolStep::Eq,
                TruthStep::Join(_) => BoolStep::Neq,
            });
            self.spend_bytes(node, size_of::<BoolStep>())
        })?;
        let condition = Condition::new(steps)
            .map_err(|error| Failure::wrong(node, error.to_string(), "use fewer levels"))?;
        let known = self.policy.conditions.iter().rposition(|known| *known == condition);
        let index = known.unwrap_or_else(|| {
            self.policy.conditions.push(condition);
            self.policy.conditions.len() - 1
        });
        Ok(CondId::at(index))
    }
}

fn unknown_statement(builder: &Builder<'_>, node: Node, keyword: Word) -> Failure {
    let text = builder.tree.text(keyword);
    let known = USAGE.iter().map(|(word, _)| builder.tree.text(*word));
    let help = match closest(text, known) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "see the reference of the policy language for all statements".to_owned(),
    };
    Failure::wrong_owned(node, format!("`{text}` is not a statement"), help)
}

/// Whether statements with that keyword may stand in a `booleanif`.
fn is_conditional(keyword: Word) -> bool {
    matches!(
        keyword,
        kw::ALLOW
            | kw::AUDITALLOW
            | kw::DONTAUDIT
            | kw::ALLOWX
            | kw::AUDITALLOWX
            | kw::DONTAUDITX
            | kw::TYPETRANSITION
            | kw::TYPEMEMBER
            | kw::TYPECHANGE
    )
}

fn usage(keyword: Word) -> Option<&'static str> {
    USAGE.iter().find(|(word, _)| *word == keyword).map(|(_, usage)| *usage)
}

/// Every statement that is no container, most frequent first, and its form.
const USAGE: &[(Word, &str)] = &[
    (kw::ALLOW, "source target (class (permission …))"),
    (kw::TYPEATTRIBUTESET, "attribute (type …)"),
    (kw::DONTAUDIT, "source target (class (permission …))"),
    (kw::ROLETYPE, "role type"),
    (kw::TYPETRANSITION, "source target class [name] type"),
    (kw::FILECON, "\"path\" kind context"),
    (kw::TYPE, "name"),
    (kw::ROLEATTRIBUTESET, "attribute (role …)"),
    (kw::CATEGORY, "name"),
    (kw::PORTCON, "protocol port|(low high) context"),
    (kw::TYPEATTRIBUTE, "name"),
    (kw::BOOLEAN, "name true|false"),
    (kw::TUNABLE, "name true|false"),
    (kw::TYPEALIAS, "name"),
    (kw::TYPEALIASACTUAL, "alias type"),
    (kw::CONSTRAIN, "(class (permission …)) expression"),
    (kw::MLSCONSTRAIN, "(class (permission …)) expression"),
    (kw::VALIDATETRANS, "class expression"),
    (kw::MLSVALIDATETRANS, "class expression"),
    (kw::CLASS, "name (permission …)"),
    (kw::CLASSCOMMON, "class common"),
    (kw::CLASSORDER, "(class …)"),
    (kw::COMMON, "name (permission …)"),
    (kw::CLASSMAP, "name (permission …)"),
    (kw::CLASSMAPPING, "map permission (class (permission …))"),
    (kw::CLASSPERMISSION, "name"),
    (kw::CLASSPERMISSIONSET, "name (class (permission …))"),
    (kw::EXPANDTYPEATTRIBUTE, "attribute true|false"),
    (kw::TYPEBOUNDS, "parent child"),
    (kw::TYPEPERMISSIVE, "type"),
    (kw::TYPENEVERAUDIT, "type"),
    (kw::TYPECHANGE, "source target class type"),
    (kw::TYPEMEMBER, "source target class type"),
    (kw::ALLOWX, "source target (ioctl class (number …))"),
    (kw::AUDITALLOW, "source target (class (permission …))"),
    (kw::AUDITALLOWX, "source target (ioctl class (number …))"),
    (kw::DONTAUDITX, "source target (ioctl class (number …))"),
    (kw::NEVERALLOW, "source target (class (permission …))"),
    (kw::NEVERALLOWX, "source target (ioctl class (number …))"),
    (kw::DENY, "source target (class (permission …))"),
    (kw::PERMISSIONX, "name (ioctl class (number …))"),
    (kw::BLOCKABSTRACT, "block"),
    (kw::ROLE, "name"),
    (kw::ROLEATTRIBUTE, "name"),
    (kw::ROLEALLOW, "role role"),
    (kw::ROLETRANSITION, "role type class role"),
    (kw::ROLEBOUNDS, "parent child"),
    (kw::USER, "name"),
    (kw::USERROLE, "user role"),
    (kw::USERATTRIBUTE, "name"),
    (kw::USERATTRIBUTESET, "attribute (user …)"),
    (kw::USERLEVEL, "user level"),
    (kw::USERRANGE, "user (low high)"),
    (kw::USERBOUNDS, "parent child"),
    (kw::USERPREFIX, "user prefix"),
    (kw::SELINUXUSER, "name user (low high)"),
    (kw::SELINUXUSERDEFAULT, "user (low high)"),
    (kw::SENSITIVITY, "name"),
    (kw::SENSITIVITYALIAS, "name"),
    (kw::SENSITIVITYALIASACTUAL, "alias sensitivity"),
    (kw::SENSITIVITYORDER, "(sensitivity …)"),
    (kw::SENSITIVITYCATEGORY, "sensitivity (category …)"),
    (kw::CATEGORYALIAS, "name"),
    (kw::CATEGORYALIASACTUAL, "alias category"),
    (kw::CATEGORYORDER, "(category …)"),
    (kw::CATEGORYSET, "name (category …)"),
    (kw::LEVEL, "name (sensitivity [(category …)])"),
    (kw::LEVELRANGE, "name (low high)"),
    (kw::RANGETRANSITION, "source target class (low high)"),
    (kw::CONTEXT, "name (user role type (low high))"),
    (kw::SID, "name"),
    (kw::SIDCONTEXT, "sid context"),
    (kw::SIDORDER, "(sid …)"),
    (kw::NODECON, "address mask context"),
    (kw::NETIFCON, "interface context context"),
    (kw::GENFSCON, "filesystem path [kind] context"),
    (kw::FSUSE, "xattr|task|trans filesystem context"),
    (kw::IPADDR, "name (address)"),
    (kw::IBPKEYCON, "subnet key|(low high) context"),
    (kw::IBENDPORTCON, "device port context"),
    (kw::IOMEMCON, "address|(low high) context"),
    (kw::IOPORTCON, "port|(low high) context"),
    (kw::PCIDEVICECON, "device context"),
    (kw::PIRQCON, "number context"),
    (kw::DEVICETREECON, "\"path\" context"),
    (kw::MLS, "true|false"),
    (kw::HANDLEUNKNOWN, "allow|deny|reject"),
    (kw::POLICYCAP, "name"),
    (kw::DEFAULTUSER, "class source|target"),
    (kw::DEFAULTROLE, "class source|target"),
    (kw::DEFAULTTYPE, "class source|target"),
    (kw::DEFAULTRANGE, "class source|target low|high|low-high"),
];

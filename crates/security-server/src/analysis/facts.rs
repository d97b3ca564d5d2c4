//! What a policy says besides rules on access, statement by statement, for comparing.

use crate::policy::{Branch, Constraint, Context, Expr, Policy, Step, Symbol, TypeKind};
use crate::{BitSet, ClassId, RoleId, TypeId};
use std::collections::{BTreeMap, BTreeSet};

/// The sections of what is compared besides authority.
pub const SECTIONS: [&str; 26] = [
    "alias",
    "attribute",
    "boolean",
    "class",
    "configuration",
    "constraint",
    "default",
    "label",
    "level",
    "neveraudit",
    "permissive",
    "rangetransition",
    "role",
    "roleallow",
    "rolebounds",
    "roletransition",
    "type",
    "typebounds",
    "typechange",
    "typemember",
    "typetransition",
    "user",
    "userbounds",
    "userlevel",
    "userrange",
    "xperm",
];

/// What is said about something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// One thing; nothing where its being there is all there is to say.
    Text(String),
    /// A set of names.
    Set(BTreeSet<String>),
}

/// By section and by what it is about.
pub(super) type Facts = BTreeMap<(&'static str, String), Fact>;

/// Collects the facts of one policy.
struct Collector<'a> {
    policy: &'a Policy,
    facts: Facts,
}

/// Everything that [`super::diff()`] compares one by one.
pub(super) fn facts(policy: &Policy) -> Facts {
    let mut collector = Collector { policy, facts: Facts::new() };
    collector.configuration();
    collector.classes();
    collector.constraints();
    collector.levels();
    collector.types();
    collector.roles_and_users();
    collector.xperms();
    collector.transitions();
    collector.labels();
    debug_assert!(collector.facts.keys().all(|(section, _)| SECTIONS.contains(section)));
    collector.facts
}

impl Collector<'_> {
    fn text(&mut self, section: &'static str, about: impl Into<String>, text: impl Into<String>) {
        self.facts.insert((section, about.into()), Fact::Text(text.into()));
    }

    /// Adds names to the set about something.
    fn names<S: Into<String>>(
        &mut self,
        section: &'static str,
        about: impl Into<String>,
        names: impl IntoIterator<Item = S>,
    ) {
        let fact = self.facts.entry((section, about.into()));
        if let Fact::Set(set) = fact.or_insert_with(|| Fact::Set(BTreeSet::new())) {
            set.extend(names.into_iter().map(Into::into));
        }
    }

    fn configuration(&mut self) {
        let policy = self.policy;
        self.text("configuration", "mls", policy.mls.to_string());
        let unknown = format!("{:?}", policy.handle_unknown).to_lowercase();
        self.text("configuration", "handleunknown", unknown);
        for name in &policy.capabilities {
            self.text("configuration", format!("policycap {name}"), "");
        }
        for (name, state) in &policy.booleans {
            self.text("boolean", &**name, state.to_string());
        }
    }

    fn classes(&mut self) {
        for (name, class) in &self.policy.classes {
            self.names("class", &**name, class.permissions.keys().map(|name| &**name));
            for (keyword, default) in class.defaults() {
                self.text("default", format!("{keyword} {name}"), default);
            }
        }
    }

    fn constraints(&mut self) {
        let policy = self.policy;
        for (index, class) in policy.classes.values().enumerate() {
            let id = ClassId::at(index);
            for constraint in &class.constraints {
                let text = policy.format_constraint(id, constraint);
                self.names("constraint", text, named_in(policy, constraint));
            }
            for constraint in &class.validations {
                let text = policy.format_validation(id, constraint);
                self.names("constraint", text, named_in(policy, constraint));
            }
        }
    }

    fn levels(&mut self) {
        let policy = self.policy;
        for (name, cats) in &policy.sensitivities {
            self.names("level", &**name, policy.category_names(cats));
        }
        let order: Vec<&str> = policy.sensitivities.keys().map(|name| &**name).collect();
        self.text("level", "sensitivityorder", order.join(" "));
        let order: Vec<&str> = policy.categories.keys().map(|name| &**name).collect();
        self.text("level", "categoryorder", order.join(" "));
    }

    fn types(&mut self) {
        let policy = self.policy;
        for (name, entry) in &policy.types {
            match entry.kind {
                TypeKind::Type => self.text("type", &**name, ""),
                TypeKind::Attribute => {
                    self.names("attribute", &**name, type_names(policy, &entry.members));
                }
                TypeKind::Unused => continue,
            }
            if let Some(bound) = entry.bounds {
                self.text("typebounds", &**name, policy.type_name(bound));
            }
            if entry.permissive {
                self.text("permissive", &**name, "");
            }
            if entry.neveraudit {
                self.text("neveraudit", &**name, "");
            }
        }
        for (alias, actual) in &policy.type_aliases {
            self.text("alias", &**alias, policy.type_name(*actual));
        }
    }

    fn roles_and_users(&mut self) {
        let policy = self.policy;
        for (name, role) in &policy.roles {
            self.names("role", &**name, type_names(policy, &role.types));
            if let Some(bound) = role.bounds {
                self.text("rolebounds", &**name, policy.role_name(bound));
            }
        }
        for (from, to) in &policy.role_allows {
            self.text("roleallow", policy.format_role_allow(*from, *to), "");
        }
        for ((role, target, class), result) in &policy.role_transitions {
            let about =
                [policy.role_name(*role), policy.type_name(*target), policy.class_name(*class)];
            self.text("roletransition", about.join(" "), policy.role_name(*result));
        }
        for (name, user) in &policy.users {
            let roles = user.roles.iter().map(|role| policy.role_name(RoleId::at(role)));
            self.names("user", &**name, roles);
            if let Some(range) = &user.range {
                self.text("userrange", &**name, policy.format_range(range));
            }
            if let Some(level) = &user.level {
                self.text("userlevel", &**name, policy.spell_level(level));
            }
            if let Some(bound) = user.bounds {
                self.text("userbounds", &**name, policy.user_name(bound));
            }
        }
    }

    /// Rules on extended permissions as they are written: on attributes, where those are named.
    fn xperms(&mut self) {
        for rule in &self.policy.xperm_rules {
            let (head, numbers) = self.policy.split_xperm_rule(rule);
            self.names("xperm", head + &self.condition(rule.branch), numbers);
        }
    }

    fn transitions(&mut self) {
        let policy = self.policy;
        for rule in &policy.type_rules {
            let key = rule.key;
            let about = [
                policy.type_name(key.source),
                policy.type_name(key.target),
                policy.class_name(key.class),
            ];
            let about = about.join(" ") + &self.condition(rule.branch);
            self.text(key.kind.keyword(), about, policy.type_name(rule.result));
        }
        for (sources, target, class, name, result) in policy.name_transitions.iter() {
            let (target, class) = (policy.type_name(target), policy.class_name(class));
            for source in type_names(policy, sources) {
                let about = format!("{source} {target} {class} \"{name}\"");
                self.text("typetransition", about, policy.type_name(result));
            }
        }
        for ((source, target, class), range) in &policy.range_transitions {
            let about =
                [policy.type_name(*source), policy.type_name(*target), policy.class_name(*class)];
            self.text("rangetransition", about.join(" "), policy.format_range(range));
        }
    }

    fn labels(&mut self) {
        let policy = self.policy;
        for (name, context) in &policy.initial_sids {
            self.label(format!("sid {name}"), context.as_ref());
        }
        for rule in &policy.labels.files {
            self.label(format!("filecon \"{}\" {:?}", rule.path, rule.kind), rule.context.as_ref());
        }
        for rule in &policy.labels.ports {
            let about = format!("portcon {:?} {} {}", rule.protocol, rule.ports.0, rule.ports.1);
            self.label(about, Some(&rule.context));
        }
        for rule in &policy.labels.nodes {
            self.label(format!("nodecon {} {}", rule.address, rule.mask), Some(&rule.context));
        }
        for rule in &policy.labels.netifs {
            self.label(format!("netifcon {}", rule.name), Some(&rule.interface));
            self.label(format!("netifcon {} packets", rule.name), Some(&rule.packets));
        }
        for rule in &policy.labels.genfs {
            let about = format!("genfscon {} \"{}\" {:?}", rule.filesystem, rule.path, rule.kind);
            self.label(about, Some(&rule.context));
        }
        for rule in &policy.labels.fs_uses {
            let about = format!("fsuse {:?} {}", rule.kind, rule.filesystem);
            self.label(about, Some(&rule.context));
        }
        for rule in &policy.labels.devices {
            self.label(format!("{} {}", rule.keyword, rule.device), Some(&rule.context));
        }
    }

    fn label(&mut self, about: String, context: Option<&Context>) {
        let label = context.map_or_else(String::new, |context| self.policy.format_context(context));
        self.text("label", about, label);
    }

    fn condition(&self, branch: Option<Branch>) -> String {
        branch
            .map_or_else(String::new, |branch| format!(" if {}", self.policy.format_branch(branch)))
    }
}

fn type_names<'a>(policy: &'a Policy, types: &'a BitSet) -> impl Iterator<Item = &'a str> {
    types.iter().map(|id| policy.type_name(TypeId::at(id)))
}

/// The users, roles and types that the sets of a constraint hold: its text may name them by an
/// attribute.
fn named_in(policy: &Policy, constraint: &Constraint) -> Vec<String> {
    let sets = constraint.program.steps().iter().filter_map(|step| match step {
        Step::Test(Expr::Names { symbol, set, .. }) => Some((*symbol, set)),
        _ => None,
    });
    let names = sets.flat_map(|(symbol, set)| {
        set.iter().map(move |index| match symbol {
            Symbol::User => policy.user_name(crate::UserId::at(index)).to_owned(),
            Symbol::Role => policy.role_name(RoleId::at(index)).to_owned(),
            Symbol::Type => policy.type_name(TypeId::at(index)).to_owned(),
        })
    });
    names.collect()
}

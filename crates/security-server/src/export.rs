//! A policy as one CIL file, whatever it was read from.

use crate::policy::{Context, FsUseKind, HandleUnknown, Policy, TypeKind};
use crate::{ClassId, RoleId, TypeId};
use flask::FileKind;
use std::fmt::{self, Write};

/// Writes a policy as CIL. Names are written in full, so blocks do not come back as blocks.
struct Writer<'a, W> {
    policy: &'a Policy,
    out: W,
}

impl Policy {
    /// The policy as CIL text that compiles to the same decisions and labels.
    #[must_use]
    pub fn to_cil(&self) -> String {
        let mut writer = Writer { policy: self, out: String::new() };
        // Writing to a string cannot fail.
        let _ = writer.all();
        writer.out
    }
}

fn words<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(" ")
}

impl<W: Write> Writer<'_, W> {
    fn all(&mut self) -> fmt::Result {
        self.configuration()?;
        self.classes()?;
        self.levels()?;
        self.types()?;
        self.roles()?;
        self.users()?;
        self.rules()?;
        self.transitions()?;
        self.labels()
    }

    fn configuration(&mut self) -> fmt::Result {
        let action = match self.policy.handle_unknown {
            HandleUnknown::Allow => "allow",
            HandleUnknown::Deny => "deny",
            HandleUnknown::Reject => "reject",
        };
        writeln!(self.out, "(handleunknown {action})\n(mls {})", self.policy.mls)?;
        for name in &self.policy.capabilities {
            writeln!(self.out, "(policycap {name})")?;
        }
        for (name, state) in &self.policy.booleans {
            writeln!(self.out, "(boolean {name} {state})")?;
        }
        for name in self.policy.initial_sids.keys() {
            writeln!(self.out, "(sid {name})")?;
        }
        let names = words(self.policy.initial_sids.keys().map(|name| &**name));
        writeln!(self.out, "(sidorder ({names}))")
    }

    fn classes(&mut self) -> fmt::Result {
        for (name, permissions) in &self.policy.commons {
            let permissions = words(permissions.keys().map(|name| &**name));
            writeln!(self.out, "(common {name} ({permissions}))")?;
        }
        for (name, class) in &self.policy.classes {
            let common = class.common.as_ref().and_then(|common| self.policy.commons.get(common));
            let inherited = common.map_or(0, |common| common.len());
            let own = words(class.permissions.keys().skip(inherited).map(|name| &**name));
            writeln!(self.out, "(class {name} ({own}))")?;
            if let Some(common) = &class.common {
                writeln!(self.out, "(classcommon {name} {common})")?;
            }
            for (keyword, default) in class.defaults() {
                writeln!(self.out, "({keyword} {name} {default})")?;
            }
        }
        let names = words(self.policy.classes.keys().map(|name| &**name));
        writeln!(self.out, "(classorder ({names}))")
    }

    fn levels(&mut self) -> fmt::Result {
        let policy = self.policy;
        for name in policy.categories.keys() {
            writeln!(self.out, "(category {name})")?;
        }
        if !policy.categories.is_empty() {
            let names = words(policy.categories.keys().map(|name| &**name));
            writeln!(self.out, "(categoryorder ({names}))")?;
        }
        for (alias, actual) in &policy.category_aliases {
            let actual =
                policy.categories.get_index(*actual as usize).map_or("?", |(name, ())| name);
            writeln!(self.out, "(categoryalias {alias})\n(categoryaliasactual {alias} {actual})")?;
        }
        for (name, cats) in &policy.sensitivities {
            writeln!(self.out, "(sensitivity {name})")?;
            if !cats.is_empty() {
                let cats = words(self.policy.category_names(cats));
                writeln!(self.out, "(sensitivitycategory {name} ({cats}))")?;
            }
        }
        if !policy.sensitivities.is_empty() {
            let names = words(policy.sensitivities.keys().map(|name| &**name));
            writeln!(self.out, "(sensitivityorder ({names}))")?;
        }
        for (alias, actual) in &policy.sensitivity_aliases {
            let actual =
                policy.sensitivities.get_index(actual.index()).map_or("?", |(name, _)| name);
            writeln!(
                self.out,
                "(sensitivityalias {alias})\n(sensitivityaliasactual {alias} {actual})"
            )?;
        }
        Ok(())
    }

    fn types(&mut self) -> fmt::Result {
        for (name, entry) in &self.policy.types {
            match entry.kind {
                TypeKind::Type => writeln!(self.out, "(type {name})")?,
                TypeKind::Attribute => writeln!(self.out, "(typeattribute {name})")?,
                TypeKind::Unused => {}
            }
        }
        for (name, entry) in &self.policy.types {
            if entry.kind == TypeKind::Attribute && !entry.members.is_empty() {
                let members =
                    words(entry.members.iter().map(|id| self.policy.type_name(TypeId::at(id))));
                writeln!(self.out, "(typeattributeset {name} ({members}))")?;
            }
            if let Some(bound) = entry.bounds {
                writeln!(self.out, "(typebounds {} {name})", self.policy.type_name(bound))?;
            }
            if entry.permissive {
                writeln!(self.out, "(typepermissive {name})")?;
            }
            if entry.neveraudit {
                writeln!(self.out, "(typeneveraudit {name})")?;
            }
        }
        for (alias, actual) in &self.policy.type_aliases {
            let actual = self.policy.type_name(*actual);
            writeln!(self.out, "(typealias {alias})\n(typealiasactual {alias} {actual})")?;
        }
        Ok(())
    }

    fn roles(&mut self) -> fmt::Result {
        let policy = self.policy;
        for name in self.policy.roles.keys() {
            writeln!(self.out, "(role {name})")?;
        }
        for (name, role) in &self.policy.roles {
            for type_ in role.types.iter() {
                writeln!(
                    self.out,
                    "(roletype {name} {})",
                    self.policy.type_name(TypeId::at(type_))
                )?;
            }
            if let Some(bound) = role.bounds {
                let bound = policy.role_name(bound);
                writeln!(self.out, "(rolebounds {bound} {name})")?;
            }
        }
        for (from, to) in &policy.role_allows {
            writeln!(self.out, "{}", policy.format_role_allow(*from, *to))?;
        }
        for (key, to) in &policy.role_transitions {
            writeln!(self.out, "{}", policy.format_role_transition(*key, *to))?;
        }
        Ok(())
    }

    fn users(&mut self) -> fmt::Result {
        let policy = self.policy;
        for (name, user) in &self.policy.users {
            writeln!(self.out, "(user {name})")?;
            for role in user.roles.iter() {
                let role = policy.role_name(RoleId::at(role));
                writeln!(self.out, "(userrole {name} {role})")?;
            }
            if let (Some(level), Some(range)) = (&user.level, &user.range) {
                let (level, range) = (policy.spell_level(level), policy.spell_range(range));
                writeln!(self.out, "(userlevel {name} {level})\n(userrange {name} {range})")?;
            }
        }
        for (name, user) in &self.policy.users {
            if let Some(bound) = user.bounds {
                let bound = policy.user_name(bound);
                writeln!(self.out, "(userbounds {bound} {name})")?;
            }
        }
        Ok(())
    }

    /// Writes a statement, in a `booleanif` if it stands in a branch.
    fn conditional(&mut self, branch: Option<crate::policy::Branch>, rule: &str) -> fmt::Result {
        match branch {
            None => writeln!(self.out, "{rule}"),
            Some(branch) => {
                let condition = self.policy.format_condition(branch.condition);
                writeln!(self.out, "(booleanif {condition} ({} {rule}))", branch.when)
            }
        }
    }

    fn rules(&mut self) -> fmt::Result {
        let policy = self.policy;
        for rule in &policy.av_rules {
            let class = &policy.classes[rule.class.index()];
            if rule.perms & class.all_permissions() != 0 {
                self.conditional(rule.branch, &policy.format_rule(rule))?;
            }
        }
        for rule in &policy.xperm_rules {
            let text = policy.format_xperm_rule(rule);
            self.conditional(rule.branch, &text)?;
        }
        for (index, class) in policy.classes.values().enumerate() {
            let id = ClassId::at(index);
            for constraint in &class.constraints {
                writeln!(self.out, "{}", policy.format_constraint(id, constraint))?;
            }
            for constraint in &class.validations {
                writeln!(self.out, "{}", policy.format_validation(id, constraint))?;
            }
        }
        Ok(())
    }

    fn transitions(&mut self) -> fmt::Result {
        let policy = self.policy;
        for rule in &policy.type_rules {
            let text = policy.format_type_rule(rule);
            self.conditional(rule.branch, &text)?;
        }
        for (sources, target, class, name, result) in policy.name_transitions.iter() {
            for source in sources.iter().map(TypeId::at) {
                let rule = policy.format_name_transition((source, target, class), name, result);
                writeln!(self.out, "{rule}")?;
            }
        }
        for (key, range) in &policy.range_transitions {
            writeln!(self.out, "{}", policy.format_range_transition(*key, range))?;
        }
        Ok(())
    }

    fn context(&self, context: &Context) -> String {
        let mut text = format!(
            "({} {} {}",
            self.policy.user_name(context.user),
            self.policy.role_name(context.role),
            self.policy.type_name(context.type_)
        );
        if let Some(range) = &context.range {
            text.push(' ');
            text.push_str(&self.policy.spell_range(range));
        }
        text + ")"
    }

    fn labels(&mut self) -> fmt::Result {
        let policy = self.policy;
        for (name, context) in &policy.initial_sids {
            if let Some(context) = context {
                let context = self.context(context);
                writeln!(self.out, "(sidcontext {name} {context})")?;
            }
        }
        for rule in &policy.labels.files {
            let context =
                rule.context.as_ref().map_or_else(|| "()".to_owned(), |c| self.context(c));
            writeln!(self.out, "(filecon \"{}\" {} {context})", rule.path, kind_word(rule.kind))?;
        }
        for rule in &policy.labels.ports {
            let (low, high) = rule.ports;
            let ports = if low == high { low.to_string() } else { format!("({low} {high})") };
            let protocol = format!("{:?}", rule.protocol).to_lowercase();
            let context = self.context(&rule.context);
            writeln!(self.out, "(portcon {protocol} {ports} {context})")?;
        }
        for rule in &policy.labels.nodes {
            let context = self.context(&rule.context);
            writeln!(self.out, "(nodecon ({}) ({}) {context})", rule.address, rule.mask)?;
        }
        for rule in &policy.labels.netifs {
            let (interface, packets) = (self.context(&rule.interface), self.context(&rule.packets));
            writeln!(self.out, "(netifcon {} {interface} {packets})", rule.name)?;
        }
        for rule in &policy.labels.genfs {
            let (kind, context) = (kind_word(rule.kind), self.context(&rule.context));
            writeln!(
                self.out,
                "(genfscon {} \"{}\" {kind} {context})",
                rule.filesystem, rule.path
            )?;
        }
        for rule in &policy.labels.fs_uses {
            let kind = match rule.kind {
                FsUseKind::Xattr => "xattr",
                FsUseKind::Task => "task",
                FsUseKind::Trans => "trans",
            };
            let context = self.context(&rule.context);
            writeln!(self.out, "(fsuse {kind} {} {context})", rule.filesystem)?;
        }
        for rule in &policy.labels.devices {
            let context = self.context(&rule.context);
            writeln!(self.out, "({} {} {context})", rule.keyword, rule.device)?;
        }
        Ok(())
    }
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Any => "any",
        FileKind::File => "file",
        FileKind::Dir => "dir",
        FileKind::Char => "char",
        FileKind::Block => "block",
        FileKind::Socket => "socket",
        FileKind::Pipe => "pipe",
        FileKind::Symlink => "symlink",
    }
}

//! Roles and users.

use super::statements::{LiveStatement, Statements};
use super::{Builder, Failure, Report, Space, kw};
use crate::{RoleId, TypeId, UserId};

impl Builder<'_> {
    /// Reads statements about roles and users.
    pub(super) fn roles_and_users(&mut self, statements: &Statements, report: &mut Report) {
        for (index, role) in self.policy.roles.values_mut().enumerate() {
            role.dominates.insert(index);
        }
        self.each(statements, &[kw::ROLETYPE], report, Self::role_type);
        self.each(statements, &[kw::ROLEALLOW], report, Self::role_allow);
        self.each(statements, &[kw::ROLETRANSITION], report, Self::role_transition);
        self.each(statements, &[kw::ROLEBOUNDS], report, Self::role_bounds);
        self.each(statements, &[kw::USERROLE], report, Self::user_role);
        self.each(statements, &[kw::USERLEVEL], report, Self::user_level);
        self.each(statements, &[kw::USERRANGE], report, Self::user_range);
        self.each(statements, &[kw::USERBOUNDS], report, Self::user_bounds);
        self.each(statements, &[kw::USERPREFIX], report, Self::user_prefix);
        self.each(statements, &[kw::SELINUXUSER], report, Self::selinux_user);
        self.each(statements, &[kw::SELINUXUSERDEFAULT], report, Self::selinux_user_default);
        if self.policy.mls {
            self.users_have_ranges(statements, report);
        }
    }

    fn role_type(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [role, types] = self.args(s)?;
        let roles = self.members(s.at, Space::Role, role)?;
        let types = self.members(s.at, Space::Type, types)?;
        self.spend(s.node, roles.len().saturating_mul(types.words()))?;
        for role in roles.iter() {
            self.policy.roles[role].types.union_with(&types);
        }
        Ok(())
    }

    fn role_allow(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [from, to] = self.args(s)?;
        let from = self.members(s.at, Space::Role, from)?;
        let to = self.members(s.at, Space::Role, to)?;
        self.spend(s.node, from.len().saturating_mul(to.len()))?;
        for from in from.iter() {
            let pairs = to.iter().map(|to| (RoleId::at(from), RoleId::at(to)));
            self.policy.role_allows.extend(pairs);
        }
        Ok(())
    }

    fn role_transition(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [from, types, classes, to] = self.args(s)?;
        let from = self.members(s.at, Space::Role, from)?;
        let types = self.members(s.at, Space::Type, types)?;
        let classes = self.class_list(s.at, classes)?;
        let to = RoleId(self.number(s.at, Space::Role, to)?);
        let count = from.len().saturating_mul(types.len()).saturating_mul(classes.len());
        self.spend(s.node, count)?;
        for from in from.iter().map(RoleId::at) {
            for type_ in types.iter().map(TypeId::at) {
                for class in &classes {
                    let known =
                        *self.policy.role_transitions.entry((from, type_, *class)).or_insert(to);
                    if known != to {
                        let message = "another `roletransition` gives another role".to_owned();
                        return Err(Failure::wrong(s.node, message, "remove one of them"));
                    }
                }
            }
        }
        Ok(())
    }

    fn role_bounds(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [parent, child] = self.args(s)?;
        let parent = RoleId(self.number(s.at, Space::Role, parent)?);
        let child = self.number(s.at, Space::Role, child)?;
        self.policy.roles[child as usize].bounds = Some(parent);
        Ok(())
    }

    fn user_role(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [user, role] = self.args(s)?;
        let users = self.members(s.at, Space::User, user)?;
        let roles = self.members(s.at, Space::Role, role)?;
        self.spend(s.node, users.len().saturating_mul(roles.words()))?;
        for user in users.iter() {
            self.policy.users[user].roles.union_with(&roles);
        }
        Ok(())
    }

    fn user_level(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [user, level] = self.args(s)?;
        let users = self.members(s.at, Space::User, user)?;
        let level = self.level(s.at, level)?;
        self.spend(s.node, users.len().saturating_mul(level.cats.words()))?;
        for user in users.iter() {
            self.policy.users[user].level = Some(level.clone());
        }
        Ok(())
    }

    fn user_range(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [user, range] = self.args(s)?;
        let users = self.members(s.at, Space::User, user)?;
        let range = self.range(s.at, range)?;
        let words = range.low.cats.words() + range.high.cats.words();
        self.spend(s.node, users.len().saturating_mul(words))?;
        for user in users.iter() {
            self.policy.users[user].range = Some(range.clone());
        }
        Ok(())
    }

    fn user_bounds(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [parent, child] = self.args(s)?;
        let parent = UserId(self.number(s.at, Space::User, parent)?);
        let child = self.number(s.at, Space::User, child)?;
        self.policy.users[child as usize].bounds = Some(parent);
        Ok(())
    }

    /// Prefixes and logins are for other programs: only the names are checked.
    fn user_prefix(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [user, _] = self.args(s)?;
        self.members(s.at, Space::User, user).map(drop)
    }

    fn selinux_user(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [_, user, range] = self.args(s)?;
        self.number(s.at, Space::User, user)?;
        self.range(s.at, range).map(drop)
    }

    fn selinux_user_default(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [user, range] = self.args(s)?;
        self.number(s.at, Space::User, user)?;
        self.range(s.at, range).map(drop)
    }

    /// Without a clearance, no context of the user would be valid.
    fn users_have_ranges(&mut self, statements: &Statements, report: &mut Report) {
        let without = self.policy.users.iter().filter(|(_, user)| user.range.is_none());
        let without: Vec<Box<str>> = without.map(|(name, _)| name.clone()).collect();
        for name in without {
            let declared = statements.of(kw::USER).iter().map(|s| s.node);
            let node = declared.into_iter().find(|node| {
                let name_node = self.tree.list(*node).get(1).copied();
                name_node.is_some_and(|n| self.text(n).is_ok_and(|t| name.ends_with(t)))
            });
            if let Some(node) = node {
                let message = format!("user `{name}` has no clearance in a multi-level policy");
                let help = format!("add `(userrange {name} ((s0) (s0)))`");
                report.add(Failure::wrong_owned(node, message, help));
            }
        }
    }
}

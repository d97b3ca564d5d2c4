//! Statements about single types: bounds, permissive domains.

use super::statements::{LiveStatement, Statements};
use super::{Builder, Failure, Item, Report, kw};
use crate::TypeId;

/// The most types that may bound one another in a chain, as in the kernel.
const MAX_BOUNDS: usize = 4;

impl Builder<'_> {
    /// Reads statements about single types.
    pub(super) fn type_statements(&mut self, statements: &Statements, report: &mut Report) {
        self.each(statements, &[kw::TYPEBOUNDS], report, Self::type_bounds);
        self.each(statements, &[kw::TYPEPERMISSIVE], report, Self::type_permissive);
        self.each(statements, &[kw::TYPENEVERAUDIT], report, Self::type_neveraudit);
        self.each(statements, &[kw::EXPANDTYPEATTRIBUTE], report, Self::expand_attribute);
        self.each(statements, &[kw::POLICYCAP], report, Self::policy_capability);
        self.each(statements, &[kw::HANDLEUNKNOWN], report, Self::handle_unknown);
    }

    fn type_bounds(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [parent, child] = self.args(s)?;
        let (parent, child) = (self.single_type(s.at, parent)?, self.single_type(s.at, child)?);
        let place = self.place(s.node);
        let entry = &mut self.policy.types[child.index()];
        if entry.bounds.is_some_and(|bound| bound != parent) {
            let message = "the type is bounded already".to_owned();
            return Err(Failure::wrong(s.node, message, "a type has at most one bound"));
        }
        entry.bounds = Some(parent);
        entry.bounds_place = place;
        let bounds = |id: &TypeId| self.policy.types[id.index()].bounds;
        if std::iter::successors(Some(child), bounds).take(MAX_BOUNDS + 2).count() > MAX_BOUNDS + 1
        {
            let message = "types bound one another in a chain of more than 4".to_owned();
            return Err(Failure::wrong(s.node, message, "shorten the chain, or break the cycle"));
        }
        Ok(())
    }

    fn type_permissive(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name] = self.args(s)?;
        let id = self.single_type(s.at, name)?;
        self.policy.types[id.index()].permissive = true;
        Ok(())
    }

    fn type_neveraudit(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name] = self.args(s)?;
        let id = self.single_type(s.at, name)?;
        self.policy.types[id.index()].neveraudit = true;
        Ok(())
    }

    /// How attributes are stored makes no difference to any answer: only the names are checked.
    fn expand_attribute(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [names, _] = self.args(s)?;
        let list = match names.item {
            Item::List { .. } => self.tree.list(names),
            _ => std::slice::from_ref(&names),
        };
        list.iter().try_for_each(|name| self.type_id(s.at, *name).map(drop))
    }

    fn policy_capability(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name] = self.args(s)?;
        let name: Box<str> = self.text(name)?.into();
        if !self.policy.capabilities.contains(&name) {
            self.policy.capabilities.push(name);
        }
        Ok(())
    }

    fn handle_unknown(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        use crate::policy::HandleUnknown;
        let [action] = self.args(s)?;
        self.policy.handle_unknown = match action.item {
            Item::Word(kw::ALLOW) => HandleUnknown::Allow,
            Item::Word(kw::DENY) => HandleUnknown::Deny,
            Item::Word(kw::REJECT) => HandleUnknown::Reject,
            _ => return Err(self.misuse(s)),
        };
        Ok(())
    }
}

//! Security contexts, named or written out.

use super::{Binding, Builder, Container, Failure, Item, Node, Space};
use crate::policy::{Context, ContextError};
use crate::{RoleId, UserId};

impl Builder<'_> {
    /// The context that a name or `(user role type [range])` stands for; it must be valid.
    pub(super) fn context(&mut self, at: Container, node: Node) -> Result<Context, Failure> {
        if let Item::Word(_) = node.item {
            return match self.find(at, Space::Context, node)? {
                Binding::Symbol(id) => {
                    let symbol = self.scopes.symbol(id);
                    match self.tree.list(symbol.node).get(2).copied() {
                        Some(value @ Node { item: Item::List { .. }, .. }) => {
                            self.context(symbol.container, value)
                        }
                        _ => Err(super::expected(symbol.node, "context")),
                    }
                }
                Binding::Unnamed(node, at) => self.context(at, node),
                Binding::Text(_) => Err(super::expected(node, "context")),
            };
        }
        let (parts, range) = match *self.tree.list(node) {
            [user, role, type_] => ([user, role, type_], None),
            [user, role, type_, range] => ([user, role, type_], Some(range)),
            _ => {
                let message = "this is not a context".to_owned();
                let help = "write `(user role type (low high))`";
                return Err(Failure::wrong(node, message, help));
            }
        };
        let user = UserId(self.number(at, Space::User, parts[0])?);
        let role = RoleId(self.number(at, Space::Role, parts[1])?);
        let type_ = self.single_type(at, parts[2])?;
        let range = match range {
            Some(range) => Some(Box::new(self.range(at, range)?)).filter(|_| self.policy.mls),
            None => None,
        };
        let context = Context { user, role, type_, range };
        match self.policy.validate(&context) {
            Ok(()) => Ok(context),
            Err(error) => Err(self.invalid(node, &context, &error)),
        }
    }

    fn invalid(&self, node: Node, context: &Context, error: &ContextError) -> Failure {
        let text = self.policy.format_context(context);
        let message = format!("`{text}` is not a valid context: {error}");
        Failure::wrong(
            node,
            message,
            "add a `roletype`, `userrole` or `userrange`, or change the context",
        )
    }
}

//! Builds the policy database from statements in force.

mod attributes;
mod builder;
mod classes;
mod constraints;
mod contexts;
mod declare;
mod labels;
mod mls;
mod permissions;
mod roles;
mod rules;
mod statements;
mod types;
mod xperms;

use super::containers::{Container, Containers};
use super::failure::Failure;
use super::report::Report;
use super::scopes::{Binding, Scopes, SymbolId};
use super::space::Space;
use super::spending::Spending;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};
use crate::policy::Policy;
use builder::{Builder, expected};
use permissions::ClassPerms;
use statements::Statements;

/// The policy that the live statements spell. What is wrong goes to `report`.
pub(super) fn build(
    tree: &Tree,
    containers: &Containers,
    scopes: &Scopes,
    live: &[Container],
    spending: &Spending,
    report: &mut Report,
) -> Policy {
    let mut builder = Builder::new(tree, containers, scopes, spending);
    builder.policy.sources = tree.sources.names();
    builder.declare();
    if let Err(failure) = builder.spend_on_own_sets() {
        report.add(failure);
        return builder.policy;
    }
    let statements = Statements::new(&mut builder, live, report);
    builder.aliases(&statements, report);
    builder.declare_in_order(&statements, report);
    builder.name_aliases();
    builder.classes(&statements, report);
    builder.levels(&statements, report);
    builder.attributes(&statements, report);
    builder.roles_and_users(&statements, report);
    builder.type_statements(&statements, report);
    builder.rules(&statements, report);
    builder.constraints(&statements, report);
    builder.labels(&statements, report);
    if builder.policy.is_too_large() {
        let node = containers.get(Container::ROOT).node;
        let message = "there are too many types and classes together".to_owned();
        report.add(Failure::wrong(node, message, "split the policy"));
    }
    builder.policy.members = spending.spent();
    builder.policy
}

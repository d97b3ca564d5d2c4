//! The types and roles that values of a binary policy stand for.

use super::problem::Problem;
use crate::policy::Policy;
use crate::{RoleId, TypeId};

/// The type or attribute of a value, which counts from 1.
pub(super) fn type_index(policy: &Policy, value: u32) -> Result<TypeId, Problem> {
    let index = value.checked_sub(1).map(TypeId);
    index
        .filter(|id| id.index() < policy.types.len())
        .ok_or(Problem::Number { kind: "type", number: value })
}

/// The role of a value, which counts from 1.
pub(super) fn role_index(policy: &Policy, value: u32) -> Result<RoleId, Problem> {
    let index = value.checked_sub(1).map(RoleId);
    index
        .filter(|id| id.index() < policy.roles.len())
        .ok_or(Problem::Number { kind: "role", number: value })
}

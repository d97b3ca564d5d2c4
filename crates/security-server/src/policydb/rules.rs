//! Rules: access vectors, labels of new objects, conditions, roles, ranges.

use super::cursor::Cursor;
use super::numbers::{role_index, type_index};
use super::problem::Problem;
use super::symbols::read_range;
use crate::policy::{
    AvKind, AvRule, BoolStep, Branch, Condition, Policy, TypeKey, TypeRule, TypeRuleKind,
    XpermKind, XpermRule, Xperms,
};
use crate::{BoolId, ClassId, CondId};

/// Reads everything between the tables of names and the labelling rules.
pub(super) fn read(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let count = cursor.count(12)?;
    policy.av_rules.reserve(count);
    for _ in 0..count {
        read_rule(cursor, policy, None)?;
    }
    conditions(cursor, policy)?;
    role_transitions(cursor, policy)?;
    for _ in 0..cursor.count(8)? {
        let (from, to) = (cursor.u32()?, cursor.u32()?);
        let pair = (role_index(policy, from)?, role_index(policy, to)?);
        policy.role_allows.insert(pair);
    }
    name_transitions(cursor, policy)
}

/// The class of a value, which counts from 1.
pub(super) fn class_index(policy: &Policy, value: u32) -> Result<ClassId, Problem> {
    let index = value.checked_sub(1).map(ClassId);
    index
        .filter(|id| id.index() < policy.classes.len())
        .ok_or(Problem::Number { kind: "class", number: value })
}

/// Reads one entry of an access vector table.
fn read_rule(
    cursor: &mut Cursor<'_>,
    policy: &mut Policy,
    branch: Option<Branch>,
) -> Result<(), Problem> {
    let source = type_index(policy, u32::from(cursor.u16()?))?;
    let target = type_index(policy, u32::from(cursor.u16()?))?;
    let class = class_index(policy, u32::from(cursor.u16()?))?;
    // The highest bit says whether the rule was in force when the policy was written; its condition
    // knows better.
    let specified = cursor.u16()? & 0x7fff;
    if let 0x100 | 0x200 | 0x400 = specified {
        let kind = av_kind(specified >> 8);
        let (family, xperms) = read_xperms(cursor)?;
        let place = None;
        policy.xperm_rules.push(XpermRule {
            source,
            target,
            class,
            kind,
            family,
            xperms,
            branch,
            place,
        });
        return Ok(());
    }
    let data = cursor.u32()?;
    if let 1 | 2 | 4 = specified {
        let kind = av_kind(specified);
        // What is audited is written; what is not audited is the rule.
        let perms = if kind == AvKind::DontAudit { !data } else { data };
        let place = None;
        policy.av_rules.push(AvRule { source, target, class, kind, perms, branch, place });
        return Ok(());
    }
    let kind = match specified {
        0x10 => TypeRuleKind::Transition,
        0x20 => TypeRuleKind::Member,
        0x40 => TypeRuleKind::Change,
        _ => return Err(Problem::Malformed("a rule is of no known kind")),
    };
    let key = TypeKey { kind, source, target, class };
    let result = type_index(policy, data)?;
    policy.type_rules.push(TypeRule { key, result, branch, place: None });
    Ok(())
}

fn av_kind(specified: u16) -> AvKind {
    match specified {
        1 => AvKind::Allow,
        2 => AvKind::AuditAllow,
        _ => AvKind::DontAudit,
    }
}

fn read_xperms(cursor: &mut Cursor<'_>) -> Result<(XpermKind, Xperms), Problem> {
    let (specified, driver) = (cursor.u8()?, cursor.u8()?);
    let mut words = [0u64; 4];
    for word in &mut words {
        *word = cursor.u64()?;
    }
    match specified {
        1 => Ok((XpermKind::Ioctl, Xperms::Functions { driver, functions: words })),
        2 => Ok((XpermKind::Ioctl, Xperms::Drivers(words))),
        3 => Ok((XpermKind::Nlmsg, Xperms::Functions { driver, functions: words })),
        _ => Err(Problem::Malformed("an extended permission is of no known kind")),
    }
}

fn conditions(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    for _ in 0..cursor.count(16)? {
        // The state when the policy was written; the booleans know better.
        cursor.u32()?;
        let steps = (0..cursor.count(8)?).map(|_| bool_step(cursor, policy));
        let steps = steps.collect::<Result<Vec<BoolStep>, Problem>>()?;
        let condition = Condition::new(steps)
            .map_err(|_| Problem::Malformed("a condition is not an expression"))?;
        let id = CondId::at(policy.conditions.len());
        policy.conditions.push(condition);
        for when in [true, false] {
            for _ in 0..cursor.count(12)? {
                read_rule(cursor, policy, Some(Branch { condition: id, when }))?;
            }
        }
    }
    Ok(())
}

fn bool_step(cursor: &mut Cursor<'_>, policy: &Policy) -> Result<BoolStep, Problem> {
    let (kind, boolean) = (cursor.u32()?, cursor.u32()?);
    Ok(match kind {
        1 => {
            let id = boolean.checked_sub(1).map(BoolId);
            let id = id.filter(|id| id.index() < policy.booleans.len());
            BoolStep::Bool(id.ok_or(Problem::Number { kind: "boolean", number: boolean })?)
        }
        2 => BoolStep::Not,
        3 => BoolStep::Or,
        4 => BoolStep::And,
        5 => BoolStep::Xor,
        6 => BoolStep::Eq,
        7 => BoolStep::Neq,
        _ => return Err(Problem::Malformed("a condition has an unknown step")),
    })
}

fn role_transitions(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    for _ in 0..cursor.count(16)? {
        let (role, type_) = (cursor.u32()?, cursor.u32()?);
        let (new, class) = (cursor.u32()?, cursor.u32()?);
        let key =
            (role_index(policy, role)?, type_index(policy, type_)?, class_index(policy, class)?);
        let new = role_index(policy, new)?;
        policy.role_transitions.insert(key, new);
    }
    Ok(())
}

fn name_transitions(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    for _ in 0..cursor.count(20)? {
        let name = cursor.string()?;
        if cursor.version >= 33 {
            let target = type_index(policy, cursor.u32()?)?;
            let class = class_index(policy, cursor.u32()?)?;
            for _ in 0..cursor.count(16)? {
                let sources = cursor.bits(policy.types.len())?;
                let result = type_index(policy, cursor.u32()?)?;
                policy.name_transitions.add(&sources, target, class, name, result);
            }
        } else {
            let source = type_index(policy, cursor.u32()?)?;
            let target = type_index(policy, cursor.u32()?)?;
            let class = class_index(policy, cursor.u32()?)?;
            let result = type_index(policy, cursor.u32()?)?;
            let sources = [source.index()].into_iter().collect();
            policy.name_transitions.add(&sources, target, class, name, result);
        }
    }
    Ok(())
}

/// Reads range transitions, which stand behind the labelling rules.
pub(super) fn read_range_transitions(
    cursor: &mut Cursor<'_>,
    policy: &mut Policy,
) -> Result<(), Problem> {
    for _ in 0..cursor.count(20)? {
        let source = type_index(policy, cursor.u32()?)?;
        let target = type_index(policy, cursor.u32()?)?;
        let class = class_index(policy, cursor.u32()?)?;
        let range = read_range(cursor)?;
        policy.range_transitions.insert((source, target, class), range);
    }
    Ok(())
}

//! Tables of names: classes, roles, types, users, booleans, sensitivities, categories.

use super::{cursor::Cursor, numbers, problem::Problem};
use crate::policy::{
    Class, Comparison, Constraint, DefaultFrom, DefaultRange, Expr, Level, LevelPair, Names,
    Policy, Program, Range, Role, Step, Subject, Symbol, Type, TypeKind, User,
};
use crate::{BitSet, RoleId, SensId, TypeId, UserId};

/// Entries of a table by their values, which count from 1 and may come in any order.
struct Slots<T>(Vec<Option<(Box<str>, T)>>);

impl<T> Slots<T> {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| None).collect())
    }

    fn put(&mut self, kind: &'static str, value: u32, name: &str, entry: T) -> Result<(), Problem> {
        let index = (value as usize).checked_sub(1);
        let slot = index.and_then(|index| self.0.get_mut(index));
        match slot {
            Some(slot @ None) => *slot = Some((name.into(), entry)),
            Some(Some(_)) => return Err(Problem::Duplicate(name.to_owned())),
            None => return Err(Problem::Number { kind, number: value }),
        }
        Ok(())
    }

    /// The table; values that no entry has get one from `unused`.
    fn into_names(self, mut unused: impl FnMut() -> Option<T>) -> Result<Names<T>, Problem> {
        let mut names = Names::default();
        for (index, slot) in self.0.into_iter().enumerate() {
            let (name, entry) = match slot {
                Some(found) => found,
                None => {
                    let entry = unused().ok_or(Problem::Malformed("a value has no name"))?;
                    (format!("<{}>", index + 1).into(), entry)
                }
            };
            if names.insert(name.clone(), entry).is_some() {
                return Err(Problem::Duplicate(name.into()));
            }
        }
        Ok(names)
    }
}

/// The header of a table: its greatest value and its number of entries.
fn table(cursor: &mut Cursor<'_>) -> Result<(usize, usize), Problem> {
    // Every entry takes at least 8 bytes, and every value at least an entry or a set.
    let values = cursor.count(8)?;
    let entries = cursor.count(8)?;
    Ok((values, entries))
}

/// Reads all tables.
pub(super) fn read(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    commons(cursor, policy)?;
    classes(cursor, policy)?;
    roles(cursor, policy)?;
    types(cursor, policy)?;
    users(cursor, policy)?;
    booleans(cursor, policy)?;
    sensitivities(cursor, policy)?;
    categories(cursor, policy)
}

fn commons(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, value) = (cursor.u32()?, cursor.u32()?);
        let (highest, count) = (cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let mut permissions = Slots::new(permission_count(highest)?);
        read_permissions(cursor, count, &mut permissions)?;
        slots.put("common", value, name, permissions.into_names(|| Some(()))?)?;
    }
    policy.commons = slots.into_names(|| None)?;
    Ok(())
}

fn permission_count(highest: u32) -> Result<usize, Problem> {
    if highest <= 32 {
        return Ok(highest as usize);
    }
    Err(Problem::Malformed("a class has more than 32 permissions"))
}

fn read_permissions(
    cursor: &mut Cursor<'_>,
    count: u32,
    slots: &mut Slots<()>,
) -> Result<(), Problem> {
    for _ in 0..count {
        let (len, value) = (cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        slots.put("permission", value, name, ())?;
    }
    Ok(())
}

fn classes(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, common_len, value) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (highest, count, constraints) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let mut class = Class::default();
        let mut permissions = Slots::new(permission_count(highest)?);
        if common_len > 0 {
            let common = cursor.name(common_len)?;
            let inherited = policy
                .commons
                .get(common)
                .ok_or(Problem::Malformed("a class has no such common"))?;
            for (value, name) in (1..).zip(inherited.keys()) {
                permissions.put("permission", value, name, ())?;
            }
            class.common = Some(common.into());
        }
        read_permissions(cursor, count, &mut permissions)?;
        class.permissions = permissions.into_names(|| Some(()))?;
        class.constraints = read_constraints(cursor, constraints)?;
        let validations = cursor.u32()?;
        class.validations = read_constraints(cursor, validations)?;
        class.default_user = default_from(cursor.u32()?)?;
        class.default_role = default_from(cursor.u32()?)?;
        class.default_range = default_range(cursor.u32()?)?;
        class.default_type = default_from(cursor.u32()?)?;
        slots.put("class", value, name, class)?;
    }
    policy.classes = slots.into_names(|| None)?;
    Ok(())
}

fn default_from(value: u32) -> Result<Option<DefaultFrom>, Problem> {
    match value {
        0 => Ok(None),
        1 => Ok(Some(DefaultFrom::Source)),
        2 => Ok(Some(DefaultFrom::Target)),
        _ => Err(Problem::Malformed("a class has an unknown default")),
    }
}

fn default_range(value: u32) -> Result<Option<DefaultRange>, Problem> {
    use DefaultFrom::{Source, Target};
    Ok(Some(match value {
        0 => return Ok(None),
        1 => DefaultRange::Low(Source),
        2 => DefaultRange::High(Source),
        3 => DefaultRange::LowHigh(Source),
        4 => DefaultRange::Low(Target),
        5 => DefaultRange::High(Target),
        6 => DefaultRange::LowHigh(Target),
        7 => DefaultRange::GlbLub,
        _ => return Err(Problem::Malformed("a class has an unknown default range")),
    }))
}

fn read_constraints(cursor: &mut Cursor<'_>, count: u32) -> Result<Vec<Constraint>, Problem> {
    let mut constraints = Vec::new();
    for _ in 0..cursor.fits(count as usize, 8)? {
        let perms = cursor.u32()?;
        let steps = (0..cursor.count(12)?).map(|_| read_step(cursor));
        let steps = steps.collect::<Result<Vec<Step>, Problem>>()?;
        let program = Program::new(steps)
            .map_err(|_| Problem::Malformed("a constraint is not an expression"))?;
        constraints.push(Constraint { perms, program, place: None });
    }
    Ok(constraints)
}

fn read_step(cursor: &mut Cursor<'_>) -> Result<Step, Problem> {
    let (kind, attribute, operator) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    match kind {
        1 => Ok(Step::Not),
        2 => Ok(Step::And),
        3 => Ok(Step::Or),
        4 => Ok(Step::Test(attributes_test(attribute, comparison(operator)?)?)),
        5 => {
            let set = cursor.bits(1 << 17)?;
            // The names as they were written, for tools: types, types left out, flags.
            cursor.bits(1 << 17)?;
            cursor.bits(1 << 17)?;
            cursor.u32()?;
            Ok(Step::Test(names_test(attribute, comparison(operator)?, set)?))
        }
        _ => Err(Problem::Malformed("a constraint has an unknown step")),
    }
}

fn comparison(operator: u32) -> Result<Comparison, Problem> {
    Ok(match operator {
        1 => Comparison::Eq,
        2 => Comparison::Neq,
        3 => Comparison::Dom,
        4 => Comparison::DomBy,
        5 => Comparison::Incomp,
        _ => return Err(Problem::Malformed("a constraint has an unknown operator")),
    })
}

fn attributes_test(attribute: u32, comparison: Comparison) -> Result<Expr, Problem> {
    Ok(match attribute {
        1 => Expr::Symbols(Symbol::User, comparison),
        2 => Expr::Symbols(Symbol::Role, comparison),
        4 => Expr::Symbols(Symbol::Type, comparison),
        0x20 => Expr::Levels(LevelPair::L1L2, comparison),
        0x40 => Expr::Levels(LevelPair::L1H2, comparison),
        0x80 => Expr::Levels(LevelPair::H1L2, comparison),
        0x100 => Expr::Levels(LevelPair::H1H2, comparison),
        0x200 => Expr::Levels(LevelPair::L1H1, comparison),
        0x400 => Expr::Levels(LevelPair::L2H2, comparison),
        _ => return Err(Problem::Malformed("a constraint compares unknown things")),
    })
}

fn names_test(attribute: u32, comparison: Comparison, set: BitSet) -> Result<Expr, Problem> {
    let subject = match attribute & (8 | 16) {
        0 => Subject::Source,
        8 => Subject::Target,
        16 => Subject::Process,
        _ => return Err(Problem::Malformed("a constraint names two contexts at once")),
    };
    let symbol = match attribute & !(8 | 16) {
        1 => Symbol::User,
        2 => Symbol::Role,
        4 => Symbol::Type,
        _ => return Err(Problem::Malformed("a constraint names unknown things")),
    };
    let negated = match comparison {
        Comparison::Eq => false,
        Comparison::Neq => true,
        _ => return Err(Problem::Malformed("a constraint orders names")),
    };
    Ok(Expr::Names { subject, symbol, negated, set })
}

fn roles(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, value, bounds) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let dominates = cursor.bits(values)?;
        let types = cursor.bits(1 << 17)?;
        let bounds = bounds.checked_sub(1).map(RoleId);
        slots.put("role", value, name, Role { types, bounds, dominates })?;
    }
    policy.roles = slots.into_names(|| None)?;
    if policy.roles.get_index(0).is_none_or(|(name, _)| &**name != "object_r") {
        return Err(Problem::Malformed("the first role is not `object_r`"));
    }
    Ok(())
}

/// The bits of a type's properties.
const TYPE_PRIMARY: u32 = 1;
const TYPE_ATTRIBUTE: u32 = 2;

fn types(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    if values > usize::from(u16::MAX) {
        return Err(Problem::Malformed("there are more than 65,535 types"));
    }
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, value) = (cursor.u32()?, cursor.u32()?);
        let (properties, bounds) = (cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let attribute = properties & TYPE_ATTRIBUTE != 0;
        if properties & TYPE_PRIMARY == 0 && !attribute {
            let actual = value.checked_sub(1).filter(|index| (*index as usize) < values);
            let actual = actual.ok_or(Problem::Number { kind: "type", number: value })?;
            policy.type_aliases.insert(name.into(), TypeId(actual));
            continue;
        }
        let kind = if attribute { TypeKind::Attribute } else { TypeKind::Type };
        let bounds = bounds.checked_sub(1).map(TypeId);
        slots.put("type", value, name, Type { bounds, ..Type::new(kind) })?;
    }
    policy.types = slots.into_names(|| Some(Type::new(TypeKind::Unused)))?;
    Ok(())
}

fn users(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, value, bounds) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let roles = cursor.bits(policy.roles.len())?;
        let range = Some(read_range(cursor)?).filter(|_| policy.mls);
        let level = Some(read_level(cursor)?).filter(|_| policy.mls);
        let bounds = bounds.checked_sub(1).map(UserId);
        slots.put("user", value, name, User { roles, range, level, bounds })?;
    }
    policy.users = slots.into_names(|| None)?;
    Ok(())
}

fn booleans(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (value, state, len) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        slots.put("boolean", value, name, state != 0)?;
    }
    policy.booleans = slots.into_names(|| None)?;
    Ok(())
}

fn sensitivities(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, is_alias) = (cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        let level = read_level(cursor)?;
        if is_alias != 0 {
            policy.sensitivity_aliases.insert(name.into(), level.sens);
        } else {
            slots.put("sensitivity", level.sens.0.wrapping_add(1), name, level.cats)?;
        }
    }
    policy.sensitivities = slots.into_names(|| None)?;
    Ok(())
}

fn categories(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (values, entries) = table(cursor)?;
    let mut slots = Slots::new(values);
    for _ in 0..entries {
        let (len, value, is_alias) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.name(len)?;
        if is_alias != 0 {
            let actual = value.checked_sub(1);
            let actual = actual.ok_or(Problem::Number { kind: "category", number: value })?;
            policy.category_aliases.insert(name.into(), actual);
        } else {
            slots.put("category", value, name, ())?;
        }
    }
    policy.categories = slots.into_names(|| None)?;
    Ok(())
}

pub(super) fn read_level(cursor: &mut Cursor<'_>) -> Result<Level, Problem> {
    let sens = sensitivity(cursor)?;
    Ok(Level { sens, cats: cursor.bits(1 << 20)? })
}

/// Policies without levels hold zeros here; [`check`] refuses what a multi-level policy must not
/// hold.
fn sensitivity(cursor: &mut Cursor<'_>) -> Result<SensId, Problem> {
    Ok(SensId(cursor.u32()?.wrapping_sub(1)))
}

pub(super) fn read_range(cursor: &mut Cursor<'_>) -> Result<Range, Problem> {
    let levels = cursor.u32()?;
    if !(1..=2).contains(&levels) {
        return Err(Problem::Malformed("a range has not one or two levels"));
    }
    let low_sens = sensitivity(cursor)?;
    let high_sens = if levels == 2 { sensitivity(cursor)? } else { low_sens };
    let low = Level { sens: low_sens, cats: cursor.bits(1 << 20)? };
    let high_cats = if levels == 2 { cursor.bits(1 << 20)? } else { low.cats.clone() };
    Ok(Range { low, high: Level { sens: high_sens, cats: high_cats } })
}

/// Checks what could only be checked when all tables were read.
pub(super) fn check(policy: &Policy) -> Result<(), Problem> {
    let below = |set: &BitSet, count: usize| set.last().is_none_or(|last| last < count);
    let numbers = policy.roles.values().all(|role| below(&role.types, policy.types.len()))
        && policy.sensitivities.values().all(|cats| below(cats, policy.categories.len()))
        && policy.sensitivity_aliases.values().all(|id| id.index() < policy.sensitivities.len())
        && policy.category_aliases.values().all(|id| (*id as usize) < policy.categories.len())
        && policy
            .users
            .values()
            .filter_map(|user| user.level.as_ref())
            .all(|level| valid(policy, level))
        && policy
            .users
            .values()
            .filter_map(|user| user.range.as_ref())
            .all(|range| valid_range(policy, range))
        && policy.range_transitions.values().all(|range| valid_range(policy, range));
    if !numbers {
        return Err(Problem::Malformed("a role or level holds a number that names nothing"));
    }
    let depth = |start: usize, next: &dyn Fn(usize) -> Option<usize>| {
        std::iter::successors(Some(start), |index| next(*index)).take(8).count()
    };
    for (index, entry) in policy.types.values().enumerate() {
        if let Some(bound) = entry.bounds {
            numbers::type_index(policy, bound.0 + 1)?;
        }
        let next = |index: usize| policy.types.get_index(index)?.1.bounds.map(TypeId::index);
        if depth(index, &next) > 5 {
            return Err(Problem::Malformed("types bound one another in a chain of more than 4"));
        }
    }
    for role in policy.roles.values() {
        role.bounds.map_or(Ok(()), |bound| numbers::role_index(policy, bound.0 + 1).map(drop))?;
    }
    for bound in policy.users.values().filter_map(|user| user.bounds) {
        if bound.index() >= policy.users.len() {
            return Err(Problem::Number { kind: "user", number: bound.0.wrapping_add(1) });
        }
    }
    Ok(())
}

fn valid(policy: &Policy, level: &Level) -> bool {
    let allowed = policy.sensitivities.get_index(level.sens.index());
    allowed.is_some_and(|(_, cats)| cats.contains_all(&level.cats))
}

fn valid_range(policy: &Policy, range: &Range) -> bool {
    valid(policy, &range.low) && valid(policy, &range.high) && range.high.dominates(&range.low)
}

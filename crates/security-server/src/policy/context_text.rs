//! Contexts of a policy as text, and which of them are valid.

use super::{Context, ContextError, Level, Policy, Range, TypeKind};
use crate::{BitSet, RoleId, SensId, UserId};
use std::fmt::Write as _;

impl Policy {
    /// The context that `text` spells.
    ///
    /// # Errors
    ///
    /// [`ContextError`] when it is malformed, names something that the policy lacks, or is not
    /// valid.
    pub fn parse_context(&self, text: &str) -> Result<Context, ContextError> {
        let parts = flask::ContextParts::of(text).ok_or(ContextError::Malformed)?;
        let flask::ContextParts { user, role, type_, range } = parts;
        let unknown = |kind, name: &str| ContextError::Unknown { kind, name: name.to_owned() };
        let user = self.users.get_index_of(user).ok_or_else(|| unknown("user", user))?;
        let role = self.roles.get_index_of(role).ok_or_else(|| unknown("role", role))?;
        let found = self.type_or_attribute(type_);
        let found = found.filter(|id| self.types[id.index()].kind == TypeKind::Type);
        let type_ = found.ok_or_else(|| unknown("type", type_))?;
        let range = match (self.mls, range) {
            (true, Some(range)) => Some(Box::new(self.parse_range(range)?)),
            (false, None) => None,
            _ => return Err(ContextError::Malformed),
        };
        let context = Context { user: UserId::at(user), role: RoleId::at(role), type_, range };
        self.validate(&context)?;
        Ok(context)
    }

    /// The range that `text` spells, as in `s0-s1:c0.c3,c7`.
    ///
    /// # Errors
    ///
    /// [`ContextError`] when it names something that the policy lacks, or is no range.
    pub fn parse_range(&self, text: &str) -> Result<Range, ContextError> {
        // Names of levels may hold a hyphen, so every hyphen is tried, the first one first.
        let low_only = self.parse_level(text);
        if let Ok(level) = low_only {
            return Ok(Range::single(level));
        }
        for (at, _) in text.match_indices('-') {
            let levels = (self.parse_level(&text[..at]), self.parse_level(&text[at + 1..]));
            if let (Ok(low), Ok(high)) = levels {
                return Ok(Range { low, high });
            }
        }
        let whole = text.split_once('-').map_or(text, |(low, high)| match self.parse_level(low) {
            Ok(_) => high,
            Err(_) => low,
        });
        Err(self.parse_level(whole).err().unwrap_or(ContextError::Malformed))
    }

    fn parse_level(&self, text: &str) -> Result<Level, ContextError> {
        let (sens, cats) =
            text.split_once(':').map_or((text, None), |(sens, cats)| (sens, Some(cats)));
        let found = self.sensitivities.get_index_of(sens).map(SensId::at);
        let sens = found
            .or_else(|| self.sensitivity_aliases.get(sens).copied())
            .ok_or_else(|| ContextError::Unknown { kind: "sensitivity", name: sens.to_owned() })?;
        let mut set = BitSet::new();
        for item in cats.into_iter().flat_map(|cats| cats.split(',')) {
            let (first, last) = item.split_once('.').unwrap_or((item, item));
            let (first, last) = (self.category(first)?, self.category(last)?);
            if first > last {
                return Err(ContextError::NotARange(item.to_owned()));
            }
            (first..=last).for_each(|category| set.insert(category as usize));
        }
        Ok(Level { sens, cats: set })
    }

    fn category(&self, name: &str) -> Result<u32, ContextError> {
        let found = self.categories.get_index_of(name).map(|index| index as u32);
        found
            .or_else(|| self.category_aliases.get(name).copied())
            .ok_or_else(|| ContextError::Unknown { kind: "category", name: name.to_owned() })
    }

    /// Whether the parts of a context go together.
    ///
    /// # Errors
    ///
    /// [`ContextError::Refused`] with what does not.
    pub fn validate(&self, context: &Context) -> Result<(), ContextError> {
        let refused = |why| Err(ContextError::Refused(why));
        let Some((_, user)) = self.users.get_index(context.user.index()) else {
            return refused("the user does not exist");
        };
        let Some((_, role)) = self.roles.get_index(context.role.index()) else {
            return refused("the role does not exist");
        };
        if self.types.get_index(context.type_.index()).is_none_or(|t| t.1.kind != TypeKind::Type) {
            return refused("the type does not exist");
        }
        let object = context.role == RoleId::OBJECT;
        if !object && !role.types.contains(context.type_.index()) {
            return refused("the role may not have that type");
        }
        if !object && !user.roles.contains(context.role.index()) {
            return refused("the user may not have that role");
        }
        match (self.mls, &context.range) {
            (false, None) => Ok(()),
            (true, Some(range)) => self.validate_range(range, user, object),
            _ => refused("a context has a range if, and only if, the policy is multi-level"),
        }
    }

    fn validate_range(
        &self,
        range: &Range,
        user: &super::User,
        object: bool,
    ) -> Result<(), ContextError> {
        let valid = |level: &Level| {
            let allowed = self.sensitivities.get_index(level.sens.index());
            allowed.is_some_and(|(_, cats)| cats.contains_all(&level.cats))
        };
        if !valid(&range.low) || !valid(&range.high) {
            return Err(ContextError::Refused("the sensitivity may not have those categories"));
        }
        if !range.high.dominates(&range.low) {
            return Err(ContextError::Refused("the high level does not dominate the low level"));
        }
        if object || user.range.as_ref().is_some_and(|clearance| clearance.contains(range)) {
            return Ok(());
        }
        Err(ContextError::Refused("the range lies outside the user's clearance"))
    }

    /// The text of a context.
    #[must_use]
    pub fn format_context(&self, context: &Context) -> String {
        let user = self.users.get_index(context.user.index()).map_or("?", |(name, _)| name);
        let role = self.roles.get_index(context.role.index()).map_or("?", |(name, _)| name);
        let mut text = format!("{user}:{role}:{}", self.type_name(context.type_));
        if let Some(range) = &context.range {
            text.push(':');
            self.write_range(&mut text, range);
        }
        text
    }

    /// The text of a range.
    #[must_use]
    pub fn format_range(&self, range: &Range) -> String {
        let mut text = String::new();
        self.write_range(&mut text, range);
        text
    }

    fn write_range(&self, text: &mut String, range: &Range) {
        self.write_level(text, &range.low);
        if range.low != range.high {
            text.push('-');
            self.write_level(text, &range.high);
        }
    }

    fn write_level(&self, text: &mut String, level: &Level) {
        let name = |index: usize| self.categories.get_index(index).map_or("?", |(name, ())| name);
        text.push_str(
            self.sensitivities.get_index(level.sens.index()).map_or("?", |(name, _)| name),
        );
        let mut separator = ':';
        let mut cats = level.cats.iter().peekable();
        while let Some(first) = cats.next() {
            let mut last = first;
            while let Some(next) = cats.next_if_eq(&(last + 1)) {
                last = next;
            }
            // Writing to a string cannot fail.
            let _ = match last - first {
                0 => write!(text, "{separator}{}", name(first)),
                1 => write!(text, "{separator}{},{}", name(first), name(last)),
                _ => write!(text, "{separator}{}.{}", name(first), name(last)),
            };
            separator = ',';
        }
    }
}

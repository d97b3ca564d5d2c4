//! The text of a security context, for tools that show its parts.

/// The parts of `user:role:type[:range]`. Object managers take contexts as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextParts<'a> {
    /// The user.
    pub user: &'a str,
    /// The role.
    pub role: &'a str,
    /// The type: of a process, its domain.
    pub type_: &'a str,
    /// The range, in a multi-level policy.
    pub range: Option<&'a str>,
}

impl<'a> ContextParts<'a> {
    /// The parts of `context`; `None` if one of the first three is missing or empty.
    #[must_use]
    pub fn of(context: &'a str) -> Option<Self> {
        let mut parts = context.splitn(4, ':');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (user, role, type_) = (part()?, part()?, part()?);
        Some(Self { user, role, type_, range: part() })
    }
}

/// The type in `context`; nothing if it is no context.
#[must_use]
pub fn type_of(context: &str) -> &str {
    ContextParts::of(context).map_or("", |parts| parts.type_)
}

/// The domain in the context of a process as profiles name it: its type without `_t`.
#[must_use]
pub fn domain_of(context: &str) -> &str {
    let name = type_of(context);
    name.strip_suffix("_t").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_three_parts_and_perhaps_a_range() {
        let parts = |range| ContextParts { user: "u", role: "r", type_: "main_t", range };
        assert_eq!(ContextParts::of("u:r:main_t"), Some(parts(None)));
        assert_eq!(ContextParts::of("u:r:main_t:s0:c1"), Some(parts(Some("s0:c1"))));
        for wrong in ["", "u", "u:r", "u:r:", "u::t", ":r:t"] {
            assert_eq!(ContextParts::of(wrong), None, "{wrong}");
        }
        assert_eq!((type_of("u:r:main_t"), domain_of("u:r:main_t:s0")), ("main_t", "main"));
        assert_eq!((type_of("nothing"), domain_of("u:r:x")), ("", "x"));
    }
}

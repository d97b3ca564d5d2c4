//! Kinds of names.

use super::words::{Word, kw};

/// Kinds of names that do not clash with one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Block,
    User,
    Role,
    Type,
    Common,
    Class,
    ClassPermission,
    Boolean,
    Tunable,
    Sensitivity,
    Category,
    Sid,
    Context,
    Level,
    LevelRange,
    IpAddr,
    PermissionX,
    Text,
}

impl Space {
    /// What a name of it is called in messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Block => "block, macro or optional",
            Self::User => "user",
            Self::Role => "role",
            Self::Type => "type",
            Self::Common => "common",
            Self::Class => "class",
            Self::ClassPermission => "class permission set",
            Self::Boolean => "boolean",
            Self::Tunable => "tunable",
            Self::Sensitivity => "sensitivity",
            Self::Category => "category",
            Self::Sid => "initial SID",
            Self::Context => "context",
            Self::Level => "level",
            Self::LevelRange => "level range",
            Self::IpAddr => "address",
            Self::PermissionX => "set of extended permissions",
            Self::Text => "parameter",
        }
    }

    /// Where names declared by a statement go, and its keyword is what they are.
    pub(super) fn declared_by(keyword: Word) -> Option<Self> {
        Some(match keyword {
            kw::TYPE | kw::TYPEATTRIBUTE | kw::TYPEALIAS => Self::Type,
            kw::ROLE | kw::ROLEATTRIBUTE => Self::Role,
            kw::USER | kw::USERATTRIBUTE => Self::User,
            kw::COMMON => Self::Common,
            kw::CLASS | kw::CLASSMAP => Self::Class,
            kw::CLASSPERMISSION => Self::ClassPermission,
            kw::BOOLEAN => Self::Boolean,
            kw::TUNABLE => Self::Tunable,
            kw::SENSITIVITY | kw::SENSITIVITYALIAS => Self::Sensitivity,
            kw::CATEGORY | kw::CATEGORYALIAS | kw::CATEGORYSET => Self::Category,
            kw::SID => Self::Sid,
            kw::CONTEXT => Self::Context,
            kw::LEVEL => Self::Level,
            kw::LEVELRANGE => Self::LevelRange,
            kw::IPADDR => Self::IpAddr,
            kw::PERMISSIONX => Self::PermissionX,
            _ => return None,
        })
    }

    /// What a macro's parameter of that kind may stand for.
    pub(super) fn of_param(kind: Word) -> Option<Self> {
        Some(match kind {
            kw::TYPE => Self::Type,
            kw::ROLE => Self::Role,
            kw::USER => Self::User,
            kw::CLASS | kw::CLASSMAP => Self::Class,
            kw::CLASSPERMISSION => Self::ClassPermission,
            kw::SENSITIVITY => Self::Sensitivity,
            kw::CATEGORY | kw::CATEGORYSET => Self::Category,
            kw::LEVEL => Self::Level,
            kw::LEVELRANGE => Self::LevelRange,
            kw::IPADDR => Self::IpAddr,
            kw::BOOL | kw::BOOLEAN => Self::Boolean,
            kw::NAME | kw::STRING => Self::Text,
            _ => return None,
        })
    }
}

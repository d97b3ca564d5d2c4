//! Numbers that stand for the named things of one policy, counted from 0 in the order of the
//! policy's tables.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Its place in the policy's table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The number of the `index`-th entry. Tables never hold more than `u32::MAX` entries.
            #[must_use]
            pub const fn at(index: usize) -> Self {
                Self(index as u32)
            }
        }
    };
}

id!(
    /// A type or a type attribute.
    TypeId
);
id!(
    /// A role.
    RoleId
);
id!(
    /// A user.
    UserId
);
id!(
    /// An object class of the policy (not of `flask`).
    ClassId
);
id!(
    /// A boolean.
    BoolId
);
id!(
    /// A sensitivity; a greater number is more sensitive.
    SensId
);
id!(
    /// A boolean expression that rules depend on.
    CondId
);

impl RoleId {
    /// `object_r`, which every policy has and which is valid with every type.
    pub const OBJECT: Self = Self(0);
}

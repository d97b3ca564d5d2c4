//! A test, by the attack that it is.

use crate::stage::Stage;

/// A test, and its name: the attack.
pub(crate) type Case = (&'static str, fn(&Stage));

/// Lists functions as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn(&crate::stage::Stage))),*] };
}
pub(crate) use cases;

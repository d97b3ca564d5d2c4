//! A test, by the sentence that it checks.

use crate::stage::Stage;

/// A test, and its name: a sentence that would be false if it failed.
pub(crate) type Case = (&'static str, fn(&Stage));

/// Lists functions as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn(&crate::stage::Stage))),*] };
}
pub(crate) use cases;

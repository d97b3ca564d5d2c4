//! Policies of any size.

use std::fmt::Write as _;

/// A policy in CIL with that many types, an attribute for every tenth, and twenty rules for each
/// type.
#[must_use]
pub fn synthetic_policy(types: usize) -> String {
    let mut text = String::from(
        "(class file (read write open append)) (classorder (file)) (user u) (role r) (userrole u r)\n",
    );
    let attributes = types / 10;
    for n in 0..attributes {
        let _ = writeln!(text, "(typeattribute a{n})");
    }
    for n in 0..types {
        let _ = writeln!(text, "(type t{n})");
        for k in 1..=6 {
            let _ = writeln!(text, "(typeattributeset a{} (t{n}))", n * k * 31 % attributes);
        }
        for k in 0..15 {
            let target = (n * 37 + k * 101) % types;
            let _ = writeln!(text, "(allow t{n} t{target} (file (read open)))");
        }
        for k in 0..5 {
            let target = (n * 13 + k * 7) % attributes;
            let _ = writeln!(text, "(allow a{} a{target} (file (write)))", (n + k) % attributes);
        }
    }
    text
}

//! CIL text that remembers which place of the profile each line comes from.

use crate::names::Names;
use crate::source::TextSpan;
use std::fmt::{self, Write as _};

/// A policy that is being written.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
    /// Where line n + 1 comes from.
    origins: Vec<Option<TextSpan>>,
    /// The names of types so far.
    pub(crate) names: Names,
    /// The types of objects so far, each after a blank.
    objects: String,
}

/// Permissions that many rules grant together: their name in the policy, and those of each class
/// (in one string, with blanks).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermissionSet {
    pub(crate) name: &'static str,
    pub(crate) classes: &'static [(&'static str, &'static str)],
}

impl Writer {
    /// Adds one line that no place of the profile stands for.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        self.rule(None, line);
    }

    /// Adds one line that `place` asked for.
    pub(crate) fn rule(&mut self, place: Option<TextSpan>, line: fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
        self.origins.push(place);
    }

    /// A heading, to find one's way in the policy.
    pub(crate) fn heading(&mut self, title: &str) {
        self.line(format_args!(""));
        self.line(format_args!("; {title}"));
    }

    /// Declares the type of an object.
    pub(crate) fn object_type(&mut self, name: &str) {
        self.line(format_args!("(type {name})"));
        self.objects.push(' ');
        self.objects.push_str(name);
    }

    /// Declares the type of a process.
    pub(crate) fn domain_type(&mut self, name: &str) {
        self.line(format_args!("(type {name})"));
        self.line(format_args!("(roletype dewar_r {name})"));
    }

    /// Allows `source` the permissions of each class (named in one string, with blanks) on
    /// `target`.
    pub(crate) fn allow(
        &mut self,
        place: Option<TextSpan>,
        source: &str,
        target: &str,
        classes: &[(&str, &str)],
    ) {
        for (class, permissions) in classes {
            self.rule(place, format_args!("(allow {source} {target} ({class} ({permissions})))"));
        }
    }

    /// Defines `set` for [`Writer::allow_set`].
    pub(crate) fn define(&mut self, set: PermissionSet) {
        let PermissionSet { name, classes } = set;
        self.line(format_args!("(classpermission {name})"));
        for (class, permissions) in classes {
            self.line(format_args!("(classpermissionset {name} ({class} ({permissions})))"));
        }
    }

    /// Allows `source` what is in `set` on `target`.
    pub(crate) fn allow_set(
        &mut self,
        place: Option<TextSpan>,
        source: &str,
        target: &str,
        set: PermissionSet,
    ) {
        self.rule(place, format_args!("(allow {source} {target} {})", set.name));
    }

    /// The text, and where its lines come from.
    pub(crate) fn finish(mut self) -> (String, Vec<Option<TextSpan>>) {
        let objects = std::mem::take(&mut self.objects);
        self.heading("the role of all objects");
        // Types end in `_t`, so it is no type's name.
        self.line(format_args!("(typeattribute objects)"));
        self.line(format_args!("(typeattributeset objects ({}))", objects.trim_start()));
        self.line(format_args!("(roletype object_r objects)"));
        (self.text, self.origins)
    }
}

/// The security context of an object, as an expression.
pub(crate) fn object(type_name: &str) -> String {
    context("object_r", type_name)
}

/// The security context of a process, as an expression.
pub(crate) fn process(type_name: &str) -> String {
    context("dewar_r", type_name)
}

fn context(role: &str, type_name: &str) -> String {
    format!("(dewar_u {role} {type_name} ((s0) (s0)))")
}

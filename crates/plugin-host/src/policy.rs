//! A policy to start from: one host, one plugin, nothing outside.

use flask::{Class, InitialSid};
use std::fmt::Write as _;

/// The context of the host in [`base_policy`].
pub const HOST_CONTEXT: &str = "dewar_u:dewar_r:host_t";
/// The context of plugins in [`base_policy`].
pub const PLUGIN_CONTEXT: &str = "dewar_u:dewar_r:plugin_t";

const RULES: &str = "\
(handleunknown deny)
(mls false)
(sensitivity s0)
(sensitivityorder (s0))
(user dewar_u)
(role dewar_r)
(role object_r)
(userrole dewar_u dewar_r)
(userrole dewar_u object_r)
(userlevel dewar_u (s0))
(userrange dewar_u ((s0) (s0)))
(type object_t)
(type host_t)
(type plugin_t)
(roletype object_r object_t)
(roletype dewar_r host_t)
(roletype dewar_r plugin_t)
(allow host_t plugin_t (plugin (load call)))
(allow plugin_t self (plugin (read_request write_reply log get_state set_state)))
";

/// A complete policy in CIL, to which rules can be added: a host of type `host_t` may load plugins
/// of type `plugin_t` as isolated code and call them; they may see requests, reply, log and keep
/// state. Everything outside has type `object_t`, and nobody may use it.
#[must_use]
pub fn base_policy() -> String {
    let mut policy = String::new();
    let names = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>().join(" ");
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a `String` does not fail.
        let _ = policy.write_fmt(format_args!("{text}\n"));
    };
    for class in Class::all() {
        line(format_args!("(class {class} ({}))", class.permissions().join(" ")));
    }
    line(format_args!("(classorder ({}))", names(&mut Class::all().map(Class::name))));
    for sid in InitialSid::all().map(InitialSid::name) {
        line(format_args!("(sid {sid})"));
        line(format_args!("(sidcontext {sid} (dewar_u object_r object_t ((s0) (s0))))"));
    }
    line(format_args!("(sidorder ({}))", names(&mut InitialSid::all().map(InitialSid::name))));
    policy + RULES
}

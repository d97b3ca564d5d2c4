//! What every policy starts with: classes, users, roles, initial SIDs.

use super::writer::{Writer, object, process};
use flask::{Class, InitialSid};

/// Types of objects that exist before any rule of the profile.
const OBJECTS: [&str; 6] =
    ["security_t", "unlabeled_t", "default_t", "port_t", "node_t", "any_socket_t"];

/// Writes declarations. `main_t` is declared with the domains.
pub(crate) fn write(out: &mut Writer) {
    out.line(format_args!("(handleunknown deny)"));
    out.line(format_args!("(mls false)"));
    out.heading("classes and permissions, from policy/access_vectors");
    for class in Class::all() {
        out.line(format_args!("(class {class} ({}))", class.permissions().join(" ")));
    }
    let names: Vec<&str> = Class::all().map(Class::name).collect();
    out.line(format_args!("(classorder ({}))", names.join(" ")));
    write_users(out);
    out.heading("labels that exist before any rule");
    reserve(out, "kernel");
    out.domain_type("kernel_t");
    for name in OBJECTS {
        reserve(out, name.trim_end_matches("_t"));
        out.object_type(name);
    }
    write_initial_sids(out);
}

fn write_users(out: &mut Writer) {
    out.heading("one user; processes have the role dewar_r, objects object_r; no levels");
    for line in [
        "(sensitivity s0)",
        "(sensitivityorder (s0))",
        "(user dewar_u)",
        "(role dewar_r)",
        "(role object_r)",
        "(userrole dewar_u dewar_r)",
        "(userrole dewar_u object_r)",
        "(userlevel dewar_u (s0))",
        "(userrange dewar_u ((s0) (s0)))",
    ] {
        out.line(format_args!("{line}"));
    }
}

/// Keeps a name from being given to a type of the profile.
fn reserve(out: &mut Writer, stem: &str) {
    out.names.fresh(stem, "t");
}

fn write_initial_sids(out: &mut Writer) {
    for sid in InitialSid::all() {
        let context = match sid {
            InitialSid::Kernel => process("kernel_t"),
            InitialSid::Init => process("main_t"),
            InitialSid::Security => object("security_t"),
            InitialSid::Unlabeled => object("unlabeled_t"),
            InitialSid::File => object("default_t"),
            InitialSid::Port => object("port_t"),
            InitialSid::Node => object("node_t"),
            InitialSid::AnySocket => object("any_socket_t"),
        };
        out.line(format_args!("(sid {})", sid.name()));
        out.line(format_args!("(sidcontext {} {context})", sid.name()));
    }
    let names: Vec<&str> = InitialSid::all().map(InitialSid::name).collect();
    out.line(format_args!("(sidorder ({}))", names.join(" ")));
}

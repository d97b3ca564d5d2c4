//! Names in records: what people call an object, and who asks for the address of a host.

use monitor::Record;
use std::path::Path;

/// Whether a person who has written `named` means `object`, as a record names it.
pub(crate) fn is_name_of(named: &Path, object: &str) -> bool {
    named.to_str().is_some_and(|named| profile::plain(named) == profile::plain(object))
}

/// Whether a program asked for the address of a name, as far as its denial tells.
pub(crate) fn asks_for_names(record: &Record) -> bool {
    let is_port = || record.object.trim_end_matches("/udp").ends_with(":53");
    record.tclass == "endpoint" && is_port() || record.tclass == "udp_socket"
}

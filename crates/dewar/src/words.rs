//! What people read in the place of permissions: this is the one table of it. Documents, rules and
//! `subject` and `object` of `dewar explain` have the names.

use monitor::Record;

/// Permissions by name, and what somebody who lacks one may not do to an object.
const WORDS: [(&str, &str); 24] = [
    ("add_name", "make"),
    ("append", "append to"),
    ("connectto", "connect to"),
    ("entrypoint", "execute"),
    ("execute_no_trans", "execute"),
    ("getattr", "look at"),
    ("loopback_bind", "bind to"),
    ("name_bind", "bind to"),
    ("name_connect", "connect to"),
    ("ptrace", "trace"),
    ("remove_name", "remove"),
    ("reparent", "move"),
    ("rmdir", "remove"),
    ("search", "look into"),
    ("sendto", "send to"),
    ("setattr", "change the attributes of"),
    ("setid", "set the set-user-ID bit of"),
    ("setopt", "set options of"),
    ("setpgid", "move to another group"),
    ("setrlimit", "set limits of"),
    ("setsched", "change the scheduling of"),
    ("sigkill", "kill"),
    ("signull", "send signals to"),
    ("unlink", "remove"),
];

/// Permissions in words, each once: `read or open`. One that is not in the table is its own word.
pub(crate) fn words(permissions: &[String]) -> String {
    let mut said: Vec<&str> = Vec::new();
    for name in permissions {
        let known = WORDS.iter().find(|(known, _)| known == name);
        let word = known.map_or(name.as_str(), |(_, word)| word);
        if !said.contains(&word) {
            said.push(word);
        }
    }
    match said.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => said.concat(),
    }
}

/// What a record denies, in words. What is refused whatever policy says may be no permission but a
/// call that people have no word for: `call clock_settime:`.
pub(crate) fn denied(record: &Record) -> String {
    let is_permission =
        |name: &str| flask::Class::all().any(|class| class.permission(name).is_some());
    match record.missing.as_slice() {
        _ if record.refused_by.is_empty() => words(&record.missing),
        [call] if *call == record.call && !is_permission(call) => format!("call {call}:"),
        refused => refused.join(" "),
    }
}

/// The exact names: `file { read open }`.
pub(crate) fn exact(class: &str, permissions: &[String]) -> String {
    format!("{class} {{ {} }}", permissions.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::Class;

    #[test]
    fn permissions_are_told_in_words_each_once() {
        for (names, want) in [
            (&["read", "open"][..], "read or open"),
            (&["write", "append", "create"], "write, append to or create"),
            (&["execute", "execute_no_trans"], "execute"),
            (&["add_name"], "make"),
            (&["mq_open"], "mq_open"),
            (&[], ""),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(words(&names), want);
        }
    }

    #[test]
    fn every_word_stands_for_a_permission_that_there_is() {
        let classes = ["file", "dir", "process", "tcp_socket", "unix_stream_socket", "endpoint"];
        let classes = classes.map(|name| Class::by_name(name).unwrap());
        for (name, _) in WORDS {
            let is_known = classes.iter().any(|class| class.permission(name).is_some());
            assert!(is_known, "{name}");
        }
    }
}

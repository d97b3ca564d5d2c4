//! What stays denied while a profile is learned, and is never in it.

use super::learn::{Home, entries};
use std::fs;

#[test]
fn what_was_denied_while_a_profile_is_learned_is_never_in_it() {
    let home = Home::new();
    for name in ["project", ".foo"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    // What a guard keeps is denied; beside it, a directory as a whole would be granted.
    let script = "cd; for name in .envrc CLAUDE.md project/.envrc .foo/.envrc; do \
                  echo x >> $name; done; mkdir .vscode; echo x > .foo/cache; chmod 700 project; \
                  for name in a b c d; do echo x > project/$name; done; \
                  echo x >> /etc/ld.so.preload; head -c 1 /dev/vda /dev/sda /dev/loop-control; true";
    let said = home.say(&["learn", "--", "bash", "-c", script]);
    let learned = home.profile();
    let granted = entries(&learned);
    for name in ["/.envrc", "CLAUDE.md", ".vscode", "/etc", "/dev"] {
        assert!(granted.iter().all(|(_, value)| !value.contains(name)), "{name}: {learned}");
    }
    for name in ["${home}/.foo/cache", "${home}/project/a"] {
        assert!(granted.iter().any(|(_, value)| value == name), "{name}: {learned}");
    }
    assert!(said.err.contains("stays denied: bash may not"), "{}", said.err);
    home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "bash", "-c", script]);
    for name in [".envrc", "CLAUDE.md", ".vscode", "project/.envrc", ".foo/.envrc"] {
        assert!(!home.path().join(name).exists(), "{name}: {learned}");
    }
}

//! What programs inside write to `DEWAR_DENIALS`, and editors to the socket of questions: no line
//! makes reading panic, and what is proposed grants what it says, and nothing that is secret.
#![no_main]

use learn::{Edit, Judge, Line, Scope, Secrets};
use libfuzzer_sys::fuzz_target;
use profile::{Source, Variables};
use std::{path::Path, sync::LazyLock};

/// Small, so that it is compiled often.
const BASE: &str = "files.read = ['/usr']\nfiles.hide = ['${home}/.ssh', '/run/docker.sock']\n";
const KEPT: [&str; 3] = ["/home/me/.ssh/id_ed25519", "/home/me/work/.env", "/run/docker.sock"];

static BEFORE: LazyLock<(Judge, Scope)> = LazyLock::new(|| {
    let compiled = profile::load(&source(BASE), &variables(), &mut profile::unresolved);
    let compiled = compiled.expect("the base is a profile");
    let Variables { workspace, home, tmp, .. } = variables();
    let scope = Scope { workspace, home, tmp, secrets: Secrets::of(&compiled) };
    (Judge::new(&compiled).expect("the base is a policy"), scope)
});

fn variables() -> Variables {
    Variables {
        workspace: "/home/me/work".into(),
        home: "/home/me".into(),
        tmp: "/tmp".into(),
        user: "me".into(),
        ..Variables::default()
    }
}

fn source(text: &str) -> Source {
    Source::Text { name: "fuzz.toml".into(), text: text.into(), directory: "/nonexistent".into() }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(answer) = learn::answer(bytes) {
        assert!(learn::request(bytes).is_none(), "one line is both: {answer:?}");
    }
    if let Some(learn::Request::Propose(text)) = learn::request(bytes) {
        propose(&text);
    }
    // Without the JSON around it, which takes long to guess.
    if let Ok(text) = std::str::from_utf8(bytes) {
        propose(text);
    }
});

fn propose(text: &str) {
    let Ok(lines) = learn::fragment(text, None) else { return };
    let shown: usize = lines.iter().map(|line| line.value.len()).sum();
    assert!((1..=16).contains(&lines.len()) && shown <= 1024, "longer than a person reads");
    for line in &lines {
        let alone = line.alone();
        assert!(!alone.contains(char::is_control), "{alone:?}");
        let again = learn::fragment(&alone, None).expect("what is shown can be proposed");
        assert_eq!(again.as_slice(), std::slice::from_ref(line), "it is shown as something else");
    }
    grants_no_secret(&lines);
}

fn grants_no_secret(lines: &[Line]) {
    let (before, scope) = &*BEFORE;
    if learn::covers_secret(lines, scope) {
        return;
    }
    let mut edit = Edit::of(BASE).expect("the base is TOML");
    for line in lines {
        edit.add(line).expect("it can be added");
    }
    let resolved = [192, 0, 2, 1].into();
    let compiled = profile::load(&source(&edit.text()), &variables(), &mut |names| {
        names.iter().map(|_| Ok(vec![resolved])).collect()
    });
    let Ok(compiled) = compiled else { return };
    let after = Judge::new(&compiled).expect("a profile is a policy");
    for kept in KEPT {
        let (old, new) =
            (before.rights(Path::new(kept), None), after.rights(Path::new(kept), None));
        assert_eq!(old, new, "{kept}: {lines:?}");
    }
    assert!(!after.reaches("/run/docker.sock", None), "{lines:?}");
    assert!(!after.reaches("169.254.169.254:80", None), "{lines:?}");
}

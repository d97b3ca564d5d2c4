//! Typical mistakes: each is answered with the place, the reason and a remedy, by the exit status
//! that the help names, and leaves nothing behind. The table is `mistakes.txt`.

use super::{Said, dewar_in};
use std::{collections::BTreeSet, fs, path::Path};

/// Files that the mistakes are made with.
const FILES: [(&str, &str); 9] = [
    ("typo.toml", "files.raed = ['/srv']\n"),
    ("relative.toml", "files.read = ['src']\n"),
    ("broken.toml", "files = [\n"),
    ("port.toml", "network.connect = ['x.org']\n"),
    ("size.toml", "limits.memory = 'much'\n"),
    ("type.toml", "mode = 1\n"),
    ("circle.toml", "extends = 'circle.toml'\n"),
    ("bad.cil", "(allow nosuch_t other_t (file (read)))\n"),
    ("bad.ec", "fn main( {\n"),
];

/// One mistake: the words, the status, and what is said.
struct Mistake<'a> {
    status: i32,
    words: Vec<&'a str>,
    parts: Vec<&'a str>,
}

fn table(text: &str) -> Vec<Mistake<'_>> {
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line| {
        let [status, words, parts] =
            <[&str; 3]>::try_from(str::split(line, " | ").collect::<Vec<_>>())
                .unwrap_or_else(|_| panic!("three columns: {line}"));
        let parts = parts.split(" … ").map(str::trim).collect();
        Mistake {
            status: status.trim().parse().unwrap(),
            words: words.split_whitespace().collect(),
            parts,
        }
    };
    rows.map(row).collect()
}

fn names(directory: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
    let own = ["state", "cache", "runtime"];
    names.map(|it| it.into_string().unwrap()).filter(|it| !own.contains(&it.as_str())).collect()
}

#[test]
fn each_typical_mistake_names_place_reason_and_remedy_and_leaves_nothing_behind() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/mistakes.txt");
    let text = fs::read_to_string(file).unwrap();
    let mistakes = table(&text);
    assert!(mistakes.len() >= 81, "{} mistakes", mistakes.len());
    let mut faults = Vec::new();
    for mistake in &mistakes {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for (name, text) in FILES {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let before = names(directory.path());
        let Said { status, out, err } = dewar_in(directory.path(), &mistake.words);
        let what = format!("`dewar {}`", mistake.words.join(" "));
        if status != mistake.status {
            faults.push(format!("{what} ends with {status}, not {}: {err}", mistake.status));
        }
        for part in mistake.parts.iter().filter(|part| !err.contains(**part)) {
            faults.push(format!("{what} does not say `{part}`: {err}"));
        }
        if !err.starts_with("dewar: ") {
            faults.push(format!("{what} is not said by dewar: {err}"));
        }
        if !out.is_empty() || err.contains('\x1b') {
            faults.push(format!("{what} prints {out:?}"));
        }
        if names(directory.path()) != before {
            faults.push(format!("{what} leaves {:?}", names(directory.path())));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

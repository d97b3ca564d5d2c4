//! Writes the tables of classes, permissions and initial SIDs from `policy/`, so that no name is
//! typed twice.

use std::{collections::HashMap, env, fmt::Write as _, fs, path::PathBuf};

fn main() {
    let policy = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../policy");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    for name in ["access_vectors", "initial_sids"] {
        println!("cargo:rerun-if-changed={}", policy.join(name).display());
    }
    let classes = parse_classes(&fs::read_to_string(policy.join("access_vectors")).unwrap());
    let sids = parse_sids(&fs::read_to_string(policy.join("initial_sids")).unwrap());
    fs::write(out.join("classes.rs"), write_classes(&classes)).unwrap();
    fs::write(out.join("initial_sids.rs"), write_sids(&sids)).unwrap();
}

/// A name and the comment behind it.
type Named = (String, String);

struct ClassDef {
    name: Named,
    permissions: Vec<Named>,
}

/// Words of the file with the comment of their line; `{` and `}` are words.
fn words(text: &str) -> Vec<Named> {
    let mut words = Vec::new();
    for line in text.lines() {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let code = code.replace('{', " { ").replace('}', " } ");
        words.extend(code.split_whitespace().map(|w| (w.to_owned(), comment.trim().to_owned())));
    }
    words
}

fn parse_classes(text: &str) -> Vec<ClassDef> {
    let mut commons: HashMap<String, Vec<Named>> = HashMap::new();
    let mut classes: Vec<ClassDef> = Vec::new();
    let mut words = words(text).into_iter().peekable();
    while let Some((keyword, comment)) = words.next() {
        let name = words.next().expect("a name follows `common` and `class`").0;
        let mut permissions = Vec::new();
        if words.next_if(|w| w.0 == "inherits").is_some() {
            let common = words.next().expect("a name follows `inherits`").0;
            permissions.clone_from(commons.get(&common).expect("the common is defined above"));
        }
        if words.next_if(|w| w.0 == "{").is_some() {
            permissions.extend(words.by_ref().take_while(|w| w.0 != "}"));
        }
        assert!(permissions.len() <= 32, "class {name} has more than 32 permissions");
        match keyword.as_str() {
            "common" => drop(commons.insert(name, permissions)),
            "class" => classes.push(ClassDef { name: (name, comment), permissions }),
            other => panic!("access_vectors: expected `common` or `class`, found `{other}`"),
        }
    }
    classes
}

fn parse_sids(text: &str) -> Vec<Named> {
    let words = words(text);
    words
        .chunks(2)
        .map(|pair| {
            assert_eq!(pair[0].0, "sid", "initial_sids: every line reads `sid NAME`");
            pair[1].clone()
        })
        .collect()
}

fn camel(name: &str) -> String {
    name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

fn write_classes(classes: &[ClassDef]) -> String {
    let mut out = String::from("#[allow(non_upper_case_globals)]\nimpl Class {\n");
    for (number, class) in classes.iter().enumerate() {
        let (name, comment) = &class.name;
        let number = u8::try_from(number + 1).expect("fewer than 256 classes");
        writeln!(out, "/// `{name}`. {comment}\npub const {}: Self = Self({number});", camel(name))
            .unwrap();
    }
    out += "}\n\nconst CLASSES: &[(&str, &[&str])] = &[\n";
    for class in classes {
        let names: Vec<&str> = class.permissions.iter().map(|p| p.0.as_str()).collect();
        writeln!(out, "({:?}, &{names:?}),", class.name.0).unwrap();
    }
    out += "];\n\n/// The permissions of every class, as access vectors with one bit set.\npub mod perm {\n";
    for class in classes {
        let name = &class.name.0;
        writeln!(out, "/// Permissions of `{name}`.\npub mod {name} {{\nuse crate::AccessVector;")
            .unwrap();
        for (bit, (permission, comment)) in class.permissions.iter().enumerate() {
            let constant = permission.to_uppercase();
            writeln!(out, "/// `{permission}`: {comment}\npub const {constant}: AccessVector = AccessVector(1 << {bit});")
                .unwrap();
        }
        out += "}\n";
    }
    out + "}\n"
}

fn write_sids(sids: &[Named]) -> String {
    let mut out = String::from(
        "/// A label that exists before any policy is loaded. See `policy/initial_sids`.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[repr(u32)]\npub enum InitialSid {\n",
    );
    for (number, (name, comment)) in sids.iter().enumerate() {
        writeln!(out, "/// {comment}.\n{} = {},", camel(name), number + 1).unwrap();
    }
    out += "}\n\npub(crate) const INITIAL_SIDS: &[(InitialSid, &str)] = &[\n";
    for (name, _) in sids {
        writeln!(out, "(InitialSid::{}, {name:?}),", camel(name)).unwrap();
    }
    out + "];\n"
}

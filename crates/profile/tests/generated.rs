//! Properties that hold for every profile.

mod common;

use common::{compile, letters, rights, secilc};
use proptest::prelude::*;

/// A pattern over few names, so that patterns meet.
fn pattern() -> impl Strategy<Value = String> {
    let component = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", ".x"]),
        2 => prop::sample::select(vec!["*", "**", "?", "a*", "[ab]", "{a,b}"]),
    ];
    prop::collection::vec(component, 1..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn literal() -> impl Strategy<Value = String> {
    let component = prop::sample::select(vec!["a", "b", "c", ".x"]);
    prop::collection::vec(component, 1..5).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn endpoint() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "*",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.3",
        "[::1]",
        "[fd00::]/8",
        "example.org",
        "v6.example.org",
        "nowhere.example",
        "localhost",
        "${nameserver}",
    ]);
    let port = prop::sample::select(vec![
        "*", "0", "53/udp", "80", "1-1023", "80-8080", "443/tcp", "65535",
    ]);
    (host, port).prop_map(|(host, port)| format!("{host}:{port}"))
}

fn list(name: &str, items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("'{item}'")).collect();
    format!("{name} = [{}]\n", quoted.join(", "))
}

fn lists(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::collection::vec(pattern(), 0..4), names.len()).prop_map(|lists| {
        let lists = names.iter().zip(&lists);
        lists.map(|(name, items)| list(&format!("files.{name}"), items)).collect()
    })
}

fn files() -> impl Strategy<Value = String> {
    lists(&["read", "write", "exec", "readonly", "deny", "hide"])
}

prop_compose! {
    fn profile()(
        main in files(), git in files(), inherit: bool,
        connect in prop::collection::vec(endpoint(), 0..5),
        bind in prop::collection::vec(endpoint(), 0..3),
        programs in prop::collection::vec(pattern(), 1..3),
    ) -> String {
        let (connect, bind) = (list("network.connect", &connect), list("network.bind", &bind));
        let exec = list("exec", &programs);
        format!("{main}{connect}{bind}[domains.git]\n{exec}inherit = {inherit}\n{git}{connect}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_reference_compiler_accepts_every_profile_that_compiles(text in profile()) {
        let compiled = compile(&text).unwrap();
        prop_assert_eq!(secilc(&compiled.cil), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A path stays hidden unless, for every `hide` that matches it, a grant inside of that `hide`
    /// opens it again.
    #[test]
    fn what_is_hidden_stays_hidden_whatever_is_granted_around_it(
        granted in prop::collection::vec(literal(), 0..4),
        hidden in prop::collection::vec(pattern(), 1..3),
        path in literal(),
    ) {
        let text = format!("[files]\n{}{}", list("write", &granted), list("hide", &hidden));
        let compiled = compile(&text).unwrap();
        let hides: Vec<String> = hidden.iter().map(|h| format!("[files]\n{}", list("hide", std::slice::from_ref(h)))).collect();
        let takes = |text: &String, path: &str| {
            letters(rights(&compile(text).unwrap(), "main", path)) == "hidden"
        };
        let opens = |grant: &&String| path == **grant || path.starts_with(&format!("{grant}/"));
        let stays = hides.iter().filter(|hide| takes(hide, &path)).any(|hide| {
            granted.iter().filter(opens).all(|grant| !takes(hide, grant) || is_equal(hide, grant))
        });
        if stays {
            prop_assert_eq!(letters(rights(&compiled, "main", &path)), "hidden");
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = compile(&text);
    }

    #[test]
    fn no_string_in_a_list_makes_it_panic(text in "[a/*?{}\\[\\],!:$@.0-9\\\\\\-~ée]*", key in 0usize..3) {
        let key = ["files.read", "network.connect", "env.set.A"][key];
        let text = format!("{key} = {}", if key == "env.set.A" { format!("'''{text}'''") } else { format!("['''{text}''']") });
        let _ = compile(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What another domain, its programs and its sockets name gives a domain nothing that its own
    /// lists keep from it, though files have one label for all.
    #[test]
    fn what_is_kept_from_a_domain_stays_so_beside_another(
        // Grants by globs would be refused more than is said where parts of them have labels.
        granted in prop::collection::vec(literal(), 0..8), readonly in lists(&["readonly"]),
        denies in lists(&["deny", "hide"]), git in files(), inherit: bool,
        programs in prop::collection::vec(pattern(), 1..3),
        sockets in prop::collection::vec(pattern(), 0..3),
        paths in prop::collection::vec(literal(), 1..40),
    ) {
        let (read, write) = granted.split_at(granted.len() / 2);
        let grants = list("files.exec", read) + &list("files.write", write);
        let exec = list("exec", &programs);
        let sockets: Vec<String> = sockets.iter().map(|it| format!("unix:{it}")).collect();
        let connect = list("network.connect", &sockets);
        let main = format!("{grants}{readonly}{denies}");
        let writable = format!("{grants}{denies}");
        let both = format!("{main}[domains.git]\n{exec}inherit = {inherit}\n{git}{connect}");
        let text = grants.clone();
        let compiled = [grants, writable, main, both].map(|text| compile(&text).unwrap());
        // What a grant names itself is opened by it, if its label is not that of a part of a glob.
        let names = |path: &String| text.contains(&format!("'{path}'"));
        for path in paths.iter().filter(|path| !names(path)) {
            let [granted, writable, alone, both] =
                compiled.each_ref().map(|it| letters(rights(it, "main", path)));
            if alone == "hidden" {
                prop_assert_eq!(&both, "hidden", "{}", path);
            }
            // What may only be read may be executed all the same.
            let kept = |letter: char| {
                let is_left = alone.contains(letter)
                    || letter != 'w' && writable.contains(letter);
                granted.contains(letter) && !is_left
            };
            let gets = both != "hidden" && "rwx".chars().any(|it| kept(it) && both.contains(it));
            prop_assert!(!gets, "{}: {} instead of {}", path, both, alone);
        }
    }
}

/// Whether `grant` is the very path that `hide` names: then the later word, hiding, holds.
fn is_equal(hide: &str, grant: &str) -> bool {
    hide.contains(&format!("'{grant}'"))
}

/// Both have literal text of the same length: the path would label what the glob hides.
#[test]
fn what_a_glob_hides_stays_hidden_below_a_path_that_another_domain_denies() {
    for inherit in [true, false] {
        let text = format!(
            "files.hide = ['/a*/*']\n[domains.git]\nexec = ['/a']\ninherit = {inherit}\nfiles.deny = ['/a']\n"
        );
        let compiled = compile(&text).unwrap();
        assert_eq!(letters(rights(&compiled, "main", "/a/a")), "hidden", "{inherit}");
    }
}

/// A grant of a glob is about the very names, and what hides it about all below them, too.
#[test]
fn what_another_domain_hides_by_the_same_glob_stays_granted() {
    let text = "files.write = ['/h/x.*']\n[domains.git]\nexec = ['/g']\nfiles.hide = ['/h/x.*']\n";
    let compiled = compile(text).unwrap();
    for (domain, path, want) in [
        ("main", "/h/x.tmp", "rw"),
        ("main", "/h/x.tmp/y", ""),
        ("git", "/h/x.tmp", "hidden"),
        ("git", "/h/x.tmp/y", "hidden"),
    ] {
        assert_eq!(letters(rights(&compiled, domain, path)), want, "{domain} {path}");
    }
}

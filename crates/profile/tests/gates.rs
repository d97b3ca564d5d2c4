//! Programs that enter a domain, and that whoever enters it by them may exchange.

mod common;

use common::{compile, compile_source};
use profile::{Compiled, Source, shipped};

fn told(compiled: &Compiled) -> Vec<String> {
    let gates = compiled.open_gates.iter();
    gates
        .map(|it| format!("{}>{} {} {}", it.from, it.domain, it.program.text, it.grant.text))
        .collect()
}

#[test]
fn a_gate_that_whoever_enters_by_it_may_write_is_named_with_what_grants_that() {
    let net = "network.connect = ['example.org:443']\n";
    let gate = |text: &str, more: &str| {
        told(
            &compile(&format!("{text}\n[domains.git]\n{net}exec = ['/srv/bin/git']\n{more}"))
                .unwrap(),
        )
    };
    let open = vec!["main>git '/srv/bin/git' '/srv/bin'".to_owned()];
    for (text, more, want) in [
        ("files.write = ['/srv/bin']", "", open.clone()),
        (
            "files.write = ['/srv/bin/git']",
            "",
            vec!["main>git '/srv/bin/git' '/srv/bin/git'".into()],
        ),
        ("files.write = ['/srv/bin', '/srv']\nfiles.read = ['/srv/bin/git']", "", open.clone()),
        ("files.write = ['/srv/*/**']", "", vec!["main>git '/srv/bin/git' '/srv/*/**'".into()]),
        ("files.write = ['/srv/bin']", "inherit = false\n", open.clone()),
        ("files.write = ['/srv/bin']", "from = ['main']\n", open.clone()),
        // Kept from main; nobody's; not entered from main; not a program.
        ("files.write = ['/srv']\nfiles.readonly = ['/srv/bin/git']", "", vec![]),
        ("files.write = ['/srv']\nfiles.deny = ['/srv/bin']", "", vec![]),
        ("files.read = ['/srv']\nfiles.exec = ['/srv']", "", vec![]),
        (
            "files.write = ['/srv/bin']",
            "from = ['other']\n[domains.other]\nexec = ['/usr']\ninherit = false\n",
            vec![],
        ),
        ("files.write = ['/srv/lib']", "", vec![]),
        // The domain's own right to its program is no way into it.
        ("files.read = ['/srv']", "files.write = ['/srv/bin']\n", vec![]),
        // From another domain.
        (
            "files.read = ['/srv']",
            "[domains.make]\nexec = ['/usr/bin/make']\nfiles.write = ['/srv/bin']\n",
            vec!["make>git '/srv/bin/git' '/srv/bin'".into()],
        ),
    ] {
        assert_eq!(gate(text, more), want, "{text} {more}");
    }
}

#[test]
fn what_lies_in_a_pattern_of_programs_is_a_gate_and_the_pattern_is_named_once() {
    let text = "files.write = ['/srv/bin/a', '/srv/bin/b']\n[domains.git]\nexec = ['/srv/bin', '/opt/*/git']\n\
                network.connect = ['*:443']\n";
    assert_eq!(told(&compile(text).unwrap()), ["main>git '/srv/bin' '/srv/bin/a'"]);
}

#[test]
fn nothing_is_said_where_nothing_is_gained() {
    let gate = |main: &str, domain: &str| {
        let head = "files.write = ['/srv']\nfiles.exec = ['/srv', '/usr']\n";
        let text = format!("{head}{main}[domains.git]\nexec = ['/srv/git']\n{domain}");
        !told(&compile(&text).unwrap()).is_empty()
    };
    for (main, domain, gains) in [
        ("", "", false),
        ("", "files.hide = ['/srv/x']\nfiles.deny = ['/usr/x']\n", false),
        ("", "files.read = ['/etc']\n", true),
        ("files.read = ['/etc']\n", "files.read = ['/etc/x']\n", false),
        ("files.read = ['/etc']\n", "files.list = ['/etc']\n", false),
        ("files.read = ['/etc']\n", "files.write = ['/etc/x']\n", true),
        ("files.read = ['/etc']\n", "files.exec = ['/etc/x']\n", true),
        ("files.hide = ['/etc']\n", "files.list = ['/etc']\n", true),
        ("files.hide = ['/etc']\n", "inherit = false\n", true),
        ("network.connect = ['10.0.0.0/8:1-99']\n", "network.connect = ['10.1.0.0/16:7']\n", false),
        ("network.connect = ['10.1.0.0/16:7']\n", "network.connect = ['10.0.0.0/8:7']\n", true),
        (
            "network.connect = ['10.0.0.0/8:1-99']\n",
            "network.connect = ['10.1.0.0/16:7/udp']\n",
            true,
        ),
        (
            "network.connect = ['10.0.0.0/8:1-99']\n",
            "network.connect = ['10.1.0.0/16:100']\n",
            true,
        ),
        ("network.connect = ['10.0.0.0/8:1-99']\n", "network.bind = ['10.1.0.0/16:7']\n", true),
        ("network.connect = ['*:*']\n", "network.connect = ['example.org:7']\n", false),
        ("network.connect = ['example.org:*']\n", "network.connect = ['example.org:7']\n", false),
        ("network.connect = ['192.0.2.1:*']\n", "network.connect = ['example.org:7']\n", true),
        ("network.connect = ['unix:/run']\n", "network.connect = ['unix:/run/x']\n", false),
        ("network.connect = ['unix:/run/x']\n", "network.connect = ['unix:/run']\n", true),
        ("network.connect = ['unix:/run']\n", "network.connect = ['unixgram:/run']\n", true),
        ("network.connect = ['unix:@a*']\n", "network.connect = ['unix:@ab']\n", false),
        ("network.connect = ['unix:@a*']\n", "network.connect = ['unix:@*']\n", true),
        ("network.netlink = true\n", "", false),
        ("", "network.netlink = true\n", true),
        ("capabilities = ['chown']\n", "capabilities = ['chown']\n", false),
        // Whom it may enter.
        ("", "[domains.cc]\nexec = ['/usr/bin/cc']\nfrom = ['git']\n", true),
        ("", "[domains.cc]\nexec = ['/usr/bin/cc']\n", false),
    ] {
        assert_eq!(gate(main, domain), gains, "{main} {domain}");
    }
}

#[test]
fn no_shipped_profile_has_an_open_gate() {
    let of = |name: &str| compile_source(&Source::from_argument(name)).unwrap();
    let names: Vec<&str> = shipped().iter().map(|(name, _)| *name).collect();
    for name in names {
        assert_eq!(told(&of(name)), Vec::<String>::new(), "{name}");
    }
    // Toolchains of Go lie in a cache that builds fill, but for them.
    assert_eq!(told(&of("go+build")), Vec::<String>::new());
}

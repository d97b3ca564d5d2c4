//! Ready profiles: who reaches what, what is out of everybody's reach, and how profiles combine.

mod common;

use common::{compile, compile_source, letters, rights, secilc};
use profile::{Compiled, Source, shipped};

fn shipped_profile(name: &str) -> Compiled {
    compile_source(&Source::Shipped(name.into())).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

/// Where keys and tokens lie.
const SECRETS: [&str; 14] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/x.key",
    ".config/gh/hosts.yml",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".bash_history",
    ".mozilla/firefox/x/cookies.sqlite",
    ".config/google-chrome/Default/Cookies",
];

#[test]
fn no_shipped_profile_but_open_lets_a_domain_read_or_write_a_secret() {
    for (name, _) in shipped().iter().filter(|(name, _)| *name != "open") {
        let profile = shipped_profile(name);
        for domain in &profile.domains {
            for secret in SECRETS {
                let path = format!("/home/me/{secret}");
                let rights = letters(rights(&profile, &domain.name, &path));
                assert!(
                    ["", "hidden"].contains(&rights.as_str()),
                    "{name} {}: {secret} {rights}",
                    domain.name
                );
            }
        }
    }
}

#[test]
fn only_the_package_manager_reaches_its_registries() {
    for (name, reaches, not) in [
        ("npm", "npm", "scripts"),
        ("pnpm", "npm", "scripts"),
        ("cargo", "cargo", "build"),
        ("go", "go", "tests"),
        ("uv", "uv", "build"),
        ("git", "git", "helpers"),
        ("claude", "main", "tools"),
        ("codex", "main", "tools"),
        ("gemini", "main", "tools"),
    ] {
        let profile = shipped_profile(name);
        for domain in &profile.domains {
            assert_eq!(
                !domain.connect.is_empty(),
                domain.name == reaches,
                "{name} {}",
                domain.name
            );
            assert!(domain.bind.is_empty(), "{name} {}", domain.name);
        }
        assert!(profile.domains.iter().any(|domain| domain.name == not), "{name}");
        let back = format!("{not}_t");
        let into = format!(" process {reaches}_t)");
        let leads =
            |line: &str| line.contains(&format!("(typetransition {back} ")) && line.contains(&into);
        assert!(!profile.cil.lines().any(leads), "{name}: {not} gets back");
    }
}

#[test]
fn a_package_manager_fills_caches_that_its_scripts_cannot_poison() {
    for (name, path, manager, script) in [
        ("cargo", "/home/me/.cargo/registry/src/x", ("cargo", "rwx"), ("build", "rx")),
        ("cargo", "/home/me/.cargo/registry/src/x", ("cargo", "rwx"), ("inner", "rx")),
        ("cargo", "/home/me/.cargo/bin/x", ("cargo", "rx"), ("build", "rx")),
        ("cargo", "/home/me/.cargo/config.toml", ("cargo", "r"), ("build", "r")),
        ("go", "/home/me/go/pkg/mod/x", ("go", "rwx"), ("tests", "rx")),
        ("go", "/home/me/.cache/go-build/00/x", ("go", "rwx"), ("tests", "rx")),
        ("cargo", "/home/me/.cargo/env.fish", ("cargo", "r"), ("build", "r")),
        ("npm", "/home/me/.npmrc", ("npm", "r"), ("scripts", "hidden")),
        // A project has pnpm copy what it may read, and write where it likes.
        ("pnpm", "/home/me/.npmrc", ("npm", "hidden"), ("scripts", "hidden")),
        ("pnpm", "/home/me/.config/pnpm/rc", ("npm", "hidden"), ("scripts", "hidden")),
        ("pnpm", "/home/me/.cache/node/corepack/v1/x", ("npm", "rx"), ("scripts", "rx")),
        ("pnpm", "/home/me/.local/share/pnpm/store/x", ("npm", "rx"), ("started", "rx")),
        // Go outside writes there, wherever a link leads.
        ("go", "/home/me/.config/go/telemetry/local/x", ("go", "r"), ("tests", "r")),
        ("go", "/home/me/.config/go/telemetry/local/x", ("nested", "r"), ("compile", "r")),
        ("claude", "/home/me/.claude/.credentials.json", ("main", "rw"), ("tools", "hidden")),
        // Where an agent looks for an editor, and starts what stands there.
        ("gemini", "/tmp/dewar/gemini/ide/x.json", ("main", "hidden"), ("tools", "hidden")),
        // Where agents outside have programs.
        ("codex", "/home/me/.codex/tmp/arg0-linux/x", ("main", "r"), ("tools", "hidden")),
    ] {
        let profile = shipped_profile(name);
        for (domain, want) in [manager, script] {
            assert_eq!(letters(rights(&profile, domain, path)), want, "{name} {domain} {path}");
        }
    }
    assert!(shipped_profile("cargo").directories.contains(&"/home/me/.cargo".into()));
}

#[test]
fn a_project_has_pnpm_do_nothing_that_a_script_may_not_but_reach_registries() {
    let pnpm = shipped_profile("pnpm");
    let index = |name| pnpm.domains.iter().position(|domain| domain.name == name).unwrap();
    let (manager, script) = (index("npm"), index("scripts"));
    for path in &pnpm.paths {
        let (has, own) = (path.rights[manager], path.rights[script]);
        assert!((own.read || !has.read) && (own.write || !has.write), "{}", path.regex);
    }
    for prefix in ["npm_config", "pnpm_config"] {
        assert_eq!(pnpm.environment.set[&format!("{prefix}_shell_emulator")], "false");
    }
    assert_eq!(pnpm.environment.set["DISABLE_V8_COMPILE_CACHE"], "1");
    // Who trusts a project says so.
    let own = "extends = 'pnpm'\ndomains.npm.files.read = ['${home}/.npmrc']\n";
    let own = compile(own).unwrap();
    assert_eq!(letters(rights(&own, "npm", "/home/me/.npmrc")), "r");
    assert_eq!(letters(rights(&own, "scripts", "/home/me/.npmrc")), "hidden");
}

#[test]
fn nginx_reads_what_it_comes_with_and_no_key_beside_it() {
    let nginx = shipped_profile("nginx");
    for (path, want) in [
        ("/etc/nginx/mime.types", "r"),
        ("/etc/nginx/site.key", ""),
        ("/etc/nginx/conf.d/site.conf", ""),
        ("/etc/nginx/ssl/site.key", ""),
    ] {
        assert_eq!(letters(rights(&nginx, "main", path)), want, "{path}");
    }
}

#[test]
fn registries_are_those_of_the_tools_configuration_and_its_files_are_kept() {
    let text =
        "extends = 'workspace'\n[files]\nwrite = ['${home}']\n[network]\nregistries = ['npm']\n";
    let compiled = compile(text).unwrap();
    let hosts: Vec<String> = compiled.hosts.iter().map(|host| host.host.to_string()).collect();
    assert_eq!(hosts, ["mirror.example.org"]);
    let rule = &compiled.domains[0].connect[0];
    assert_eq!((rule.low, rule.high), (8443, 8443));
    assert_eq!(compiled.environment.set["npm_config_registry"], "https://mirror.example.org:8443/");
    assert!(!rights(&compiled, "main", "/home/me/.npmrc").write);
    let own = format!("{text}[env]\nset = {{ npm_config_registry = 'mine' }}\n");
    assert_eq!(compile(&own).unwrap().environment.set["npm_config_registry"], "mine");
    let error = compile("network.registries = ['nmp']").unwrap_err();
    let problem = &error.errors()[0].problem;
    assert!(problem.help().unwrap().contains("did you mean `npm`?"), "{problem}");
}

#[test]
fn profiles_combine_and_what_both_extend_counts_once() {
    let combined = |argument: &str| {
        compile_source(&Source::from_argument(argument))
            .unwrap_or_else(|e| panic!("{argument}: {e:?}"))
    };
    let both = combined("npm+loopback");
    assert_eq!(both.name, "profile npm+loopback");
    for domain in &both.domains {
        assert!(!domain.connect.is_empty() && !domain.bind.is_empty(), "{}", domain.name);
    }
    let scripts = both.domains.iter().find(|domain| domain.name == "scripts").unwrap();
    let reached = |rule: &profile::EndpointRule| both.hosts[rule.host].host.to_string();
    let hosts: Vec<String> = scripts.connect.iter().map(reached).collect();
    assert!(hosts.iter().all(|host| host == "127.0.0.0/8" || host == "::1"), "{hosts:?}");
    // The later one has the last word.
    let last = combined("build+readonly");
    assert_eq!(letters(rights(&last, "main", "/home/me/work/x")), "rx");
    assert_eq!(letters(rights(&last, "main", "/home/me/.cache/pip/x")), "rwx");
    let names: Vec<String> =
        combined("cargo+go+uv").domains.iter().map(|domain| domain.name.clone()).collect();
    assert_eq!(
        names,
        ["main", "build", "cargo", "inner", "rustup", "compile", "go", "nested", "tests", "uv"]
    );
    for wrong in ["npm+nosuch", "npm+", "+npm", "nosuch+npm"] {
        assert!(compile_source(&Source::from_argument(wrong)).is_err(), "{wrong}");
    }
    for file in ["c++.toml", ".", ".."] {
        assert_eq!(Source::from_argument(file), Source::File(file.into()));
    }
    secilc(&both.cil).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn what_an_agent_has_of_its_own_no_domain_of_another_profile_has() {
    for (agent, own) in [("claude", ".claude.json"), ("codex", ".codex/x"), ("gemini", ".gemini/x")]
    {
        for other in ["cargo", "git", "go", "uv"] {
            let Ok(both) = compile_source(&Source::from_argument(&format!("{agent}+{other}")))
            else {
                continue;
            };
            let own = format!("/home/me/{own}");
            for domain in &both.domains {
                let has = letters(rights(&both, &domain.name, &own)).contains('r');
                assert_eq!(has, domain.name == "main", "{agent}+{other}: {}", domain.name);
            }
        }
    }
}

#[test]
fn a_combination_is_read_again_in_its_own_order() {
    let source = Source::from_argument("npm+loopback");
    let documents = profile::Documents::read(&source).unwrap();
    let names: Vec<String> = documents.texts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["profile loopback", "profile npm", "profile workspace"]);
    let again =
        profile::Documents::from_texts(documents.name().into(), &documents.texts()).unwrap();
    let compile = |documents: &profile::Documents| {
        let one = |_: &&str| Ok(vec!["192.0.2.1".parse().unwrap()]);
        let resolver = &mut |names: &[&str]| names.iter().map(one).collect();
        documents.compile(&common::variables(), resolver, &[]).unwrap().cil
    };
    assert_eq!(compile(&again), compile(&documents));
}

#[test]
fn what_enters_a_domain_could_be_executed_and_read_without_it() {
    for (name, _) in shipped() {
        let profile = shipped_profile(name);
        for domain in &profile.domains {
            let index = profile.domains.iter().position(|d| d.name == domain.name).unwrap();
            let start = format!("(allow {} ", domain.type_name);
            let of_programs = profile.cil.lines().filter_map(|line| line.strip_prefix(&start));
            for line in of_programs.filter(|line| line.contains("(file (getattr read open execute"))
            {
                let type_name = line.split(' ').next().unwrap();
                let rule = profile.paths.iter().find(|rule| rule.type_name == type_name).unwrap();
                let rights = rule.rights[index];
                assert!(rights.read && rights.exec, "{name} {}: {}", domain.name, rule.regex);
            }
        }
    }
}

#[test]
fn whatever_a_manager_that_is_a_script_starts_leaves_its_domain() {
    for name in ["npm", "pnpm", "claude", "codex", "gemini"] {
        let profile = shipped_profile(name);
        for rule in
            profile.paths.iter().filter(|rule| rule.rights[0].exec && !rule.is_way && !rule.by_name)
        {
            let leads_out = format!("(typetransition main_t {} process ", rule.type_name);
            // Its own programs have that name.
            let is_own = rule.type_name.starts_with("main_");
            assert!(is_own || profile.cil.contains(&leads_out), "{name}: {}", rule.regex);
        }
    }
}

/// The domains that programs lead to which enter `into`, once they are executed in it.
fn started_again<'a>(profile: &'a Compiled, into: &str) -> Vec<Option<&'a str>> {
    let enter = format!(" process {into}_t)");
    let mut entering: Vec<&str> = Vec::new();
    for line in profile.cil.lines().filter(|line| line.ends_with(&enter)) {
        entering.extend(line.split(' ').nth(2));
    }
    let again = |program: &&str| {
        let start = format!("(typetransition {into}_t {program} process ");
        let line = profile.cil.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|rest| rest.strip_suffix("_t)"))
    };
    entering.iter().map(again).collect()
}

#[test]
fn a_manager_that_a_manager_starts_has_none_of_its_rights() {
    for (name, manager, started) in [
        ("npm", "npm", &["started"][..]),
        ("pnpm", "npm", &["started"]),
        ("go", "go", &["nested"]),
        ("cargo", "cargo", &["inner"]),
    ] {
        let profile = shipped_profile(name);
        let led = started_again(&profile, manager);
        assert!(!led.is_empty(), "{name}");
        let is_known = |into: &Option<&str>| into.is_some_and(|into| started.contains(&into));
        assert!(led.iter().all(is_known), "{name}: {led:?}");
    }
}

#[test]
fn no_program_enters_the_domain_of_go_from_where_that_one_writes() {
    let go = shipped_profile("go");
    let index = go.domains.iter().position(|domain| domain.name == "go").unwrap();
    for line in go.cil.lines().filter(|line| line.ends_with(" process go_t)")) {
        let program = line.split(' ').nth(2).unwrap();
        let written =
            |path: &&profile::PathRule| path.type_name == program && path.rights[index].write;
        assert_eq!(go.paths.iter().find(written).map(|path| &path.regex), None, "{line}");
    }
}

/// The page about all of them, as their files say it.
fn page() -> String {
    let mut page = "# The profiles that are part of Dewar\n\nThis page is made of the files in [policy/profiles](../../policy/profiles) \
                    by a test, which says when it lags behind (`DEWAR_WRITE_DOCS=1` writes it anew). `dewar policy show NAME` tells what \
                    each grants; [docs/profile.md](../profile.md#combining) tells how they combine.\n"
        .to_owned();
    for (name, text) in shipped() {
        let lines = text.lines().take_while(|line| line.starts_with('#'));
        let lines = lines.map(|line| line.trim_start_matches('#').trim_start());
        let paragraphs: Vec<&str> = lines.collect();
        page += &format!("\n## `{name}`\n\n{}\n", paragraphs.join("\n"));
    }
    page
}

#[test]
fn the_page_about_shipped_profiles_says_what_their_files_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles/README.md");
    if std::env::var_os("DEWAR_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == page(), "DEWAR_WRITE_DOCS=1 writes it anew");
}

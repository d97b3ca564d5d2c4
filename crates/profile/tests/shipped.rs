//! The profiles that are part of Dewar.

mod common;

use common::{compile, compile_source, letters, rights, secilc};
use profile::{Compiled, Source, shipped};

fn shipped_profile(name: &str) -> Compiled {
    compile_source(&Source::Shipped(name.into())).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

#[test]
fn the_reference_compiler_accepts_every_shipped_profile() {
    for (name, _) in shipped() {
        secilc(&shipped_profile(name).cil).unwrap_or_else(|said| panic!("{name}: {said}"));
    }
}

#[test]
fn every_shipped_profile_says_what_it_holds_against_and_what_not() {
    for (name, text) in shipped() {
        assert!(text.contains("# Holds against"), "{name}");
        assert!(text.contains("# Does not hold against"), "{name}");
        assert!(shipped_profile(name).description.is_some(), "{name}");
    }
}

#[test]
fn workspace_opens_the_workspace_and_the_system_and_hides_secrets() {
    let workspace = shipped_profile("workspace");
    for (path, want) in [
        ("/home/me/work/src/main.c", "rwx"),
        ("/tmp/dewar/a.out", "rwx"),
        ("/usr/bin/make", "rx"),
        ("/etc/passwd", "r"),
        ("/dev/null", "rw"),
        ("/dev/sda", ""),
        ("/proc/self/status", "r"),
        ("/etc/shadow", ""),
        ("/etc/ssh/ssh_host_ed25519_key", ""),
        ("/etc/ssh/ssh_config", "r"),
        ("/home/me", ""),
        ("/home/me/diary.txt", ""),
        ("/home/me/.gitconfig", "r"),
        ("/home/me/.cargo/bin/cargo", "rx"),
        ("/home/me/.cargo/credentials.toml", "hidden"),
        ("/home/me/.ssh/id_ed25519", "hidden"),
        ("/home/me/.aws/credentials", "hidden"),
        ("/home/me/.local/share/uv/tools/x", "rx"),
        ("/home/me/.local/share/uv/credentials/credentials.toml", "hidden"),
        ("/home/me/.bashrc", "hidden"),
        ("/home/me/.config/gh/hosts.yml", "hidden"),
        ("/home/me/.config/google-chrome-beta/Default/Cookies", "hidden"),
        ("/home/me/.bash_history", "hidden"),
        ("/home/me/.psql_history", "hidden"),
        ("/run/user/1000/bus", "hidden"),
        ("/tmp/other", ""),
    ] {
        assert_eq!(letters(rights(&workspace, "main", path)), want, "{path}");
    }
}

#[test]
fn variables_that_look_like_secrets_do_not_pass_and_harmless_ones_do() {
    let workspace = shipped_profile("workspace");
    for (name, want) in [
        ("PATH", true),
        ("HOME", true),
        ("TERM", true),
        ("LC_ALL", true),
        ("CARGO_TARGET_DIR", true),
        ("GOPRIVATE", true),
        ("LD_LIBRARY_PATH", true),
        ("KEYBOARD", true),
        ("GITHUB_TOKEN", false),
        ("NPM_TOKEN", false),
        ("AWS_SESSION_NAME", false),
        ("OPENAI_API_KEY", false),
        ("DB_PASSWORD", false),
        ("SSH_AUTH_SOCK", false),
        ("MY_SECRET_THING", false),
        ("npm_config__authtoken_TOKEN", false),
        ("github_token", false),
        ("npm_config__authToken", false),
        ("MYSQL_PWD", false),
        ("SSHPASS", false),
        ("PASS", false),
        ("DBPASS", false),
        ("SMTPPASS", false),
        ("AUTH", false),
        ("BEARER", false),
        ("API_BEARER", false),
        ("MY_CRED", false),
        ("GOOGLE_OAUTH", false),
        ("TS_AUTHKEY", false),
        ("KEYBASE_PAPERKEY", false),
        ("BW_SESSION", false),
        ("OP_SESSION_team", false),
        ("SESSIONID", false),
        ("COMPASS", true),
        ("BYPASS", true),
        ("DEBUG_PASSES", true),
        ("AUTHOR", true),
        ("GIT_AUTHOR_NAME", true),
        ("SACRED", true),
        ("XDG_SESSION_ID", true),
        ("DESKTOP_SESSION", true),
        ("TERM_SESSION_ID", true),
        ("LDAP_BINDPW", false),
        ("CI_JOB_JWT", false),
        ("MNEMONIC", false),
        ("OLDPWD", true),
        ("PWD", true),
        ("GIT_CONFIG_VALUE_0", false),
        ("GIT_CONFIG_PARAMETERS", false),
        ("GIT_CONFIG_GLOBAL", true),
        ("SYSTEM_ACCESSTOKEN", false),
        ("NPMTOKEN", false),
        ("API_KEY2", false),
        ("AUTH_HEADER", false),
        ("KEY", false),
        ("TOKENIZERS_PARALLELISM", true),
        ("BUNDLE_GEMS__EXAMPLE__COM", false),
        ("BUNDLE_PATH", true),
        ("AzureWebJobsStorage", false),
        ("ConnectionStrings__Main", false),
        ("OTEL_EXPORTER_OTLP_HEADERS", false),
        ("ETCDCTL_USER", false),
        ("NIX_CONFIG", false),
        ("AIRFLOW_CONN_MAIN", false),
        ("SPRING_DATASOURCE_URL", false),
        ("MAVEN_OPTS", true),
    ] {
        assert_eq!(workspace.environment.passes(name), want, "{name}");
    }
    assert_eq!(workspace.environment.set["TMPDIR"], "/tmp/dewar");
    // Most of what npm does fails without a cache of its own that it can write.
    assert_eq!(workspace.environment.set["npm_config_cache"], "/tmp/dewar/.npm");
    // `less` would be denied its history at each end.
    assert_eq!(workspace.environment.set["LESSHISTFILE"], "/tmp/dewar/.lesshst");
}

#[test]
fn build_adds_caches_and_keeps_secrets_hidden() {
    let build = shipped_profile("build");
    for (path, want) in [
        ("/home/me/.cache/pip/x", "rwx"),
        ("/home/me/.cargo/registry/cache/x", "rwx"),
        ("/home/me/.cargo/bin/cargo", "rx"),
        ("/home/me/.cargo/credentials", "hidden"),
        ("/home/me/.cache/huggingface/token", "hidden"),
        ("/home/me/.gradle/gradle.properties", "hidden"),
        // What is executed outside without a build, or builds.
        ("/home/me/.cache/black/24/x.pickle", "rx"),
        ("/home/me/.cache/whatever/x", ""),
        ("/home/me/.cache/mozilla/x", ""),
        ("/home/me/.ivy2/cache/x", "rw"),
        ("/home/me/.ivy2/.credentials_company", ""),
        ("/home/me/.cache/node/corepack/v1/pnpm/9/bin/pnpm.cjs", "rx"),
        ("/home/me/.cache/bazel/_bazel_me/install/1/java", "rx"),
        ("/home/me/.cache/bazel/_bazel_me/1/x", "rwx"),
        ("/home/me/.stack/programs/x/ghc/bin/ghc", "rx"),
        ("/home/me/.stack/hooks/ghc-install.sh", "rx"),
        ("/home/me/.stack/pantry/x", "rwx"),
        ("/home/me/.mix/elixir/1-15/rebar3", "rx"),
        ("/home/me/.npm/_npx/1/x", "rx"),
        ("/home/me/.local/share/pnpm/store/v10/x", "rx"),
        ("/home/me/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64/bin/go", "rx"),
        ("/home/me/go/pkg/mod/cache/download/golang.org/toolchain/@v/x.zip", "rx"),
        ("/home/me/go/pkg/mod/golang.org/x/net@v0.1.0/x.go", "rwx"),
    ] {
        assert_eq!(letters(rights(&build, "main", path)), want, "{path}");
    }
}

#[test]
fn readonly_takes_writing_to_the_workspace_and_nothing_else() {
    let readonly = shipped_profile("readonly");
    assert_eq!(letters(rights(&readonly, "main", "/home/me/work/x")), "rx");
    assert_eq!(letters(rights(&readonly, "main", "/tmp/dewar/x")), "rwx");
}

#[test]
fn what_is_named_in_a_directory_for_temporary_files_has_the_rights_of_its_own_entries() {
    let profile =
        |files: &str| compile(&format!("extends = \"workspace\"\n[files]\n{files}")).unwrap();
    let tmp = "/tmp/dewar";
    for (files, path, want) in [
        ("read = [\"${tmp}/x\"]", format!("{tmp}/x/y"), "r"),
        ("read = [\"${tmp}/x\"]", format!("{tmp}/y"), "rwx"),
        ("write = [\"${tmp}/x\"]", format!("{tmp}/x"), "rw"),
        ("write = [\"${tmp}/x\"]\nexec = [\"${tmp}/x/bin\"]", format!("{tmp}/x/bin/a"), "rwx"),
        ("write = [\"${tmp}/x\"]\nread = [\"${tmp}/x/in\"]", format!("{tmp}/x/in/a"), "rw"),
        ("exec = [\"${tmp}/x\"]", format!("{tmp}/x"), "rx"),
        ("readonly = [\"${tmp}/x\"]", format!("{tmp}/x"), "r"),
        ("read = [\"/dev/shm/x\"]", "/dev/shm/x".into(), "r"),
        ("read = [\"/dev/shm/x\"]", "/dev/shm/y".into(), "rw"),
        // Nothing of the machine's.
        ("unguarded = [\"${tmp}/x\"]", format!("{tmp}/x"), "rwx"),
        ("read = [\"${tmp}/*.txt\"]", format!("{tmp}/a.txt"), "rwx"),
        // What is granted beyond the directory is not about it.
        ("write = [\"/\"]\nread = [\"${tmp}/x\"]", format!("{tmp}/x"), "rw"),
    ] {
        assert_eq!(letters(rights(&profile(files), "main", &path)), want, "{files}: {path}");
    }
}

#[test]
fn agent_reaches_its_hosts_and_cannot_plant_hooks() {
    let agent = shipped_profile("agent");
    assert_eq!(letters(rights(&agent, "main", "/home/me/work/.git/hooks/pre-commit")), "rx");
    assert_eq!(letters(rights(&agent, "main", "/home/me/work/.git/index")), "rwx");
    assert!(agent.cil.contains("name_connect"));
    assert!(agent.domains[0].connect.iter().all(|rule| [443, 53, 8443].contains(&rule.low)));
    // A port to ask the name server from.
    assert!(agent.domains[0].bind.iter().all(|rule| (rule.low, rule.high) == (0, 0)));
}

#[test]
fn agent_guards_names_that_programs_outside_trust_at_any_depth() {
    let agent = shipped_profile("agent");
    let guarded = "extends = 'agent'\n[files]\nunguarded = ['${workspace}/vendor']\n\
                   write = ['${workspace}/docs/.vscode', '/dev/shm/work']\n";
    let own = compile(guarded).unwrap();
    let report = compile("extends = 'agent'\nfiles.guard_action = 'report'\n").unwrap();
    let none = compile("extends = 'agent'\nfiles.guard = 'none'\n").unwrap();
    let rules = |compiled: &Compiled| {
        let rule = |(index, rule): (usize, &profile::PathRule)| {
            let sid = flask::Sid::new(index as u32 + 100);
            flask::FileRule { path: rule.regex.clone(), kind: flask::FileKind::Any, sid }
        };
        let of_any_kind = |rule: &&profile::PathRule| {
            !rule.is_way && !rule.regex.ends_with(')') || rule.regex.ends_with("(/.*)?")
        };
        let rules: Vec<_> =
            compiled.paths.iter().enumerate().filter(|(_, r)| of_any_kind(r)).map(rule).collect();
        labelling::PathRules::new(&rules).unwrap()
    };
    let writes = |compiled: &Compiled, path: &str| {
        let sid = rules(compiled).sid(std::path::Path::new(path), flask::FileKind::File);
        compiled.paths[sid.get() as usize - 100].rights[0].write
    };
    for (path, by_agent, by_own) in [
        ("/home/me/work/src/main.c", true, true),
        ("/home/me/work/a/.git/config", false, false),
        ("/home/me/work/a/.Git/CONFIG", false, false),
        ("/home/me/work/a/.git/index", true, true),
        ("/home/me/work/a/AGENTS.md", false, false),
        ("/home/me/work/node_modules/a/AGENTS.md", true, true),
        ("/home/me/work/node_modules/a/.git/config", false, false),
        ("/home/me/work/.claude/skills/node_modules/SKILL.md", false, false),
        ("/home/me/work/.devcontainer/site-packages/devcontainer.json", false, false),
        ("/home/me/work/a/.git/remotes/origin", false, false),
        ("/home/me/work/.gitlint", false, false),
        ("/home/me/work/Makefile", true, true),
        ("/home/me/work/vendor/a/.git/config", false, true),
        ("/home/me/work/docs/.vscode/tasks.json", false, true),
        ("/home/me/work/docs/.vscode/.idea/x", false, false),
        ("/tmp/dewar/.vscode/x", true, true),
        ("/dev/shm/a/.vscode/x", true, true),
        ("/dev/shm/work/a/.git/config", true, false),
    ] {
        assert_eq!(writes(&agent, path), by_agent, "{path}");
        assert_eq!(writes(&own, path), by_own, "{path}");
        assert!(writes(&report, path) && writes(&none, path), "{path}");
    }
    assert!(agent.guarded && report.guarded && !none.guarded);
    secilc(&own.cil).unwrap_or_else(|said| panic!("{said}"));
}

/// Daemons of the user's listen there, which do whatever whoever connects says.
#[test]
fn no_ready_profile_connects_to_servers_of_this_machine() {
    for (name, text) in shipped().iter().filter(|(name, _)| *name != "loopback") {
        let text: toml::Table = text.parse().unwrap();
        let network = text.get("network").and_then(|it| it.get("connect")).into_iter();
        let of_domains = text.get("domains").and_then(|it| it.as_table()).into_iter().flatten();
        let of_domains = of_domains.filter_map(|(_, it)| it.get("network")?.get("connect"));
        for connect in network.chain(of_domains).flat_map(|it| it.as_array().unwrap()) {
            let endpoint = connect.as_str().unwrap();
            let is_own = ["127.", "[::1]", "localhost"].iter().any(|it| endpoint.starts_with(it));
            assert!(!is_own || endpoint.ends_with("/udp"), "{name}: {endpoint}");
        }
    }
}

#[test]
fn memory_that_a_run_shares_with_the_machine_is_guarded() {
    for shares_temporary in [false, true] {
        let variables = profile::Variables { shares_temporary, ..common::variables() };
        let agent = common::compile_in(&Source::Shipped("agent".into()), &variables).unwrap();
        let is_guarded =
            agent.paths.iter().any(|rule| rule.regex.starts_with("(/dev/shm(/.*)?){0}"));
        assert_eq!(is_guarded, shares_temporary);
    }
}

#[test]
fn offline_has_no_socket_but_unix_pairs() {
    let offline = shipped_profile("offline");
    for class in ["tcp_socket", "udp_socket", "netlink_socket", "rawip_socket", "endpoint"] {
        assert!(!offline.cil.contains(&format!("self ({class} ")), "{class}");
    }
    assert!(!offline.cil.contains("(connectto)"), "only to what it has bound itself");
    assert!(offline.domains[0].is_offline() && offline.domains[0].unix.is_empty());
}

#[test]
fn shipped_profiles_use_only_literal_paths_which_the_kernel_enforces_alone() {
    // Where a process changes its domain, the monitor opens files anyway.
    let single = shipped().iter().filter(|(name, _)| shipped_profile(name).domains.len() == 1);
    for (name, _) in single {
        for rule in shipped_profile(name).paths {
            assert!(rule.path.is_some() || rule.by_name, "{name}: {}", rule.regex);
        }
    }
}

#[test]
fn what_a_profile_says_of_a_variable_counts_and_not_what_it_extends() {
    let text = "extends = 'workspace'\n[env]\npass = ['SSH_AUTH_SOCK', 'jwt', 'PASS']\ndrop = ['PASS', 'LANG']\n";
    let environment = compile(text).unwrap().environment;
    for (name, want) in
        [("SSH_AUTH_SOCK", true), ("JWT", true), ("PASS", false), ("LANG", false), ("AUTH", false)]
    {
        assert_eq!(environment.passes(name), want, "{name}");
    }
}

#[test]
fn a_profile_can_open_again_what_a_shipped_one_hides() {
    let text =
        "extends = 'workspace'\n[files]\nread = ['${home}/.ssh/known_hosts', '${home}/.aws']\n";
    let compiled = compile(text).unwrap();
    assert_eq!(letters(rights(&compiled, "main", "/home/me/.ssh/known_hosts")), "r");
    assert_eq!(letters(rights(&compiled, "main", "/home/me/.ssh/id_rsa")), "hidden");
    assert_eq!(letters(rights(&compiled, "main", "/home/me/.aws/config")), "r");
}

#[test]
fn who_is_believed_by_a_domain_of_a_shipped_profile_has_its_rights() {
    let believed = [
        ("cargo", "cargo", "build"),
        ("cargo", "cargo", "inner"),
        ("cargo", "inner", "build"),
        ("cargo", "rustup", "build"),
        ("npm", "npm", "scripts"),
        ("npm", "npm", "started"),
        ("pnpm", "npm", "scripts"),
        ("pnpm", "npm", "started"),
        // main has less, but executes nothing but env and the script of npm.
        ("npm", "main", "npm"),
        ("pnpm", "main", "npm"),
    ];
    for (name, _) in shipped() {
        let cil = shipped_profile(name).cil;
        let believes = cil.matches("(process (noatsecure))").count();
        assert_eq!(believes, believed.iter().filter(|it| it.0 == *name).count(), "{name}");
        for (_, from, into) in believed.iter().filter(|it| it.0 == *name) {
            let rule = format!("(allow {from}_t {into}_t (process (noatsecure)))");
            assert!(cil.contains(&rule), "{name}: {rule}");
        }
    }
    for (name, from, into) in believed.iter().filter(|it| it.1 != "main") {
        has_all_rights_of(&shipped_profile(name), from, into);
    }
}

fn has_all_rights_of(profile: &Compiled, from: &str, into: &str) {
    let index = |name| profile.domains.iter().position(|domain| domain.name == name).unwrap();
    let (entered, believed) = (index(into), index(from));
    for path in &profile.paths {
        let (own, has) = (path.rights[entered], path.rights[believed]);
        // Cargo keeps itself from changing its programs; what it starts could not either.
        let pairs = [(own.list, has.list), (own.read, has.read), (own.write, has.write)];
        let is_covered = pairs.iter().all(|(own, has)| *has || !own);
        assert!(is_covered && (has.exec || !own.exec), "{}", path.regex);
        assert!(own.hidden || !has.hidden, "{}", path.regex);
    }
    let entered = &profile.domains[entered];
    assert!(entered.is_offline() && entered.unix.is_empty() && entered.capabilities.is_empty());
}

/// What acts for whoever connects is in no shipped profile's reach but that of `open`.
#[test]
fn no_shipped_profile_lets_anything_act_outside() {
    for (name, _) in shipped().iter().filter(|(name, _)| *name != "open") {
        let compiled = shipped_profile(name);
        for path in &compiled.paths {
            let Some(file) = path.path.as_ref().and_then(|path| path.to_str()) else { continue };
            let is_granted = path.rights.iter().any(|rights| rights.write);
            assert!(profile::power(file).is_none() || !is_granted, "{name}: {file}");
        }
        assert!(compiled.domains.iter().all(|domain| domain.unix.is_empty()), "{name}");
    }
}

//! The policy that a profile stands for.

mod common;

use common::{compile, letters, rights, secilc};
use profile::Compiled;

fn good(text: &str) -> Compiled {
    let compiled = compile(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    secilc(&compiled.cil).unwrap_or_else(|said| panic!("{said}\n{}", compiled.cil));
    compiled
}

fn has(compiled: &Compiled, rule: &str) -> bool {
    compiled.cil.lines().any(|line| line == rule)
}

#[test]
fn an_empty_profile_grants_existence_and_nothing_else() {
    let empty = good("");
    assert_eq!(letters(rights(&empty, "main", "/etc/passwd")), "");
    assert!(has(&empty, "(allow main_t main_visible files_exist)"));
    assert!(!empty.cil.contains("_t files_read)"));
    assert!(!empty.environment.passes("PATH"));
}

#[test]
fn the_more_specific_pattern_decides() {
    let compiled = good(
        "[files]\nread = ['/data', '/data/secret/public']\nwrite = ['/data/out']\n\
         hide = ['/data/secret']\ndeny = ['/data/out/log']\nexec = ['/data/bin']\n",
    );
    for (path, want) in [
        ("/data/x", "r"),
        ("/database", ""),
        ("/data/out/x", "rw"),
        ("/data/out/log/x", ""),
        ("/data/secret/x", "hidden"),
        ("/data/secret/public/x", "r"),
        ("/data/bin/tool", "rx"),
    ] {
        assert_eq!(letters(rights(&compiled, "main", path)), want, "{path}");
    }
}

#[test]
fn a_hidden_name_stays_hidden_below_a_more_specific_grant() {
    let compiled = good(
        "[files]\nwrite = ['${workspace}', '${workspace}/src/app']\nread = ['${workspace}/a/.env']\n\
         hide = ['${workspace}/**/.env', '${workspace}/**/secrets/*.key']\n",
    );
    for (path, want) in [
        ("/home/me/work/.env", "hidden"),
        ("/home/me/work/x/y/.env/z", "hidden"),
        ("/home/me/work/src/app/.env", "hidden"),
        ("/home/me/work/src/app/x/secrets/a.key", "hidden"),
        ("/home/me/work/src/app/x/secrets/a.pem", "rw"),
        // Hiding takes everything; the grant inside gives back what it says.
        ("/home/me/work/a/.env", "r"),
        ("/home/me/work/src/.envrc", "rw"),
    ] {
        assert_eq!(letters(rights(&compiled, "main", path)), want, "{path}");
    }
}

#[test]
fn a_glob_grants_what_it_matches_and_takes_what_lies_below() {
    let compiled = good("[files]\nread = ['/srv/*', '/opt/**']\nhide = ['/opt/.*']\n");
    for (path, want) in [
        ("/srv/a", "r"),
        ("/srv/a/b", ""),
        ("/srv", ""),
        ("/opt/a/b", "r"),
        ("/opt", ""),
        ("/opt/.x/y", "hidden"),
    ] {
        assert_eq!(letters(rights(&compiled, "main", path)), want, "{path}");
    }
}

#[test]
fn characters_that_mean_something_in_regular_expressions_are_only_characters() {
    let compiled = good("[files]\nread = ['/a.b+c(d)|e^f$', '/x/[a-c]?', '/y/[!a]', '/z\\*']\n");
    for (path, want) in [
        ("/a.b+c(d)|e^f$", "r"),
        ("/aXb+c(d)|e^f$", ""),
        ("/x/b1", "r"),
        ("/x/d1", ""),
        ("/y/b", "r"),
        ("/y/a", ""),
        ("/z*", "r"),
        ("/zz", ""),
    ] {
        assert_eq!(letters(rights(&compiled, "main", path)), want, "{path}");
    }
}

#[test]
fn one_character_is_one_in_every_writing() {
    let compiled = good("[files]\nread = ['/s?.txt', '/t[!a-z].txt', '/u??', '/v?/k']\n");
    for (path, want) in [
        ("/sa.txt", "r"),
        ("/sé.txt", "r"),
        ("/s€.txt", "r"),
        ("/s😀.txt", "r"),
        ("/s.txt", ""),
        ("/sab.txt", ""),
        ("/séa.txt", ""),
        ("/t1.txt", "r"),
        ("/té.txt", "r"),
        ("/ta.txt", ""),
        ("/téé.txt", ""),
        ("/ué€", "r"),
        ("/uéaa", ""),
        ("/vé/k", "r"),
        ("/vé/x", ""),
    ] {
        assert_eq!(letters(rights(&compiled, "main", path)), want, "{path}");
    }
}

#[test]
fn a_domain_has_the_base_domain_s_files_and_its_own_but_not_its_network() {
    let compiled = good(
        "[files]\nread = ['/usr']\n[network]\nconnect = ['example.org:443']\n\
         [domains.git]\nexec = ['/usr/bin/git']\nfiles.read = ['${home}/.gitconfig']\n\
         [domains.bare]\nexec = ['/usr/bin/bare']\ninherit = false\n",
    );
    assert_eq!(letters(rights(&compiled, "git", "/usr/x")), "r");
    assert_eq!(letters(rights(&compiled, "git", "/home/me/.gitconfig")), "r");
    assert_eq!(letters(rights(&compiled, "main", "/home/me/.gitconfig")), "");
    assert_eq!(letters(rights(&compiled, "bare", "/usr/x")), "");
    assert!(!compiled.domains[0].is_offline() && compiled.domains[2].is_offline());
    assert!(has(&compiled, "(typetransition main_t git_exec_t process git_t)"));
    assert!(has(&compiled, "(typetransition bare_t git_exec_t process git_t)"));
    let enter = "(file (getattr read open execute execute_no_trans entrypoint))";
    assert!(has(&compiled, &format!("(allow git_t git_exec_t {enter})")));
    assert!(has(&compiled, "(allow main_t git_exec_t (file (getattr read open execute)))"));
    assert!(compiled.cil.contains("(allow main_t git_t (process (transition signal"));
    assert!(!compiled.cil.contains("(allow git_t main_t"));
    assert!(!has(&compiled, "(allow main_t git_exec_t files_exec)"));
}

#[test]
fn a_program_keeps_its_domain_unless_another_that_names_it_in_from_has_the_same_program() {
    let leads = |more: &str| {
        let text = "[files]\nread = ['/usr']\n[domains.tool]\nexec = ['/usr/bin/node']\nfrom = ['main']\n[domains.rest]\n";
        let compiled = good(&format!("{text}{more}\n"));
        let mut lines = compiled.cil.lines();
        let entry = lines.find(|line| line.ends_with(" process tool_t)")).expect("a way in");
        let program = entry.split(' ').nth(2).unwrap();
        compiled.cil.contains(&format!("(typetransition tool_t {program} process rest_t)"))
    };
    assert!(leads("exec = ['/usr', '/usr/bin/node']\nfrom = ['tool']"));
    assert!(!leads("exec = ['/usr']\nfrom = ['tool']"));
    assert!(!leads("exec = ['/usr', '/usr/bin/node*']\nfrom = ['tool']"));
    assert!(!leads("exec = ['/usr']"));
}

#[test]
fn a_program_that_is_hidden_or_denied_leads_nowhere() {
    let compiled = good(
        "[files]\nexec = ['/usr']\ndeny = ['/usr/bin/git']\n[domains.git]\nexec = ['/usr/bin/git']\n",
    );
    assert!(!compiled.cil.contains("typetransition main_t"));
}

#[test]
fn overlapping_addresses_and_ports_are_cut_so_that_each_rule_holds_exactly() {
    let compiled = good(
        "[network]\nconnect = ['10.0.0.0/8:80', '10.1.0.0/16:8000-8999', '*:8080', '[fd00::/8]:1', \
         'example.org:443', 'twin.example.org:22', '*:53/udp']\nbind = ['127.0.0.1:0', '[::1]:8080']\n",
    );
    for rule in [
        "(nodecon (10.0.0.0) (255.0.0.0) (dewar_u object_r ip_10_0_0_0_8_node_t ((s0) (s0))))",
        "(nodecon (fd00::) (ff00::) (dewar_u object_r ip_fd00_8_node_t ((s0) (s0))))",
        "(portcon tcp (8000 8079) (dewar_u object_r tcp_8000_8999_port_t ((s0) (s0))))",
        "(portcon udp (53 53) (dewar_u object_r udp_53_port_t ((s0) (s0))))",
        "(allow main_t ip_10_0_0_0_8_tcp_80_t (endpoint (name_connect sendto)))",
        // The inner network keeps what the outer one may do.
        "(allow main_t ip_10_1_0_0_16_tcp_80_t (endpoint (name_connect sendto)))",
        "(allow main_t ip_127_0_0_1_tcp_0_t (endpoint (name_bind)))",
        "(allow main_t example_org_and_twin_example_org_tcp_22_t (endpoint (name_connect sendto)))",
    ] {
        assert!(has(&compiled, rule), "{rule}\n{}", compiled.cil);
    }
    for absent in ["ip_10_0_0_0_8_tcp_8000_8999_t", "any_tcp_53_t", "any_tcp_80_t"] {
        assert!(!compiled.cil.contains(absent), "{absent}");
    }
}

#[test]
fn a_name_without_address_reaches_nothing_and_says_why() {
    let compiled = good("[network]\nconnect = ['nowhere.example:443']\n");
    assert_eq!(compiled.hosts[0].error.as_deref(), Some("no such host"));
    assert!(!compiled.cil.contains("(nodecon"));
}

#[test]
fn unix_sockets_are_reached_by_path_or_abstract_name_and_datagrams_only_where_named() {
    let compiled = good(
        "[files]\nhide = ['/run/secret']\n\
         [network]\nconnect = ['unix:/run/foo.sock', 'unix:@dbus-*', 'unixgram:@dbus-x']\nbind = ['unix:@*']\n",
    );
    for rule in [
        "(allow main_t run_foo_sock_t (unix_stream_socket (connectto)))",
        "(allow main_t abstract_dbus_t (unix_stream_socket (connectto)))",
        "(allow main_t abstract_dbus_x_t (unix_dgram_socket (sendto)))",
        "(allow main_t any_socket_t (unix_stream_socket (bind)))",
        "(filecon \"@dbus-.*\" socket (dewar_u object_r abstract_dbus_t ((s0) (s0))))",
    ] {
        assert!(has(&compiled, rule), "{rule}\n{}", compiled.cil);
    }
    assert!(!has(&compiled, "(allow main_t any_socket_t (unix_stream_socket (connectto)))"));
    assert!(!has(&compiled, "(allow main_t abstract_dbus_x_t (unix_dgram_socket (bind)))"));
    assert!(compiled.cil.contains("(allow main_t self (unix_dgram_socket (create"));
    let streams = good("network.connect = ['unix:/run/foo.sock', 'unix:@*']\n");
    assert!(!streams.cil.contains("_t (unix_dgram_socket"));
    assert!(!streams.cil.contains("self (unix_dgram_socket"));
}

#[test]
fn each_rule_leads_back_to_the_string_that_asked_for_it() {
    let compiled =
        good("[files]\nread = [\n  '/usr',\n]\n[network]\nconnect = ['example.org:443']\n");
    let origin = |rule: &str| {
        let line = compiled.cil.lines().position(|line| line.contains(rule)).expect(rule) + 1;
        compiled.origin(line).map(|o| (o.file, o.line, o.column, o.text))
    };
    let usr = Some(("test.toml".to_owned(), 3, 3, "'/usr'".to_owned()));
    assert_eq!(origin("(allow main_t usr_t files_read)"), usr);
    let host = Some(("test.toml".to_owned(), 6, 12, "'example.org:443'".to_owned()));
    assert_eq!(origin("example_org_tcp_443_t (endpoint"), host);
    assert_eq!(origin("(handleunknown deny)"), None);
    assert_eq!((compiled.origin(0), compiled.origin(usize::MAX)), (None, None));
}

#[test]
fn what_is_denied_or_hidden_leads_back_to_the_list_that_does() {
    let text = "files.read = ['/a']\nfiles.deny = ['/a/b']\nfiles.hide = ['/a/c']\n";
    let compiled = good(text);
    let line = |object| compiled.withheld("main_t", object).map(|origin| origin.line);
    assert_eq!((line("a_b_t"), line("a_c_t"), line("a_t")), (Some(2), Some(3), None));
    assert_eq!(line("default_t"), None);
}

#[test]
fn scalars_of_the_extending_profile_replace_those_of_the_extended() {
    let dir = tempfile::tempdir().unwrap();
    let base = "mode = 'all'\ncapabilities = ['chown']\n[limits]\nmemory = '1G'\nfiles = 64\n";
    std::fs::write(dir.path().join("base.toml"), base).unwrap();
    let text = "extends = './base.toml'\nmode = 'fast'\n[limits]\nmemory = '2G'\n";
    std::fs::write(dir.path().join("top.toml"), text).unwrap();
    let source = profile::Source::File(dir.path().join("top.toml"));
    let compiled = common::compile_source(&source).unwrap();
    assert_eq!(compiled.mode, profile::Mode::Fast);
    assert_eq!(compiled.limits.memory_bytes, Some(2 << 30));
    assert_eq!(compiled.limits.files, Some(64));
    assert!(has(&compiled, "(allow main_t self (capability (chown)))"));
}

#[test]
fn no_profile_grants_dewar_s_own_files_or_what_the_run_depends_on() {
    let text = "[files]\nwrite = ['${home}']\n[domains.g]\nexec = ['/g']\ninherit = false\nfiles.read = ['${home}/**/x']\n";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    std::fs::write(
        &file,
        format!("{text}[domains.h]\nexec = ['/h']\nfiles.write = ['{}']\n", dir.path().display()),
    )
    .unwrap();
    let compiled = common::compile_source(&profile::Source::File(file.clone())).unwrap();
    let rights = |path: &std::path::Path| {
        let found = compiled.paths.iter().find(|rule| rule.path.as_deref() == Some(path));
        let rights =
            found.map(|rule| rule.rights.iter().map(|it| (it.read, it.write)).collect::<Vec<_>>());
        rights.unwrap_or_default()
    };
    let nothing = [(false, false); 3];
    assert_eq!(rights("/home/me/.cache/dewar".as_ref()), nothing);
    // The path is no pattern.
    assert_eq!(rights("/home/me/{a}*/dewar".as_ref()), nothing);
    let main_only = |granted| [granted, (false, false), granted];
    assert_eq!(rights("/home/me/work/audit".as_ref()), main_only((true, false)));
    assert_eq!(rights(&file.canonicalize().unwrap())[2], (true, false));
    assert_eq!(rights("/home/me".as_ref()), main_only((true, true)));
}

#[test]
fn a_loopback_of_its_own_is_all_that_a_run_reaches() {
    let own = good("[network]\nloopback = 'private'\n");
    assert_eq!(own.private_loopback, Some(true));
    assert!(own.domains[0].is_offline() && own.domains[0].bind.is_empty());
    assert!(
        own.cil.contains("(udp_socket (create") && !own.cil.contains("self (unix_dgram_socket")
    );
    let beside = compile("[network]\nloopback = 'private'\nconnect = ['127.0.0.1:9']\n");
    assert!(beside.is_err(), "it would share the loopback of the machine");
    assert!(compile("[network]\nloopback = 'mine'\n").is_err());
    assert_eq!(good("[network]\nloopback = 'none'\n").private_loopback, None);
    let extends =
        |text: &str| good(&format!("extends = 'workspace'\n[network]\n{text}\n")).private_loopback;
    assert_eq!(extends(""), Some(true));
    assert_eq!(extends("connect = ['192.0.2.1:9']"), None, "it shares the network that it reaches");
    assert_eq!(extends("inherit = false"), None);
}

/// A file has one label for all domains, and the longest text before a glob gives it.
#[test]
fn a_glob_that_restricts_holds_below_whatever_else_labels_files() {
    let base = "[files]\nwrite = ['/w']\nhide = ['/w/**/.env']\nreadonly = ['/w/**/*.lock']\n";
    for more in [
        "[domains.git]\nexec = ['/w/src/**']\n",
        "[domains.git]\nexec = ['/w/src']\n",
        "[network]\nconnect = ['unix:/w/src/**']\n",
        "[domains.git]\nexec = ['/git']\nfiles.read = ['/w/src']\n",
        "[domains.git]\nexec = ['/git']\ninherit = false\nfiles.read = ['/w/src']\n",
        "[domains.git]\nexec = ['/git']\ninherit = false\nfiles.hide = ['/w/src/**/x*']\n",
    ] {
        let compiled = compile(&format!("{base}{more}")).unwrap();
        for (path, want) in [
            ("/w/src/.env", "hidden"),
            ("/w/src/xdir/.env", "hidden"),
            ("/w/src/a.lock", "r"),
            ("/w/src/deep/a.lock", "r"),
            ("/w/src/deep/a", "rw"),
        ] {
            assert_eq!(letters(rights(&compiled, "main", path)), want, "{path} beside {more}");
        }
    }
    // With text before a glob in one component, and where a part of another glob names it.
    for more in ["'/w/pkg-*/**'", "'/w/pkg-a'"] {
        let text = format!(
            "[files]\nwrite = [{more}]\nread = ['/w/*/.env']\nhide = ['/w/**/.env']\n\
             readonly = ['/w/**/*.lock']\n"
        );
        let compiled = compile(&text).unwrap();
        for (path, want) in [
            ("/w/pkg-a/.env", "hidden"),
            ("/w/pkg-a/deep/.env", "hidden"),
            ("/w/pkg-a/a.lock", "r"),
            ("/w/pkg-a/a", "rw"),
        ] {
            assert_eq!(letters(rights(&compiled, "main", path)), want, "{path} below {more}");
        }
    }
}

//! What the security server decides under the policy of a profile.

mod common;

use common::{compile, compile_source};
use flask::{Class, Explanation, InitialSid, Question, SecurityServer as _, Sid};
use profile::{Compiled, Source};
use security_server::Server;

/// A security server with the policy of a profile.
struct Decider {
    server: Server,
    compiled: Compiled,
}

impl Decider {
    fn new(compiled: Compiled) -> Self {
        let server = Server::from_cil(&[("profile.cil", compiled.cil.as_str())]);
        Self { server: server.unwrap_or_else(|e| panic!("{e:?}\n{}", compiled.cil)), compiled }
    }

    /// The SID of a process or object of that type.
    fn sid(&self, type_name: &str) -> Sid {
        let process = self.compiled.domains.iter().any(|domain| domain.type_name == type_name);
        let role = if process { "dewar_r" } else { "object_r" };
        let with =
            |range: &str| self.server.context_to_sid(&format!("dewar_u:{role}:{type_name}{range}"));
        with("").or_else(|_| with(":s0")).unwrap_or_else(|e| panic!("{type_name}: {e}"))
    }

    fn question(&self, source: &str, target: &str, class: &str) -> Question {
        let tclass = Class::by_name(class).unwrap();
        Question { ssid: self.sid(source), tsid: self.sid(target), tclass }
    }

    /// Whether `source` may use `permission` of `class` on `target`.
    fn allows(&self, source: &str, target: &str, class: &str, permission: &str) -> bool {
        let question = self.question(source, target, class);
        let wanted = question.tclass.permission(permission).unwrap();
        self.server.compute_av(question).unwrap().allowed.contains(wanted)
    }

    /// The type of what `source` makes of `target`.
    fn created(&self, source: &str, target: &str, class: &str) -> String {
        let sid = self.server.compute_create(self.question(source, target, class), None).unwrap();
        let context = self.server.sid_to_context(sid).unwrap();
        context.split(':').nth(2).unwrap().to_owned()
    }

    fn explain(&self, source: &str, target: &str, class: &str, permission: &str) -> Explanation {
        let question = self.question(source, target, class);
        let wanted = question.tclass.permission(permission).unwrap();
        self.server.explain(question, wanted).unwrap()
    }
}

fn decide(text: &str) -> Decider {
    Decider::new(compile(text).unwrap_or_else(|e| panic!("{e:?}")))
}

#[test]
fn a_run_starts_in_main_and_unruled_files_only_exist() {
    let decider = decide("");
    assert_eq!(decider.sid("main_t"), InitialSid::Init.into());
    assert_eq!(decider.sid("default_t"), InitialSid::File.into());
    for (class, permission, want) in [
        ("file", "getattr", true),
        ("dir", "search", true),
        ("file", "read", false),
        ("file", "open", false),
        ("dir", "read", false),
        ("blk_file", "open", false),
    ] {
        assert_eq!(decider.allows("main_t", "default_t", class, permission), want, "{permission}");
    }
}

#[test]
fn lists_grant_what_they_say_and_no_more() {
    let decider = decide(
        "[files]\nread = ['/r']\nwrite = ['/w']\nexec = ['/x']\ndeny = ['/d']\nhide = ['/h']\n",
    );
    for (target, class, permission, want) in [
        ("r_t", "file", "read", true),
        ("r_t", "file", "write", false),
        ("r_t", "file", "execute", false),
        ("r_t", "dir", "watch", true),
        ("w_t", "file", "create", true),
        ("w_t", "dir", "rmdir", true),
        ("w_t", "sock_file", "create", true),
        ("w_t", "chr_file", "write", true),
        ("w_t", "chr_file", "unlink", false),
        ("w_t", "chr_file", "create", false),
        ("w_t", "blk_file", "read", false),
        ("w_t", "file", "execute", false),
        ("x_t", "file", "execute_no_trans", true),
        ("x_t", "file", "write", false),
        ("d_t", "file", "getattr", true),
        ("d_t", "file", "read", false),
        ("h_t", "file", "getattr", false),
        ("h_t", "dir", "search", false),
    ] {
        assert_eq!(
            decider.allows("main_t", target, class, permission),
            want,
            "{target} {permission}"
        );
    }
}

#[test]
fn what_the_base_domain_has_alone_no_other_domain_takes_over() {
    let decider = decide(
        "[files]\nread = ['/all']\n[domains.main.files]\nwrite = ['/own']\nhide = ['/h']\n\
         [domains.git]\nexec = ['/usr/bin/git']\nfiles.read = ['/h']\n",
    );
    for (source, target, permission, want) in [
        ("main_t", "all_t", "read", true),
        ("git_t", "all_t", "read", true),
        ("main_t", "own_t", "write", true),
        ("git_t", "own_t", "write", false),
        ("git_t", "own_t", "read", false),
        ("main_t", "h_t", "getattr", false),
        ("git_t", "h_t", "read", true),
    ] {
        let found = decider.allows(source, target, "file", permission);
        assert_eq!(found, want, "{source} {target} {permission}");
    }
}

#[test]
fn executing_a_program_of_a_domain_enters_it_and_the_domain_does_not_reach_back() {
    let decider = decide(
        "[files]\nexec = ['/usr']\n[domains.git]\nexec = ['/usr/bin/git']\nnetwork.connect = ['example.org:443']\n",
    );
    assert_eq!(decider.created("main_t", "git_exec_t", "process"), "git_t");
    assert_eq!(decider.created("git_t", "git_exec_t", "process"), "git_t");
    assert_eq!(decider.created("main_t", "usr_t", "process"), "main_t");
    for (source, target, class, permission, want) in [
        ("main_t", "git_t", "process", "transition", true),
        ("main_t", "git_t", "process", "sigkill", true),
        ("main_t", "git_t", "process", "ptrace", false),
        ("git_t", "main_t", "process", "signal", false),
        ("git_t", "main_t", "process", "transition", false),
        ("git_t", "git_exec_t", "file", "entrypoint", true),
        ("main_t", "git_exec_t", "file", "execute", true),
        ("main_t", "git_exec_t", "file", "execute_no_trans", false),
        ("main_t", "usr_t", "file", "execute_no_trans", true),
        ("git_t", "usr_t", "file", "execute_no_trans", true),
        ("git_t", "git_t", "tcp_socket", "create", true),
        ("main_t", "main_t", "tcp_socket", "create", false),
        ("main_t", "main_t", "unix_stream_socket", "connectto", true),
        ("git_t", "main_t", "unix_stream_socket", "connectto", false),
    ] {
        let found = decider.allows(source, target, class, permission);
        assert_eq!(found, want, "{source} {target} {class} {permission}");
    }
}

#[test]
fn an_endpoint_is_reached_only_as_the_pair_that_a_rule_names() {
    let decider = decide(
        "[network]\nconnect = ['10.0.0.0/8:80', '10.1.0.0/16:*', '*:53/udp']\nbind = ['127.0.0.1:8080']\n",
    );
    let endpoint = |node: &str, port: &str| decider.created(node, port, "endpoint");
    for (node, port, permission, want) in [
        ("ip_10_0_0_0_8_node_t", "tcp_80_port_t", "name_connect", true),
        ("ip_10_0_0_0_8_node_t", "tcp_80_port_t", "name_bind", false),
        ("ip_10_0_0_0_8_node_t", "udp_53_port_t", "sendto", true),
        ("ip_10_1_0_0_16_node_t", "tcp_80_port_t", "name_connect", true),
        ("ip_10_1_0_0_16_node_t", "tcp_any_port_t", "name_connect", true),
        ("ip_127_0_0_1_node_t", "tcp_8080_port_t", "name_bind", true),
        ("ip_127_0_0_1_node_t", "tcp_8080_port_t", "name_connect", false),
    ] {
        let pair = endpoint(node, port);
        assert_eq!(decider.allows("main_t", &pair, "endpoint", permission), want, "{node} {port}");
    }
    // Pairs that no rule names have no type of their own.
    for (node, port) in [
        ("ip_10_0_0_0_8_node_t", "tcp_any_port_t"),
        ("any_node_t", "tcp_80_port_t"),
        ("ip_127_0_0_1_node_t", "tcp_80_port_t"),
        ("any_node_t", "port_t"),
        ("node_t", "udp_53_port_t"),
    ] {
        let pair = endpoint(node, port);
        for permission in ["name_connect", "name_bind", "sendto"] {
            assert!(!decider.allows("main_t", &pair, "endpoint", permission), "{node} {port}");
        }
    }
}

#[test]
fn the_explanation_of_a_grant_leads_back_to_the_profile() {
    let decider = decide("[files]\nread = [\n  '/usr',\n]\n");
    let explanation = decider.explain("main_t", "usr_t", "file", "read");
    let place = explanation.rules.iter().find_map(|rule| rule.split("profile.cil:").nth(1));
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let line: usize = digits(place.unwrap_or_else(|| panic!("{explanation:?}"))).parse().unwrap();
    assert_eq!(decider.compiled.origin(line).unwrap().text, "'/usr'");
}

#[test]
fn labelling_rules_come_back_in_the_order_of_the_profile() {
    for (name, _) in profile::shipped() {
        let decider = Decider::new(compile_source(&Source::Shipped((*name).into())).unwrap());
        let rules = decider.server.label_rules().unwrap();
        let mut files: Vec<&str> = rules.files.iter().map(|rule| rule.path.as_str()).collect();
        // What leads elsewhere has a rule for each kind of file.
        files.dedup();
        let paths: Vec<&str> = decider.compiled.paths.iter().map(|p| p.regex.as_str()).collect();
        assert_eq!(files, paths, "{name}");
    }
}

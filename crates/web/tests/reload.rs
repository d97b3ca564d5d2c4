//! What a reload never opens: content that a filter keeps back.

mod common;

use common::{Site, get, shipped};
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};
use web::{Config, PluginConfig};

const JSON: &str = "application/json";

fn for_json(config: PluginConfig) -> PluginConfig {
    PluginConfig { media: Some(JSON.to_owned()), ..config }
}

/// A site with a file that is shown without its password.
fn site() -> Site {
    let filter = shipped("json-filter.e", for_json(PluginConfig::default()));
    let site = Site::new().plugin("filter", filter);
    fs::write(site.root().join("a.json"), r#"{"a":1,"password":"SECRET"}"#).unwrap();
    site
}

/// The same configuration, in which the filter is called `name` and has another text.
fn renamed(site: &Site, name: &str, text: &str) -> Config {
    let mut config = site.config.clone();
    let filter = config.plugins.remove("filter").unwrap();
    let file = site.directory.path().join(format!("{name}.e"));
    fs::write(&file, text).unwrap();
    config.plugins.insert(name.to_owned(), PluginConfig { file, ..filter });
    config
}

#[test]
fn a_reload_whose_plugin_does_not_compile_leaves_root_policy_and_plugins_as_they_were() {
    let site = site();
    let server = site.start();
    let address = server.addresses()[0];
    let mut wrong = renamed(&site, "other", "long handle(");
    wrong.root = site.directory.path().join("second");
    fs::create_dir(&wrong.root).unwrap();
    fs::write(wrong.root.join("a.json"), r#"{"b":2,"password":"SECRET"}"#).unwrap();
    let right = wrong.clone();
    let error = server.reload(wrong).expect_err("it does not compile").to_string();
    assert!(error.contains("/other.e`: "), "{error}");
    assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
    let right = Config { plugins: site.config.plugins.clone(), ..right };
    assert_eq!(server.reload(right).unwrap(), Vec::<String>::new());
    assert_eq!(get(address, "/a.json").text(), r#"{"b":2}"#);
    server.end();
}

#[test]
fn a_filter_that_gets_another_name_filters_every_answer_meanwhile() {
    let site = site();
    let server = site.start();
    let address = server.addresses()[0];
    // It takes long to compile.
    let mut text = fs::read_to_string(&site.config.plugins["filter"].file).unwrap();
    for at in 0..300 {
        text += &format!(
            "long f{at}(long a, long b) {{ long s = 0; for (long i = 0; i < a; i++) {{ s += i * b; \
             if (s > {at}) s ^= b; }} return s; }}\n"
        );
    }
    let config = renamed(&site, "other", &text);
    let over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut asked = 0;
                    while !over.load(Relaxed) {
                        let reply = get(address, "/a.json");
                        assert_eq!((reply.status, &*reply.text()), (200, r#"{"a":1}"#));
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        assert_eq!(server.reload(config).unwrap(), Vec::<String>::new());
        assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
        over.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum::<u32>()
    });
    assert!(asked > 0);
    server.end();
}

#[test]
fn a_label_and_a_target_that_come_with_a_plugin_s_new_policy_are_its_own() {
    let site = site();
    let server = site.start();
    let address = server.addresses()[0];
    let policy = site.directory.path().join("site.cil");
    let rules = "(type narrow_t) (roletype dewar_r narrow_t)\n\
        (allow host_t narrow_t (plugin (load_native call)))\n\
        (allow narrow_t self (plugin (read_request write_reply log)))\n\
        (allow narrow_t client_t (request (read reply)))\n\
        (allow narrow_t content_t (file (read)))";
    fs::write(&policy, rules).unwrap();
    let mut config = site.config.clone();
    let filter = config.plugins.get_mut("filter").unwrap();
    filter.label = Some("dewar_u:dewar_r:narrow_t".to_owned());
    filter.target = Some("native".to_owned());
    let denied = server.reload(config.clone()).expect_err("there is no such label").to_string();
    assert!(denied.contains("narrow_t"), "{denied}");
    assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
    config.policy = vec![policy];
    assert_eq!(server.reload(config).unwrap(), Vec::<String>::new());
    assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
    assert_eq!(server.reload(site.config.clone()).unwrap(), Vec::<String>::new());
    assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
    server.end();
}

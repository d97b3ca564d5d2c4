//! Plugins that keep something back, or add something, whatever path leads to a file.

mod common;

use common::{Site, ask, get, raw, route, shipped};
use std::fs;
use web::{Kind, PluginConfig};

const JSON: &str = "application/json";

#[test]
fn no_route_and_no_preference_leads_past_a_filter_by_type() {
    let copy = "long handle(const char *in, long n, char *out, long room) {
        for (long i = 0; i < n; i++) out[i] = in[i]; return n; }";
    let for_json = |config: PluginConfig| PluginConfig { media: Some(JSON.to_owned()), ..config };
    let preferred = PluginConfig {
        gives: Some("text/html".to_owned()),
        negotiate: true,
        ..PluginConfig::default()
    };
    let mut site = Site::new()
        .text("another", copy, for_json(preferred))
        .plugin("filter", shipped("json-filter.e", for_json(PluginConfig::default())))
        .plugin("rot13", shipped("rot13.wat", route("/rot13/")))
        .text("copy", copy, route("/copy/"));
    fs::create_dir(site.root().join("data")).unwrap();
    for name in ["a.json", "data/index.json"] {
        fs::write(site.root().join(name), r#"{"a":1,"password":"SECRET"}"#).unwrap();
    }
    fs::write(site.root().join("hello.txt"), "Hello").unwrap();
    site.config.index = vec!["index.json".to_owned()];
    site.config.status = Some("127.0.0.1:0".to_owned());
    let server = site.start();
    let address = server.addresses()[0];
    let filtered = r#"{"a":1}"#;
    assert_eq!(get(address, "/a.json").text(), filtered);
    let html = ask(address, "GET", "/a.json", "Accept: text/html\r\n");
    assert_eq!((html.text().as_str(), html.field("vary")), (filtered, None));
    for path in ["/rot13/a.json", "/copy/a.json", "/copy//a.json", "/copy/data/", "/rot13/data/"] {
        let reply = get(address, path);
        assert_eq!((reply.status, &*reply.text()), (403, "403 Forbidden\n"), "{path}");
    }
    assert_eq!(get(address, "/rot13/hello.txt").text(), "Uryyb");
    let status = raw(server.status().unwrap(), b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let why =
        "plugin copy on GET /copy/a.json: `filter` is for everything of type application/json";
    let status = String::from_utf8_lossy(&status).into_owned();
    assert!(status.contains(why), "{status}");
    // Without the filter, that is what they are there for.
    let mut config = site.config.clone();
    config.plugins.remove("filter");
    assert_eq!(server.reload(config).unwrap(), Vec::<String>::new());
    assert!(get(address, "/copy/a.json").text().contains("SECRET"));
    let html = ask(address, "GET", "/a.json", "Accept: text/html\r\n");
    assert_eq!(html.field("content-type").as_deref(), Some("text/html"));
    assert_eq!(html.field("vary").as_deref(), Some("Accept"));
    server.end();
}

#[test]
fn a_plugin_for_heads_sees_those_of_files_that_lie_beneath_its_route_whatever_leads_there() {
    let heads = PluginConfig { kind: Kind::Headers, ..route("/private/") };
    let mut site = Site::new()
        .plugin("headers", shipped("headers.e", heads))
        .plugin("rot13", shipped("rot13.wat", route("/rot13/")));
    site.config.list = true;
    fs::create_dir_all(site.root().join("private/inner")).unwrap();
    fs::write(site.root().join("private/p.txt"), "Hello").unwrap();
    fs::write(site.root().join("private/inner/index.html"), "Hello").unwrap();
    fs::write(site.root().join("hello.txt"), "Hello").unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    for (path, want) in [
        ("/private/p.txt", "Hello"),
        ("/rot13/private/p.txt", "Uryyb"),
        ("/rot13//private/./p.txt", "Uryyb"),
        ("/rot13/private/inner/", "Uryyb"),
        ("/rot13/private/", "p.txt"),
    ] {
        // Twice: as it was found, and as it is remembered.
        for _ in 0..2 {
            let reply = get(address, path);
            assert_eq!(reply.status, 200, "{path}");
            assert!(reply.text().contains(want), "{path}: {}", reply.text());
            assert_eq!(reply.field("x-frame-options").as_deref(), Some("DENY"), "{path}");
        }
    }
    for path in ["/hello.txt", "/rot13/hello.txt"] {
        assert_eq!(get(address, path).field("x-frame-options"), None, "{path}");
    }
    server.end();
}

//! Go: variables, the file of `go env -w`, and the distribution's. `direct` names no host: it is
//! wherever a module lies.

use crate::asked::ToolRegistries;
use crate::roots::ConfigRoots;
use std::collections::BTreeMap;

const PROXY: &str = "https://proxy.golang.org,direct";
const SUMS: &str = "sum.golang.org";

pub(crate) fn ask(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let mut files = vec![roots.system("/usr/lib/go/go.env"), roots.system("/usr/local/go/go.env")];
    if let Some(root) = roots.variable("GOROOT") {
        files = vec![std::path::Path::new(root).join("go.env")];
    }
    match roots.variable("GOENV") {
        Some("off") => {}
        Some(path) => files.push(path.into()),
        None => files.push(roots.directory("XDG_CONFIG_HOME", ".config").join("go/env")),
    }
    for path in files {
        let text = asked.read(roots, &path).unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            if let Some((key, value)) = line.split_once('=') {
                settings.insert(key.trim().to_owned(), value.trim().trim_matches('"').to_owned());
            }
        }
    }
    let setting = |name: &str, default: &str| {
        let told = roots.variable(name).map(str::to_owned);
        let told = told.or_else(|| settings.get(name).cloned()).filter(|value| !value.is_empty());
        told.unwrap_or_else(|| default.to_owned())
    };
    for proxy in setting("GOPROXY", PROXY).split([',', '|']) {
        match proxy.trim() {
            "direct" | "off" | "" => {}
            url if url.contains("://") => asked.add(url),
            host => asked.add(&format!("https://{host}")),
        }
    }
    let sums = setting("GOSUMDB", SUMS);
    if sums != "off" && setting("GOFLAGS", "") != "-insecure" {
        // `NAME[+KEY] [URL]`
        let mut words = sums.split_whitespace();
        let name = words.next().unwrap_or(SUMS).split('+').next().unwrap_or(SUMS).to_owned();
        match words.next() {
            Some(url) => asked.add(url),
            None if name == "sum.golang.google.cn" || name.contains('.') => {
                asked.add(&format!("https://{name}"));
            }
            None => {}
        }
    }
}

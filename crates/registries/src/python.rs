//! pip and uv: files of the machine and the user, and variables over both. That of a virtual
//! environment, which lies in the project, does not count.

use crate::asked::ToolRegistries;
use crate::ini;
use crate::roots::ConfigRoots;
use toml::{Table, Value};

const DEFAULT: &str = "https://pypi.org/simple";
/// Where the index of pypi.org says that the files are.
const FILES: &str = "https://files.pythonhosted.org/";

/// What was said last of each, from the machine's word to the user's.
#[derive(Default)]
struct Said {
    index: Option<String>,
    extra: Vec<String>,
    links: Vec<String>,
    proxy: Option<String>,
}

impl Said {
    fn add_to(&self, asked: &mut ToolRegistries) {
        let index = self.index.as_deref().unwrap_or(DEFAULT);
        for url in
            std::iter::once(index).chain(self.extra.iter().chain(&self.links).map(String::as_str))
        {
            asked.add(url);
            let host = crate::Endpoint::of_url(url).map(|endpoint| endpoint.host);
            if host.as_deref() == Some("pypi.org") {
                asked.add(FILES);
            }
        }
        if let Some(proxy) = &self.proxy {
            asked.add_proxy(proxy);
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn pip(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    let mut said = Said::default();
    let mut files = vec![roots.system("/etc/xdg/pip/pip.conf"), roots.system("/etc/pip.conf")];
    match roots.variable("PIP_CONFIG_FILE") {
        Some("/dev/null") => files.clear(),
        Some(file) => files.extend([home(roots, ".pip/pip.conf"), user(roots), file.into()]),
        None => files.extend([home(roots, ".pip/pip.conf"), user(roots)]),
    }
    for path in files {
        let text = asked.read(roots, &path).unwrap_or_default();
        let pairs = ini::pairs(&text, true);
        for wanted in ["global", "download", "install"] {
            for (_, key, value) in pairs.iter().filter(|(section, ..)| section == wanted) {
                match key.replace('_', "-").as_str() {
                    "index-url" => said.index = words(value).pop(),
                    "extra-index-url" => said.extra = words(value),
                    "find-links" => said.links = words(value),
                    "proxy" => said.proxy = words(value).pop(),
                    _ => {}
                }
            }
        }
    }
    tell(roots, &said, asked, ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"]);
    let take = |name: &str| roots.variable(name).map(words);
    said.index = take("PIP_INDEX_URL").and_then(|mut urls| urls.pop()).or(said.index);
    said.extra = take("PIP_EXTRA_INDEX_URL").unwrap_or(said.extra);
    said.links = take("PIP_FIND_LINKS").unwrap_or(said.links);
    said.proxy = roots.variable("PIP_PROXY").map(str::to_owned).or(said.proxy);
    said.add_to(asked);
}

fn home(roots: &ConfigRoots<'_>, path: &str) -> std::path::PathBuf {
    roots.home.join(path)
}

fn user(roots: &ConfigRoots<'_>) -> std::path::PathBuf {
    roots.directory("XDG_CONFIG_HOME", ".config").join("pip/pip.conf")
}

/// Has the tool told what files say that it may not see.
fn tell(
    roots: &ConfigRoots<'_>,
    said: &Said,
    asked: &mut ToolRegistries,
    [index, extra]: [&str; 2],
) {
    if let Some(url) = said.index.as_ref().filter(|_| roots.variable(index).is_none()) {
        asked.tell(index, url);
    }
    if let [url] = &said.extra[..]
        && roots.variable(extra).is_none()
    {
        asked.tell(extra, url);
    }
}

pub(crate) fn uv(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    let mut said = Said::default();
    let mut files = vec![roots.system("/etc/uv/uv.toml")];
    files.push(roots.directory("XDG_CONFIG_HOME", ".config").join("uv/uv.toml"));
    if let Some(file) = roots.variable("UV_CONFIG_FILE") {
        files = vec![file.into()];
    }
    for path in files {
        let table = asked.toml(roots, &path).unwrap_or_default();
        settings(&table, &mut said);
        if let Some(pip) = table.get("pip").and_then(Value::as_table) {
            settings(pip, &mut said);
        }
    }
    tell(roots, &said, asked, ["UV_DEFAULT_INDEX", "UV_INDEX"]);
    let first = |names: [&str; 2]| names.into_iter().find_map(|name| roots.variable(name));
    // `NAME=URL`, or the URL.
    let urls = |text: &str| -> Vec<String> {
        let bare = |word: &str| match word.split_once('=') {
            Some((name, url)) if !name.contains(':') => url.to_owned(),
            _ => word.to_owned(),
        };
        text.split_whitespace().map(bare).collect()
    };
    if let Some(index) = first(["UV_DEFAULT_INDEX", "UV_INDEX_URL"]) {
        said.index = urls(index).pop();
    }
    if let Some(extra) = first(["UV_INDEX", "UV_EXTRA_INDEX_URL"]) {
        said.extra = urls(extra);
    }
    if let Some(links) = roots.variable("UV_FIND_LINKS") {
        said.links = links.split([',', ' ']).map(str::to_owned).collect();
    }
    said.add_to(asked);
}

fn settings(table: &Table, said: &mut Said) {
    let strings = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    if let Some(index) = table.get("index-url").and_then(Value::as_str) {
        said.index = Some(index.to_owned());
    }
    if let Some(extra) = table.get("extra-index-url") {
        said.extra = strings(extra);
    }
    if let Some(links) = table.get("find-links") {
        said.links = strings(links);
    }
    for index in table.get("index").and_then(Value::as_array).into_iter().flatten() {
        let Some(url) = index.get("url").and_then(Value::as_str) else { continue };
        match index.get("default").and_then(Value::as_bool) {
            Some(true) => said.index = Some(url.to_owned()),
            _ => said.extra.push(url.to_owned()),
        }
    }
}

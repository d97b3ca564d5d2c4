//! Maven and Gradle: `settings.xml`, `gradle.properties`. What `pom.xml` and build files name does
//! not count.

use crate::asked::ToolRegistries;
use crate::roots::ConfigRoots;
use roxmltree::{Document, Node};
use std::path::Path;

const CENTRAL: &str = "https://repo.maven.apache.org/maven2";

/// Where Gradle gets plugins, and its wrapper Gradle itself.
const GRADLE: [&str; 4] = [
    "https://plugins.gradle.org/m2/",
    "https://plugins-artifacts.gradle.org/",
    "https://services.gradle.org/",
    "https://downloads.gradle.org/",
];

pub(crate) fn maven(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    let mut files = vec![roots.system("/etc/maven/settings.xml")];
    for variable in ["MAVEN_HOME", "M2_HOME"] {
        files
            .extend(roots.variable(variable).map(|home| Path::new(home).join("conf/settings.xml")));
    }
    files.push(roots.home.join(".m2/settings.xml"));
    let mut is_mirrored = false;
    for path in files {
        let Some(text) = asked.read(roots, &path) else { continue };
        match Document::parse(&text) {
            Ok(document) => is_mirrored |= settings(&document, asked),
            Err(error) => asked.fail(&path, &error.to_string()),
        }
    }
    if !is_mirrored {
        asked.add(CENTRAL);
    }
}

/// Adds what a `settings.xml` names; whether a mirror stands for the central repository.
fn settings(document: &Document<'_>, asked: &mut ToolRegistries) -> bool {
    // Whatever the namespace, which many files leave out.
    let named = |name: &'static str| {
        document.descendants().filter(move |node| node.tag_name().name() == name)
    };
    let mut is_mirrored = false;
    for mirror in named("mirror") {
        let of = child(mirror, "mirrorOf").unwrap_or_default();
        if let Some(url) = child(mirror, "url") {
            // The one that stands in Maven's own settings blocks plain HTTP, and is no host.
            asked.add(url);
            is_mirrored |= is_of_central(of)
                && crate::Endpoint::of_url(url).is_some_and(|e| e.host != "0.0.0.0");
        }
    }
    for repository in named("repository").chain(named("pluginRepository")) {
        child(repository, "url").into_iter().for_each(|url| asked.add(url));
    }
    asked.endpoints.retain(|endpoint| endpoint.host != "0.0.0.0");
    for proxy in named("proxy") {
        if child(proxy, "active") != Some("false")
            && let Some(host) = child(proxy, "host")
        {
            asked.add_proxy(&format!("{host}:{}", child(proxy, "port").unwrap_or("8080")));
        }
    }
    is_mirrored
}

fn is_of_central(of: &str) -> bool {
    let mut words = of.split(',').map(str::trim);
    let excluded = words.clone().any(|word| word == "!central");
    !excluded && words.any(|word| ["*", "external:*", "central"].contains(&word))
}

fn child<'a>(node: Node<'a, '_>, name: &'static str) -> Option<&'a str> {
    let found = node.children().find(|child| child.tag_name().name() == name)?;
    found.text().map(str::trim).filter(|text| !text.is_empty())
}

pub(crate) fn gradle(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    asked.add(CENTRAL);
    GRADLE.iter().for_each(|url| asked.add(url));
    let home = roots.directory("GRADLE_USER_HOME", ".gradle");
    let text = asked.read(roots, &home.join("gradle.properties")).unwrap_or_default();
    let value = |key: &str| {
        let of = |line: &str| {
            let (name, value) = line.split_once(['=', ':'])?;
            (name.trim() == key).then(|| value.trim().to_owned())
        };
        let lines = text.lines().rev().filter(|line| !line.trim_start().starts_with(['#', '!']));
        lines.filter_map(of).next()
    };
    for scheme in ["https", "http"] {
        if let Some(host) = value(&format!("systemProp.{scheme}.proxyHost")) {
            let port = value(&format!("systemProp.{scheme}.proxyPort")).unwrap_or("80".into());
            asked.add_proxy(&format!("{host}:{port}"));
        }
    }
}

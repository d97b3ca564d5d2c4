//! Which registries each tool asks, by made-up homes and machines.

use proptest::prelude::*;
use registries::{ConfigRoots, Tool, ToolRegistries};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A machine with a home and a project.
struct Machine {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { directory: TempDir::new().unwrap(), variables: Vec::new() };
        for roots in ["home", "home/project", "root"] {
            fs::create_dir_all(machine.path(roots)).unwrap();
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    /// With a file; paths start with `home/`, `home/project/` or `root/`.
    fn file(self, path: &str, text: &str) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn ask(&self, tool: Tool) -> ToolRegistries {
        let (home, root) = (self.path("home"), self.path("root"));
        let workspace = self.path("home/project");
        let variables = &self.variables;
        let (home, workspace, root) = (&*home, &*workspace, &*root);
        let paths = &realpath::RealPaths::new();
        tool.asked(&ConfigRoots { home, workspace, root, variables, paths })
    }

    fn hosts(&self, tool: Tool) -> String {
        let asked = self.ask(tool);
        assert_eq!(asked.unreadable, None);
        let texts: Vec<String> = asked.endpoints.iter().map(ToString::to_string).collect();
        texts.join(" ")
    }
}

#[test]
fn without_configuration_each_tool_asks_its_public_registries() {
    let machine = Machine::new();
    for (tool, want) in [
        (Tool::Cargo, "index.crates.io:443 static.crates.io:443"),
        (Tool::Go, "proxy.golang.org:443 sum.golang.org:443"),
        (Tool::Maven, "repo.maven.apache.org:443"),
        (Tool::Npm, "registry.npmjs.org:443"),
        (Tool::Pnpm, "registry.npmjs.org:443"),
        (Tool::Pip, "files.pythonhosted.org:443 pypi.org:443"),
        (Tool::Uv, "files.pythonhosted.org:443 pypi.org:443"),
    ] {
        assert_eq!(machine.hosts(tool), want, "{tool:?}");
    }
    assert!(machine.hosts(Tool::Gradle).contains("plugins.gradle.org:443"));
}

#[test]
fn npm_asks_what_npmrc_says_and_scopes_beside_it() {
    let machine = Machine::new()
        .file("root/etc/npmrc", "registry=https://machine.example.org/\n")
        .file(
            "home/.npmrc",
            "; mine\nregistry = https://npm.example.org/x/\n@a:registry=https://a.example.org:8443/\n\
             //npm.example.org/:_authToken=npm_secret\nhttps-proxy=http://proxy.example.org:3128\n",
        );
    let want = "a.example.org:8443 npm.example.org:443 proxy.example.org:3128";
    assert_eq!(machine.hosts(Tool::Npm), want);
    let asked = machine.ask(Tool::Npm);
    let told = |key: &str, url: &str| (key.to_owned(), url.to_owned());
    assert_eq!(
        asked.variables,
        [
            told("npm_config_@a:registry", "https://a.example.org:8443/"),
            told("npm_config_registry", "https://npm.example.org/x/"),
        ]
    );
    assert_eq!(asked.proxies[0].to_string(), "proxy.example.org:3128");
    let machine = machine.variable("NPM_CONFIG_REGISTRY", "http://127.0.0.1:4873/");
    assert_eq!(
        machine.hosts(Tool::Npm),
        format!("127.0.0.1:4873 {}", want.replace("npm.example.org:443 ", ""))
    );
}

#[test]
fn npm_finds_its_files_where_variables_say() {
    let machine = Machine::new().file("home/elsewhere", "registry=https://${WHERE}.example.org/\n");
    let file = machine.path("home/elsewhere").display().to_string();
    let machine = machine.variable("NPM_CONFIG_USERCONFIG", &file).variable("WHERE", "here");
    assert_eq!(machine.hosts(Tool::Npm), "here.example.org:443");
}

#[test]
fn cargo_follows_replacements_and_knows_other_registries() {
    let config = "[source.crates-io]\nreplace-with = 'mirror'\n[source.mirror]\nreplace-with = 'near'\n\
                  [source.near]\nregistry = 'sparse+https://near.example.org/index/'\n\
                  [registries.own]\nindex = 'https://own.example.org/index'\n[http]\nproxy = 'proxy.example.org:1'\n";
    let machine = Machine::new().file("home/.cargo/config.toml", config);
    let want = "near.example.org:443 own.example.org:443 proxy.example.org:1";
    assert_eq!(machine.hosts(Tool::Cargo), want);
    let vendored = "[source.crates-io]\nreplace-with='v'\n[source.v]\ndirectory='/srv/vendor'\n";
    assert_eq!(Machine::new().file("home/.cargo/config.toml", vendored).hosts(Tool::Cargo), "");
    let circle = "[source.crates-io]\nreplace-with='a'\n[source.a]\nreplace-with='crates-io'\n";
    Machine::new().file("home/.cargo/config.toml", circle).hosts(Tool::Cargo);
}

#[test]
fn pip_takes_the_last_word_of_each_and_sections_of_its_commands() {
    let machine = Machine::new()
        .file("root/etc/pip.conf", "[global]\nindex-url = https://machine.example.org/simple\n")
        .file(
            "home/.config/pip/pip.conf",
            "[global]\nindex_url = https://pip.example.org/simple\n[install]\nextra-index-url =\n    \
             https://b.example.org/\n    https://c.example.org/\n[list]\nindex-url = https://no.example.org\n",
        );
    let want = "b.example.org:443 c.example.org:443 pip.example.org:443";
    assert_eq!(machine.hosts(Tool::Pip), want);
    let machine = machine.variable("PIP_INDEX_URL", "https://u:p@env.example.org/simple");
    assert_eq!(machine.hosts(Tool::Pip), want.replace("pip.", "env."));
}

#[test]
fn uv_reads_lists_of_indexes() {
    let text = "[[index]]\nname = 'a'\nurl = 'https://a.example.org/simple'\n[[index]]\nurl = 'https://b.example.org'\ndefault = true\n";
    let machine = Machine::new().file("home/.config/uv/uv.toml", text);
    assert_eq!(machine.hosts(Tool::Uv), "a.example.org:443 b.example.org:443");
    let machine = machine.variable("UV_INDEX", "own=https://c.example.org/simple");
    assert_eq!(machine.hosts(Tool::Uv), "b.example.org:443 c.example.org:443");
}

#[test]
fn go_reads_its_list_of_proxies_and_its_file() {
    let machine = Machine::new()
        .file(
            "root/usr/local/go/go.env",
            "# x\nGOPROXY=https://dist.example.org,direct\nGOSUMDB=sum.golang.org\n",
        )
        .file(
            "home/.config/go/env",
            "GOPROXY=https://go.example.org|https://b.example.org,direct\n",
        );
    assert_eq!(machine.hosts(Tool::Go), "b.example.org:443 go.example.org:443 sum.golang.org:443");
    let machine = machine.variable("GOPROXY", "off").variable("GOSUMDB", "off");
    assert_eq!(machine.hosts(Tool::Go), "");
}

#[test]
fn maven_asks_mirrors_instead_of_the_central_repository() {
    let settings = "<settings xmlns='http://maven.apache.org/SETTINGS/1.0.0'><mirrors><mirror><id>m</id>\
        <mirrorOf>*,!own</mirrorOf><url>https://m.example.org/maven</url></mirror></mirrors><proxies><proxy>\
        <active>true</active><host>proxy.example.org</host><port>8080</port></proxy></proxies><profiles><profile>\
        <repositories><repository><id>own</id><url>https://own.example.org/r</url></repository></repositories>\
        </profile></profiles></settings>";
    let machine = Machine::new().file("home/.m2/settings.xml", settings);
    assert_eq!(
        machine.hosts(Tool::Maven),
        "m.example.org:443 own.example.org:443 proxy.example.org:8080"
    );
    let part = settings.replace("*,!own", "*,!central");
    let machine = Machine::new().file("home/.m2/settings.xml", &part);
    assert!(machine.hosts(Tool::Maven).contains("repo.maven.apache.org:443"));
}

#[test]
fn proxies_of_the_environment_count_for_every_tool() {
    for tool in Tool::ALL {
        let machine = Machine::new().variable("HTTPS_PROXY", "http://me:pw@proxy.example.org:3128");
        assert!(machine.hosts(tool).contains("proxy.example.org:3128"), "{tool:?}");
    }
}

#[test]
fn what_cannot_be_read_names_no_host_at_all() {
    for (tool, path, text) in [
        (Tool::Cargo, "home/.cargo/config.toml", "[source"),
        (Tool::Maven, "home/.m2/settings.xml", "<settings><mirrors>"),
        (Tool::Uv, "home/.config/uv/uv.toml", "= 1"),
    ] {
        let machine = Machine::new().file(path, text).variable("HTTPS_PROXY", "http://p:1");
        let asked = machine.ask(tool);
        let why = asked.unreadable.expect(path);
        assert!(why.to_string().contains(path.trim_start_matches("home/")), "{why}");
        assert!(asked.endpoints.is_empty() && asked.proxies.is_empty());
    }
    let binary = Machine::new().file("home/.npmrc", "");
    fs::write(binary.path("home/.npmrc"), [0xff, 0xfe]).unwrap();
    assert!(binary.ask(Tool::Npm).unreadable.is_some());
}

/// Every file by which a project, or a link, could speak.
const OF_PROJECT: [(&str, &str); 9] = [
    (
        ".npmrc",
        "registry=https://evil.example.org/\n@a:registry=https://evil.example.org/\nproxy=http://evil.example.org:1\n",
    ),
    (
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with='x'\n[source.x]\nregistry='https://evil.example.org'\n[registries.y]\nindex='https://evil.example.org'\n[http]\nproxy='evil.example.org:1'\n",
    ),
    (".cargo/config", "[registries.y]\nindex='https://evil.example.org'\n"),
    ("pip.conf", "[global]\nindex-url=https://evil.example.org/\n"),
    (".venv/pip.conf", "[global]\nindex-url=https://evil.example.org/\n"),
    ("uv.toml", "index-url='https://evil.example.org'\n"),
    ("go.env", "GOPROXY=https://evil.example.org\n"),
    (
        ".mvn/settings.xml",
        "<settings><mirrors><mirror><mirrorOf>*</mirrorOf><url>https://evil.example.org</url></mirror></mirrors></settings>",
    ),
    ("gradle.properties", "systemProp.https.proxyHost=evil.example.org\n"),
];

/// Files of the user, by which a tool asks.
const OF_USER: [&str; 8] = [
    ".npmrc",
    ".cargo/config.toml",
    ".cargo/config",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/go/env",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
];

const VARIABLES: [&str; 9] = [
    "NPM_CONFIG_USERCONFIG",
    "npm_config_globalconfig",
    "CARGO_HOME",
    "PIP_CONFIG_FILE",
    "UV_CONFIG_FILE",
    "GOENV",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "XDG_CONFIG_HOME",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the project holds, whatever of the user's files are links into it, and wherever
    /// variables lead.
    #[test]
    fn a_projects_file_never_widens(
        files in proptest::collection::vec(0..OF_PROJECT.len(), 0..9),
        links in proptest::collection::vec((0..OF_USER.len(), 0..OF_PROJECT.len()), 0..4),
        named in proptest::collection::vec((0..VARIABLES.len(), 0..OF_PROJECT.len(), any::<bool>()), 0..4),
    ) {
        let mut machine = Machine::new();
        for index in files {
            let (path, text) = OF_PROJECT[index];
            machine = machine.file(&format!("home/project/{path}"), text);
        }
        for (user, project) in links {
            let link = machine.path(&format!("home/{}", OF_USER[user]));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let target = machine.path(&format!("home/project/{}", OF_PROJECT[project].0));
            let _ = std::os::unix::fs::symlink(target, link);
        }
        for (name, project, whole) in named {
            let file = machine.path(&format!("home/project/{}", OF_PROJECT[project].0));
            let value = if whole { file.as_path() } else { file.parent().unwrap_or(Path::new("/")) };
            machine = machine.variable(VARIABLES[name], &value.display().to_string());
        }
        for tool in Tool::ALL {
            let asked = machine.ask(tool);
            prop_assert!(!asked.endpoints.iter().any(|e| e.host.contains("evil")), "{tool:?} {asked:?}");
            prop_assert!(!asked.variables.iter().any(|(_, url)| url.contains("evil")));
            let workspace = machine.path("home/project");
            prop_assert!(asked.files.iter().all(|file| !file.starts_with(&workspace)), "{asked:?}");
        }
    }
}

#[test]
fn nothing_is_opened_that_is_no_file_or_lies_in_the_project() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let fifo =
        |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Nobody writes into it: to open it would last for ever.
    let machine = Machine::new();
    fifo(&machine.path("home/project/config.toml"));
    let project = machine.path("home/project").display().to_string();
    let machine = machine.variable("CARGO_HOME", &project);
    let asked = machine.ask(Tool::Cargo);
    assert_eq!(asked.unreadable, None);
    assert!(!asked.ignored.is_empty(), "{asked:?}");

    let machine = Machine::new();
    fifo(&machine.path("home/.npmrc"));
    let why = machine.ask(Tool::Npm).unreadable.expect("a pipe").to_string();
    assert!(why.contains("it is no file"), "{why}");
}

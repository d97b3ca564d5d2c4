//! The ready profiles with packages from the real registries: pytest, uv, pnpm, Jupyter, Maven.
//! What cannot be reached is named, and is a failure unless `DEWAR_TEST_WITHOUT` says so.

use crate::account::{Account, Came, accounts, attack, has};
use std::{
    fs,
    net::{TcpListener, TcpStream, ToSocketAddrs as _},
    time::Duration,
};
use test_support::copy_program;

/// Whether a registry is reached. A machine may say by `DEWAR_TEST_WITHOUT=pypi.org` that it does
/// without; else that is a failure.
fn reaches(host: &str) -> bool {
    let without = std::env::var("DEWAR_TEST_WITHOUT").unwrap_or_default();
    if without.split(',').any(|name| name == host) {
        eprintln!("note: without {host}, as DEWAR_TEST_WITHOUT says");
        return false;
    }
    let connect = |address| TcpStream::connect_timeout(&address, Duration::from_secs(20)).is_ok();
    let reached = (host, 443).to_socket_addrs().is_ok_and(|mut all| all.any(connect));
    assert!(
        reached,
        "{host} is not reached, so a profile is not tested with it: set DEWAR_TEST_WITHOUT={host} where there is no network"
    );
    true
}

/// An account whose tools believe the certificates that this machine does.
fn prepared(account: &mut Account) {
    const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
    account.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"] {
        account.set(name, CERTIFICATES);
    }
    account.set("npm_config_update_notifier", "false");
    // Java asks the list of users where a home is. Where control groups are of version 1, it trips
    // over those that it does not see.
    let home = account.path("").display().to_string();
    account.set("JAVA_TOOL_OPTIONS", &format!("-XX:-UseContainerSupport -Duser.home={home}"));
}

/// Runs a command of the account's without Dewar.
fn plainly(account: &Account, words: &[&str]) {
    let output = account.plain(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
}

/// A listener that nothing may reach, and an attack on it.
fn target() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let attack = attack(listener.local_addr().unwrap().port());
    (listener, attack)
}

#[test]
fn pip_install_and_pytest_are_green_in_two_commands() {
    if !reaches("pypi.org") {
        return;
    }
    let (_listener, attack) = target();
    accounts(|mut account| {
        prepared(&mut account);
        let test = "import subprocess\n\ndef test_value():\n    assert 6 * 7 == 42\n";
        account.write("work/test_value.py", test);
        account.write("work/attack.sh", &attack);
        account.give();
        let install = "python3 -m venv .venv && .venv/bin/pip install -q pytest";
        account.green("pip", &["sh", "-c", install]);
        let came = account.green("workspace", &[".venv/bin/pytest", "-q"]);
        assert!(came.out.contains("1 passed"), "{}", came.out);
        account.holds("workspace", &["bash", "attack.sh"]);
    });
}

#[test]
fn uv_installs_and_what_it_installed_reaches_nothing() {
    if !reaches("pypi.org") {
        return;
    }
    let (_listener, attack) = target();
    let mut account = Account::new(None);
    prepared(&mut account);
    account.write("work/attack.sh", &attack);
    plainly(&account, &["python3", "-m", "venv", "../tools"]);
    plainly(&account, &["../tools/bin/pip", "install", "-q", "uv"]);
    fs::create_dir_all(account.path(".local/bin")).unwrap();
    copy_program(&account.path("tools/bin/uv"), &account.path(".local/bin/uv"));
    let uv = account.path(".local/bin/uv").display().to_string();
    let install = format!("{uv} venv -q && {uv} pip install -q pytest");
    let came = account.run("uv", &["sh", "-c", &install]);
    assert_eq!(came.status, 0, "{}{}", came.out, came.err);
    let came = account.green("workspace", &[".venv/bin/pytest", "--version"]);
    assert!(came.out.contains("pytest"), "{}", came.out);
    account.holds("uv", &["bash", "attack.sh"]);
    account.holds("uv", &[&uv, "run", "--no-project", "bash", "attack.sh"]);
}

#[test]
fn pnpm_installs_and_scripts_reach_nothing() {
    if !has("npm") || !reaches("registry.npmjs.org") {
        return;
    }
    let (_listener, attack) = target();
    let mut account = Account::new(None);
    prepared(&mut account);
    let prefix = account.path(".local").display().to_string();
    plainly(&account, &["npm", "install", "--silent", "-g", "--prefix", &prefix, "pnpm@10"]);
    let package = r#"{"name":"p","version":"1.0.0","dependencies":{"is-odd":"3.0.1"},
        "scripts":{"test":"node -e \"require('is-odd')(3)||process.exit(1)\"","attack":"bash attack.sh"}}"#;
    account.write("work/package.json", package);
    account.write("work/attack.sh", &attack);
    let pnpm = account.path(".local/bin/pnpm").display().to_string();
    account.green("pnpm", &[&pnpm, "install"]);
    account.green("pnpm", &[&pnpm, "test"]);
    account.holds("pnpm", &[&pnpm, "run", "attack"]);
}

#[test]
fn jupyter_executes_notebooks_and_their_code_reads_no_secret() {
    if !reaches("pypi.org") {
        return;
    }
    let mut account = Account::new(None);
    prepared(&mut account);
    let cell = "import os\nprint(6 * 7)\ntry: print(open(os.path.expanduser('~/.ssh/id_ed25519')).read())\n\
                except OSError: print('tried')";
    let cell = serde_json::to_string(cell).unwrap();
    let notebook = format!(
        r#"{{"cells":[{{"cell_type":"code","execution_count":null,"metadata":{{}},"outputs":[],"source":{cell}}}],
        "metadata":{{"kernelspec":{{"display_name":"P","language":"python","name":"python3"}}}},"nbformat":4,"nbformat_minor":4}}"#
    );
    account.write("work/n.ipynb", &notebook);
    let install = "python3 -m venv .venv && .venv/bin/pip install -q ipykernel nbconvert";
    account.green("pip", &["sh", "-c", install]);
    let convert = [".venv/bin/jupyter", "nbconvert", "--execute", "--to", "markdown", "--stdout"];
    let came = account.run("jupyter", &[&convert[..], &["n.ipynb"]].concat());
    let Came { status, out, err } = came;
    assert!(status == 0 && out.contains("42") && out.contains("    tried"), "{out}{err}");
    assert!(!out.contains("    planted"), "{out}");
}

/// A class with a test, which reads no secret.
fn java(account: &Account) {
    account.write("work/src/main/java/A.java", "public class A { public static int v = 42; }\n");
    let test = "import org.junit.*;\npublic class ATest { @Test public void t() throws Exception {\n\
                Assert.assertEquals(42, A.v);\n\
                java.io.File key = new java.io.File(System.getenv(\"HOME\") + \"/.ssh/id_ed25519\");\n\
                Assert.assertFalse(key.canRead()); } }\n";
    account.write("work/src/test/java/ATest.java", test);
}

#[test]
fn maven_builds_and_tests_and_does_so_again_without_a_network() {
    if !has("mvn") || !reaches("repo.maven.apache.org") {
        return;
    }
    let mut account = Account::new(None);
    prepared(&mut account);
    account.write(
        "work/pom.xml",
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
        <groupId>p</groupId><artifactId>p</artifactId><version>1</version><properties>
        <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
        <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies>
        <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version>
        <scope>test</scope></dependency></dependencies></project>"#,
    );
    java(&account);
    let came = account.run("maven", &["mvn", "-q", "-B", "test"]);
    assert!(came.status == 0 && came.out.contains("Failures: 0"), "{}{}", came.out, came.err);
    // By what was fetched.
    let came = account.run("maven+offline", &["mvn", "-q", "-B", "-o", "test"]);
    assert!(came.status == 0 && came.out.contains("Failures: 0"), "{}{}", came.out, came.err);
}

#[test]
fn gradle_builds_and_tests() {
    if !has("gradle") || !reaches("repo.maven.apache.org") {
        return;
    }
    let mut account = Account::new(None);
    prepared(&mut account);
    let build = "apply plugin: 'java'\nrepositories { mavenCentral() }\n\
                 dependencies { testImplementation 'junit:junit:4.13.2' }\n";
    account.write("work/build.gradle", build);
    account.write("work/settings.gradle", "");
    java(&account);
    let came = account.run("gradle", &["gradle", "--no-daemon", "test"]);
    assert!(came.status == 0 && came.out.contains("BUILD SUCCESS"), "{}{}", came.out, came.err);
}

//! What a project has Cargo do under the profile `cargo`, where Cargo alone fills `~/.cargo`.

use crate::{account::Account, ready::toolchain};
use std::fs;

/// A source that a later build would compile.
const SOURCE: &str = ".cargo/registry/src/index.crates.io-0/victim-1.0.0/src/lib.rs";

const MANIFEST: &str = "[package]\nname = \"p\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";

/// A macro that writes a source itself, and has Cargo write it, as if a lint had suggested that.
const MACRO: &str = r##"
use std::io::Write as _;
#[proc_macro]
pub fn m(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let home = std::env::var("HOME").unwrap();
    let own = std::fs::write(format!("{home}/SOURCE"), "fn evil() {}");
    std::fs::write("tried", format!("{own:?}")).unwrap();
    let name = std::path::Path::new(&home).file_name().unwrap().to_str().unwrap();
    let file = format!("{home}/../{name}/SOURCE");
    let span = |replaced: &str, how: &str| format!(r#"{{"file_name":"{file}","byte_start":0,"byte_end":9,"line_start":1,"line_end":1,"column_start":1,"column_end":10,"is_primary":true,"text":[{{"text":"fn f() {{}}","highlight_start":1,"highlight_end":10}}],"label":null,"suggested_replacement":{replaced},"suggestion_applicability":{how},"expansion":null}}"#);
    let (main, sub) = (span("null", "null"), span(r#""fn evil() {}""#, r#""MachineApplicable""#));
    let said = format!(r#"{{"$message_type":"diagnostic","message":"unused","code":{{"code":"unused_mut","explanation":null}},"level":"warning","spans":[{main}],"children":[{{"message":"remove","code":null,"level":"help","spans":[{sub}],"children":[],"rendered":null}}],"rendered":"w"}}"#);
    writeln!(std::io::stderr(), "{said}").unwrap();
    proc_macro::TokenStream::new()
}
"##;

#[test]
fn what_a_macro_suggests_cargo_writes_into_the_workspace_and_not_into_its_home() {
    let mut account = Account::new(None);
    let [profile, _] = toolchain(&mut account);
    account.write(SOURCE, "fn f() {}");
    account.write(
        "work/Cargo.toml",
        &format!("{MANIFEST}[dependencies]\nmac = {{ path = \"mac\" }}\n"),
    );
    let manifest = MANIFEST.replace("\"p\"", "\"mac\"");
    account.write("work/mac/Cargo.toml", &format!("{manifest}[lib]\nproc-macro = true\n"));
    account.write("work/mac/src/lib.rs", &MACRO.replace("SOURCE", SOURCE));
    account.write("work/src/main.rs", "mac::m!();\nfn main() {}\n");
    let fix = ["cargo", "fix", "--offline", "--allow-no-vcs", "-p", "p"];
    let came = account.run(&profile, &fix);
    let tried = fs::read_to_string(account.path("work/tried"));
    assert!(tried.is_ok_and(|it| it.contains("PermissionDenied")), "{}{}", came.out, came.err);
    assert_eq!(fs::read_to_string(account.path(SOURCE)).unwrap(), "fn f() {}", "{}", came.err);
    // What the compiler suggests is done.
    account.write("work/src/main.rs", "fn main() {\n    let mut x = 1;\n    drop(x);\n}\n");
    account.green(&profile, &fix);
    let fixed = fs::read_to_string(account.path("work/src/main.rs")).unwrap();
    assert!(fixed.contains("let x = 1;"), "{fixed}");
    // So is what a build script asks Cargo.
    let script = "fn main() {\n    let cargo = std::env::var(\"CARGO\").unwrap();\n    \
        let asked = std::process::Command::new(cargo).args([\"metadata\", \"--offline\", \"--format-version=1\"]).output();\n    \
        assert!(asked.unwrap().status.success());\n}\n";
    account.write("work/build.rs", script);
    for command in ["build", "test"] {
        let came = account.run(&profile, &["cargo", command, "--offline"]);
        assert_eq!(came.status, 0, "{command}: {}{}", came.out, came.err);
    }
    let root = account.path("work/installed").display().to_string();
    let install = ["cargo", "install", "--offline", "--path", ".", "--root", &root];
    let came = account.run(&profile, &install);
    assert_eq!(came.status, 0, "{}{}", came.out, came.err);
    assert!(account.path("work/installed/bin/p").exists());
}

#[test]
fn a_projects_configuration_leads_cargo_not_into_its_home() {
    let mut account = Account::new(None);
    let [profile, plain] = toolchain(&mut account);
    account.write(SOURCE, "fn f() {}");
    account.write("work/Cargo.toml", MANIFEST);
    account.write("work/src/main.rs", "fn main() {}\n");
    account.write(".cargo/bin/cargo-own", "");
    std::os::unix::fs::symlink(account.path(".cargo"), account.path("work/link")).unwrap();
    let home = account.path("").display().to_string();
    let home = home.trim_end_matches('/');
    for (config, what) in [
        ("[alias]\nclippy = ['vendor', 'x']", "toml:2: the alias `clippy` stands over the program"),
        ("alias.clippy = 'vendor x'", "toml:1: the alias `clippy` stands over the program"),
        ("[alias]\nown = 'build'", "the alias `own` stands over the program `cargo-own`"),
        ("[alias]\nt = ['vendor', 'x']", "the alias `t` stands over Cargo's own"),
        ("[alias]\nx = ['build', '--config', 'y.toml']", "other configuration"),
        ("[alias]\nx = ['build', '-qCsub']", "other configuration"),
        ("[alias]\nx = ['vendor', 'HOME/.cargo/registry/src']", "leads into ~/.cargo"),
        ("[alias]\nx = 'vendor --x=../.cargo/registry/src'", "leads into ~/.cargo"),
        ("[alias]\nx = 'vendor new/../../.cargo'", "leads into ~/.cargo"),
        ("[build]\ntarget-dir = 'link/registry/src'", "leads into ~/.cargo"),
        ("[build]\ntarget-dir = 'HOME/.cargo/registry'", "leads into ~/.cargo"),
        ("[build]\nbuild-dir = '{cargo-cache-home}/b'", "leads into ~/.cargo"),
        ("[build]\nbuild-dir = '{workspace-root}/../.cargo/registry'", "Cargo alone can tell"),
        ("[build]\nbuild-dir = 'HOME/{workspace-path-hash}/../../.cargo'", "Cargo alone can tell"),
        ("[install]\nroot = \"HOME/\\u002ecargo\"", "leads into ~/.cargo"),
        ("include = 'more.toml'", "more.toml:2: the alias `clippy`"),
        ("include = [{ path = 'more.toml', optional = true }]", "more.toml:2: the alias `clippy`"),
        ("[alias\n", "is no TOML"),
        ("alias.t = 'u'\nalias.u = 'vendor x'", "the alias `t` stands over Cargo's own"),
        ("alias.t = 'x.rs'", "the alias `t` stands over Cargo's own"),
        ("alias.'./x.rs' = 'vendor x'", "stands over a manifest or a script"),
    ] {
        account.write("work/.cargo/more.toml", "[alias]\nclippy = 'vendor x'\n");
        account.write("work/.cargo/config.toml", &config.replace("HOME", home));
        let came = account.run(&profile, &["cargo", "--version"]);
        let said = came.err.replace('\n', " ");
        assert!(came.status == 2 && said.contains(what), "{config}: {}{said}", came.out);
        assert!(came.out.is_empty(), "{config}: {}", came.out);
        let came = account.run(&plain, &["true"]);
        assert_eq!(came.status, 0, "{config}: another profile fills nothing: {}", came.err);
    }
    // Cargo starts nothing that nobody knows.
    account.write("work/.cargo/config.toml", "alias.t = 'not-installed run'\n");
    account.green(&profile, &["cargo", "--version"]);
    let usual = "[alias]\nxtask = 'run --quiet --'\nt = 'test --all'\nlint = 'clippy --all'\n\
                 [build]\ntarget-dir = 'target/own'\nrustflags = ['--cfg', 'x=\"/y\"']\n";
    account.write("work/.cargo/config.toml", usual);
    account.green(&profile, &["cargo", "xtask"]);
    // The run itself cannot say another thing later.
    let later =
        "echo > .cargo/config.toml || rm .cargo/config.toml || mv .cargo x || echo > .cargo/config";
    let came = account.run(&profile, &["sh", "-c", later]);
    assert_ne!(came.status, 0, "{}{}", came.out, came.err);
    assert_eq!(fs::read_to_string(account.path("work/.cargo/config.toml")).unwrap(), usual);
}

#[test]
fn below_the_workspace_nothing_is_read_that_leads_cargo_into_its_home() {
    let mut account = Account::new(None);
    let [profile, plain] = toolchain(&mut account);
    account.write("work/Cargo.toml", MANIFEST);
    account.write("work/src/main.rs", "fn main() {}\n");
    account.write("work/bad/.cargo/config.toml", "alias.clippy = 'vendor x'\n");
    account.write("work/deep/er/.cargo/config.toml", "build.target-dir = '../link/registry'\n");
    account.write("work/link.toml", "alias.clippy = 'vendor y'\n");
    account.write("work/good/.cargo/config.toml", "alias.say = 'version'\n");
    for (at, to) in
        [("work/deep/link", ".cargo"), ("work/led/.cargo/config.toml", "work/link.toml")]
    {
        fs::create_dir_all(account.path(at).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(account.path(to), account.path(at)).unwrap();
    }
    for (directory, file) in
        [("bad", ".cargo/config.toml"), ("deep/er", ".cargo/config.toml"), ("led", "../link.toml")]
    {
        let there = format!("cd {directory} && ! cat {file} && ! cargo metadata --offline");
        let came = account.run(&profile, &["sh", "-c", &there]);
        assert_eq!(came.status, 0, "{directory}: {}{}", came.out, came.err);
        let named = format!("{directory}/.cargo/config.toml:1:");
        assert!(came.err.contains(&named), "{directory}: {}", came.err);
        account.green(&plain, &["sh", "-c", &format!("cat {directory}/{file}")]);
    }
    account.green(&profile, &["sh", "-c", "cd good && cargo say"]);
    account.green(&profile, &["cargo", "build", "--offline"]);
}

#[test]
fn a_place_for_what_cargo_builds_that_a_run_writes_itself_leads_it_not_into_its_home() {
    let mut account = Account::new(None);
    let [profile, _] = toolchain(&mut account);
    account.write(SOURCE, "fn f() {}");
    account.write("work/sub/Cargo.toml", MANIFEST);
    account.write("work/sub/src/main.rs", "fn main() {}\n");
    let config = "[build]\nbuild-dir = \"{workspace-root}/../../.cargo/registry\"";
    let led = format!("cd sub && mkdir .cargo && echo '{config}' > .cargo/config.toml && cargo ");
    account.green(&profile, &["sh", "-c", &(led + "clean && cargo build --offline")]);
    assert!(account.path(SOURCE).exists(), "the sources are removed");
    assert!(!account.path(".cargo/registry/debug").exists(), "Cargo builds among the sources");
    assert!(account.path("work/sub/target/debug/p").exists());
}

#[test]
fn a_fifo_in_the_place_of_cargos_configuration_is_not_waited_for() {
    let mut account = Account::new(None);
    let [profile, _] = toolchain(&mut account);
    fs::create_dir(account.path("work/.cargo")).unwrap();
    let fifo = account.path("work/.cargo/config.toml");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|made| made.success()));
    let came = account.run(&profile, &["true"]);
    assert!(came.status == 2 && came.err.contains("pipe"), "{}{}", came.out, came.err);
    fs::rename(account.path("work/.cargo"), account.path("work/x")).unwrap();
    fs::create_dir_all(account.path("work/sub")).unwrap();
    fs::rename(account.path("work/x"), account.path("work/sub/.cargo")).unwrap();
    let came = account.run(&profile, &["true"]);
    assert!(came.status == 0 && came.err.contains("pipe"), "{}{}", came.out, came.err);
}

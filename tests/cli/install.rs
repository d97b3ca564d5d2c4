//! `scripts/install` and `scripts/deb`: what was built, where a system has it.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PROGRAMS: &[&str] = &[
    "dewar",
    "dewar-bench",
    "dewar-daemon",
    "dewar-mcp",
    "dewar-plugin",
    "dewar-selftest",
    "dewar-serve",
];

/// Runs a command; what it printed.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A directory with what `make build` leaves in one: programs, and the library of the tests.
fn built() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    test_support::mcp();
    for name in PROGRAMS {
        let program = test_support::dewar().with_file_name(name);
        symlink(program.canonicalize().unwrap(), directory.path().join(name)).unwrap();
    }
    let own = env::current_exe().unwrap();
    let files: Vec<PathBuf> =
        fs::read_dir(own.parent().unwrap()).unwrap().map(|file| file.unwrap().path()).collect();
    let both = ["libdewar", "libdewar_port"];
    for (library, end) in both.into_iter().flat_map(|library| [(library, ".a"), (library, ".so")]) {
        let is_library = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hash = name.strip_prefix(library).and_then(|rest| rest.strip_suffix(end));
            hash.is_some_and(|hash| hash.is_empty() || hash.starts_with('-'))
        };
        let age = |path: &&PathBuf| path.metadata().and_then(|data| data.modified()).ok();
        let newest = files.iter().filter(is_library).max_by_key(age);
        let newest = newest.expect("the library is built with the tests of the workspace");
        symlink(newest, directory.path().join(format!("{library}{end}"))).unwrap();
    }
    directory
}

fn script(name: &str) -> Command {
    Command::new(format!("{ROOT}/scripts/{name}"))
}

/// The files below a directory, by their names there.
fn files(root: &Path) -> Vec<String> {
    let list = done(Command::new("find").arg(root).args(["!", "-type", "d", "-printf", "%P\n"]));
    list.lines().map(str::to_owned).collect()
}

#[test]
fn what_is_installed_is_complete_builds_c_and_is_taken_away_again() {
    let (built, tree) = (built(), tempfile::tempdir().unwrap());
    let root = tree.path();
    let install = |words: &[&str]| {
        let mut install = script("install");
        done(install.args(words).arg(built.path()).arg("/opt/d").env("DESTDIR", root))
    };
    let mine = root.join("opt/d/bin/mine");
    fs::create_dir_all(mine.parent().unwrap()).unwrap();
    fs::write(&mine, "").unwrap();
    install(&[]);
    let own = root.join("opt/d");
    for file in [
        "share/man/man1/dewar-run.1",
        "share/man/man3/dewar.3",
        "share/man/man5/dewar-profile.5",
        "include/dewar.h",
        "share/bash-completion/completions/dewar",
        "share/zsh/site-functions/_dewar",
        "share/fish/vendor_completions.d/dewar.fish",
        "share/doc/dewar/profile.md",
    ] {
        assert!(own.join(file).metadata().unwrap().len() > 500, "{file}");
    }
    let unit = fs::read_to_string(own.join("lib/systemd/user/dewar.service")).unwrap();
    assert!(unit.contains("ExecStart=/opt/d/bin/dewar daemon"), "{unit}");
    // Commands that are programs of their own are found beside it.
    let help = done(Command::new(own.join("bin/dewar")).args(["daemon", "--help"]));
    assert!(help.contains("--journal-size"));

    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "dewar-port"]);
    pkg_config
        .env("PKG_CONFIG_PATH", own.join("lib/pkgconfig"))
        .env("PKG_CONFIG_SYSROOT_DIR", root);
    let flags = done(&mut pkg_config);
    let client = root.join("client");
    let source = format!("{ROOT}/examples/broker/client.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-D_GNU_SOURCE", "-o"]).arg(&client).arg(source).args(flags.split_whitespace());
    done(&mut gcc);
    let needed = done(Command::new("objdump").arg("-p").arg(&client));
    assert!(needed.contains("libdewar_port.so.0"), "{needed}");
    fs::remove_file(client).unwrap();

    install(&["--remove"]);
    assert_eq!(files(root), ["opt/d/bin/mine"]);
}

#[test]
fn what_was_not_built_is_not_installed() {
    let (empty, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = script("install").arg(empty.path()).env("DESTDIR", tree.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("dewar is missing: make build"), "{said}");
    assert_eq!(files(tree.path()), [""; 0]);
}

#[test]
fn the_debian_package_is_installed_works_and_is_removed() {
    let (built, tree) = (built(), tempfile::tempdir().unwrap());
    let root = tree.path();
    // Debug information is large, and is thrown away here.
    let mut deb = script("deb");
    deb.arg(built.path()).arg(root).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let package = done(&mut deb);
    for directory in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    // An ordinary user is root in a namespace, and nothing else is in this system.
    let dpkg = |words: &[&str]| {
        let mut dpkg = Command::new("unshare");
        dpkg.args(["--map-root-user", "dpkg", "--force-depends", "--log=/dev/null", "--root"]);
        done(dpkg.arg(root).args(words))
    };
    dpkg(&["--install", package.trim()]);
    let version = done(Command::new(root.join("usr/bin/dewar")).arg("--version"));
    assert_eq!(version, format!("dewar {}\n", env!("CARGO_PKG_VERSION")));
    let status = dpkg(&["--verify", "dewar"]);
    assert_eq!(status, "", "what is installed is what the package says");
    dpkg(&["--purge", "dewar"]);
    assert!(!root.join("usr").exists(), "{:?}", files(&root.join("usr")));
}

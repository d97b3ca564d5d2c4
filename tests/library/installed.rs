//! C against what `scripts/install` has installed, and nothing else of this source.

use crate::stage::ROOT;
use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs a command; what it printed.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// The library as it was built beside this program: the newest.
fn built(name: &str, end: &str) -> PathBuf {
    let own = env::current_exe().expect("this program");
    let files = fs::read_dir(own.parent().expect("target/PROFILE/deps")).expect("it can be listed");
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(end));
        stem.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let files = files.flatten().map(|file| file.path());
    files.filter(is_it).max_by_key(age).expect("the library is built with these tests")
}

/// What is installed below `prefix`: only what is for C, and by the very script.
fn install(prefix: &Path) {
    let from = tempfile::tempdir().expect("a directory");
    for name in ["libdewar", "libdewar_port"] {
        for end in [".a", ".so"] {
            symlink(built(name, end), from.path().join(format!("{name}{end}"))).expect("linked");
        }
    }
    let mut install = Command::new(format!("{ROOT}/scripts/install"));
    done(install.arg("--library").arg(from.path()).arg(prefix));
}

/// Compiles a program with the flags that pkg-config tells.
fn compile(source: &str, prefix: &Path, more: &[&str]) -> PathBuf {
    let program = prefix.join("program");
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "dewar"]);
    let flags = done(pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]);
    gcc.arg(&program).arg(format!("{ROOT}/{source}")).args(flags.split_whitespace()).args(more);
    done(&mut gcc);
    program
}

fn linked(program: &Path, prefix: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    command
}

/// The server in C.
pub(crate) fn c_server(home: &Path) -> Command {
    let prefix = home.join("usr");
    install(&prefix);
    linked(&compile("examples/kv/kv.c", &prefix, &[]), &prefix)
}

#[test]
fn every_function_of_the_header_does_what_it_says_without_a_fault_in_memory() {
    let prefix = tempfile::tempdir().expect("a directory");
    let prefix = prefix.path();
    install(prefix);
    let program = compile("tests/library/api.c", prefix, &["-lpthread"]);
    let policy = format!("{ROOT}/examples/kv/kv.cil");
    let said = done(linked(&program, prefix).arg(&policy).arg("100000"));
    assert_eq!(said, "all is well\n");
    let mut valgrind = linked(Path::new("valgrind"), prefix);
    valgrind.args([
        "--quiet",
        "--error-exitcode=99",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ]);
    assert_eq!(done(valgrind.arg(&program).arg(&policy).arg("50")), "all is well\n");
    // Linked into the program, nothing is needed to run it.
    let file = prefix.join("lib/libdewar.a");
    let program = prefix.join("static");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-D_GNU_SOURCE", "-I"]).arg(prefix.join("include"));
    gcc.arg(format!("{ROOT}/tests/library/api.c")).arg(file).args([
        "-lpthread",
        "-lm",
        "-ldl",
        "-o",
    ]);
    done(gcc.arg(&program));
    assert_eq!(done(Command::new(&program).arg(&policy).arg("50")), "all is well\n");
}

/// The words of a declaration, without names of arguments.
fn c_functions(header: &str) -> BTreeSet<String> {
    let code: Vec<&str> =
        header.split("/*").map(|part| part.split_once("*/").map_or(part, |it| it.1)).collect();
    let code = code.join(" ").replace('\n', " ");
    let declarations = code.split(';').filter(|it| it.contains('(') && !it.contains("typedef"));
    let function = |declaration: &str| {
        let (head, arguments) = declaration.split_once('(')?;
        let name = head.rsplit([' ', '*']).next()?;
        let count = match arguments.trim_end().trim_end_matches(')') {
            "void" => 0,
            list => list.split(',').count(),
        };
        name.starts_with("dewar_").then(|| format!("{name}/{count}"))
    };
    declarations.filter_map(function).collect()
}

fn rust_functions(source: &str) -> BTreeSet<String> {
    let parts = source.split("#[unsafe(no_mangle)]").skip(1);
    let function = |part: &str| {
        let part = part.split_once("fn ").expect("a function").1;
        let (name, rest) = part.split_once('(').expect("arguments");
        let arguments = rest.split_once(')').expect("their end").0;
        format!("{name}/{}", arguments.matches(": ").count())
    };
    parts.map(function).collect()
}

#[test]
fn the_headers_declare_what_the_library_exports_and_nothing_else_is_exported() {
    let read = |name: &str| fs::read_to_string(format!("{ROOT}/crates/{name}")).expect("a file");
    let parts = ["checks", "failure", "labels", "open", "policy"];
    let parts = parts.map(|part| read(&format!("object-manager-c/src/sys/{part}.rs")));
    let own = rust_functions(&parts.concat());
    assert_eq!(c_functions(&read("object-manager-c/include/dewar.h")), own);
    let ports = rust_functions(&read("ipc-c/src/sys.rs"));
    assert_eq!(c_functions(&read("ipc-c/include/dewar_port.h")), ports);
    let mut nm = Command::new("nm");
    let symbols = done(nm.args(["-D", "--defined-only"]).arg(built("libdewar", ".so")));
    let names = symbols.lines().filter_map(|line| line.split(' ').next_back());
    let exported: BTreeSet<&str> = names.filter(|name| !name.starts_with("rust_eh")).collect();
    let declared: BTreeSet<&str> =
        own.union(&ports).filter_map(|it| it.split('/').next()).collect();
    assert_eq!(exported, declared);
    let needed = done(Command::new("objdump").arg("-p").arg(built("libdewar", ".so")));
    assert!(needed.contains("libdewar.so.0"), "{needed}");
}

#[test]
fn structs_have_the_same_form_in_the_header_and_in_the_library() {
    use dewar::{
        dewar_about, dewar_class, dewar_decision, dewar_hint, dewar_options, dewar_record,
    };
    let prefix = tempfile::tempdir().expect("a directory");
    install(prefix.path());
    let program = compile("tests/library/forms.c", prefix.path(), &[]);
    let said = done(&mut linked(&program, prefix.path()));
    macro_rules! form {
        ($type:ident { $($field:ident),* }) => {{
            let fields = [$(std::mem::offset_of!($type, $field).to_string()),*];
            format!("{} {} {}\n", stringify!($type), size_of::<$type>(), fields.join(" "))
        }};
    }
    let want = [
        form!(dewar_class { name, permissions }),
        form!(dewar_record {
            time,
            granted,
            pid,
            object,
            operation,
            scontext,
            tcontext,
            tclass,
            permissions,
            reason,
            would_allow,
            json
        }),
        form!(dewar_options {
            size,
            name,
            policies,
            classes,
            class_count,
            entries,
            flags,
            audit,
            change,
            data
        }),
        form!(dewar_about { object, operation, pid }),
        form!(dewar_decision { allowed, auditallow, auditdeny, seqno, permissive }),
        format!("dewar_hint {}\n", size_of::<dewar_hint>()),
    ];
    assert_eq!(said, want.concat());
}

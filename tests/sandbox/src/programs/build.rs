//! make, gcc, ld, cargo.

use crate::{Case, cases, process::until, stage::Stage};
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

pub(super) const CASES: &[Case] = cases![
    make_builds_in_parallel,
    gcc_compiles_with_pipes_and_temporary_files,
    libraries_are_linked_and_loaded,
    generated_programs_run_at_once,
    cargo_builds_a_small_crate_offline,
    the_monitor_stays_small_through_ten_thousand_processes,
];

const SOURCES: &str = r##"for i in 1 2 3 4 5; do
    echo "#include \"all.h\"
    int f$i(int x) { return x * $i + LIMIT; }" > f$i.c; done
    echo '#define LIMIT 3
    int f1(int), f2(int), f3(int), f4(int), f5(int);' > all.h
    cat > main.c <<'END'
#include <stdio.h>
#include "all.h"
int main(void) { printf("%d\n", f1(1) + f2(2) + f3(3) + f4(4) + f5(5)); return 3; }
END
    cat > Makefile <<'END'
OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))
program: $(OBJECTS)
	$(CC) -o $@ $^
%.o: %.c all.h
	$(CC) -g -O1 -Wall -c -o $@ $<
clean:
	rm -f program *.o
.PHONY: clean
END"##;

fn make_builds_in_parallel(stage: &Stage) {
    stage
        .same("make -s -j2 && ./program; echo $?; make -q && echo fresh; touch -d '1 hour' all.h; make -n 2>/dev/null | wc -l; make -s clean; ls; make -s -j1; make nothing; strip program; size program | wc -l; nm main.o")
        .before(SOURCES)
        .check();
}

fn gcc_compiles_with_pipes_and_temporary_files(stage: &Stage) {
    stage
        .same("gcc -pipe -c f1.c; gcc -save-temps -o p main.c f?.c; ./p; gcc -E main.c | tail -1; gcc -MMD -c main.c -o m.o; cat m.d; echo 'int x = ;' | gcc -xc -c - -o bad.o; echo 'int main(void) { return 4; }' | gcc -xc - -o four; ./four; echo $?; gcc -flto -O2 main.c f?.c -o lto && ./lto")
        .before(SOURCES)
        .check();
}

fn libraries_are_linked_and_loaded(stage: &Stage) {
    stage
        .same("gcc -shared -fPIC -o libf.so f?.c; gcc main.c -L. -lf -Wl,-rpath,'$ORIGIN' -o p; ./p; ldd p | grep -c libf; gcc -c f?.c; ar rcs libg.a f?.o; gcc main.c -L. -l:libg.a -o q; ./q; LD_PRELOAD=./libf.so true; python3 -c 'import ctypes; print(ctypes.CDLL(\"./libf.so\").f2(5))'; ld -r f1.o f2.o -o both.o")
        .before(SOURCES)
        .check();
}

fn generated_programs_run_at_once(stage: &Stage) {
    stage
        .same("printf '#!/bin/sh\\necho \"script $0 $1\"' > s; chmod +x s; ./s one; cp /bin/echo own; ./own two; printf '#!./own three' > t; chmod 755 t; ./t; chmod -x s; ./s; echo $?; echo text > u; chmod +x u; ./u; echo $?; (exec -a other /bin/sh -c 'echo $0'); ln -s own l; ./l four; mkdir d; ./d; ./nothing; echo $?; printf '#!/no/interpreter\\n' > v; chmod +x v; ./v; env -i ./own five; PATH=.:$PATH own six")
        .check();
}

fn cargo_builds_a_small_crate_offline(stage: &Stage) {
    bring_toolchain(stage);
    let script = "export PATH=$HOME/.rustup/own/bin:$PATH
        cargo -q build --offline && target/debug/small; cargo -q run --offline --release; echo $?; cargo -q test --offline | grep -c 'test result: ok'";
    stage
        .same(script)
        .before(
            r#"mkdir -p src; cat > Cargo.toml <<'END'
[package]
name = "small"
version = "0.1.0"
edition = "2021"
END
            echo 'fn main() { println!("{}", twice(21)); std::process::exit(2) } fn twice(x: u32) -> u32 { x * 2 }
            #[test] fn doubles() { assert_eq!(twice(2), 4); }' > src/main.rs"#,
        )
        .profile("build")
        .varies_below("target")
        // Cargo looks for settings in every directory above.
        .does_without(&["/.cargo/config"])
        .check();
}

/// Half of them by make, half by the shells that it starts; each makes a file.
fn the_monitor_stays_small_through_ten_thousand_processes(stage: &Stage) {
    // 13 MiB of it are pages of the program, as it is built for tests.
    const MOST_KIB: u64 = 22 << 10;
    stage.prepare(
        r"printf 'N := $(shell seq 5000)\nall: $(N)\n$(N):\n\t@/bin/true > out$@; :\n' > Makefile",
    );
    let words = ["make", "-s", "-j2"].map(Into::into);
    let mut command = stage.dewar(stage.call(), &words);
    let mut dewar = command.stdin(Stdio::null()).spawn().expect("start dewar");
    let mut largest_kib = 0;
    let status = until(|| {
        largest_kib = peak_kib(dewar.id()).unwrap_or(0).max(largest_kib);
        dewar.try_wait().expect("wait")
    });
    assert!(status.expect("an end").success());
    let made = std::fs::read_dir(stage.work()).expect("the workspace").count();
    assert_eq!(made, 5001);
    assert!((1..=MOST_KIB).contains(&largest_kib), "{largest_kib} KiB");
}

/// The largest resident set of a process until now.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Puts the Rust toolchain where a user has it: into the home of the stage, by hard links where
/// possible.
fn bring_toolchain(stage: &Stage) {
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc");
    let sysroot = PathBuf::from(String::from_utf8_lossy(&rustc.stdout).trim());
    let own = stage.home().join(".rustup/own");
    std::fs::create_dir_all(&own).expect("a directory for the toolchain");
    for part in ["bin", "lib"] {
        let copied = ["-al", "-a"].into_iter().any(|how| {
            let mut cp = Command::new("cp");
            cp.arg(how).arg(sysroot.join(part)).arg(&own).stderr(std::process::Stdio::null());
            cp.status().is_ok_and(|status| status.success())
        });
        assert!(copied, "cannot copy the Rust toolchain");
    }
}

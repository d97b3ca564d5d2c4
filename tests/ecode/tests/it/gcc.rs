//! Generated programs as C.

use std::{fmt::Write as _, fs, path::Path, process::Command};

/// What `test_0` and so on return when gcc compiles `text`.
pub(crate) fn results(folder: &Path, text: &str, size: usize, flags: &[&str]) -> Vec<i64> {
    let mut source = String::from("#include <stdbool.h>\n#include <stdio.h>\n");
    source.push_str(text);
    source.push_str("int main(void) {\n");
    for id in 0..size {
        let _ = writeln!(source, "printf(\"%ld\\n\", test_{id}());");
    }
    source.push_str("return 0; }\n");
    let name = flags.concat();
    let (file, binary) = (folder.join(format!("{name}.c")), folder.join(format!("bin{name}")));
    fs::write(&file, source).unwrap();
    let status = Command::new("gcc")
        .args(["-w", "-std=gnu11", "-ffp-contract=off"])
        .args(flags)
        .arg("-o")
        .args([&binary, &file])
        .status()
        .expect("gcc is installed");
    assert!(status.success());
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().map(|line| line.parse().unwrap()).collect()
}

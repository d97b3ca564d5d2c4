//! Names the compiler by its source, so that code which another one has made is known as such.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

fn main() {
    let mut files = BTreeSet::from([PathBuf::from("Cargo.toml")]);
    collect(Path::new("src"), &mut files).expect("the source is there");
    // The versions of what it is built with. A crate by itself has no such file.
    files.extend(Some(PathBuf::from("../../Cargo.lock")).filter(|path| path.exists()));
    let mut hasher = DefaultHasher::new();
    for path in &files {
        println!("cargo:rerun-if-changed={}", path.display());
        (path, fs::read(path).expect("the source is readable")).hash(&mut hasher);
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env=ECODE_SOURCE_HASH={:016x}", hasher.finish());
}

/// Adds all files below `directory`.
fn collect(directory: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

//! The shared library's name, with the version of its interface.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdewar_port.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}

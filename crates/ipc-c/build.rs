//! The shared library's name, with the version of its interface: for this package alone, and for no
//! library that contains it.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,-soname,libdewar_port.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}

//! Machine code on disk: used when it is what was written, and compiled anew when it is anything
//! else.

mod common;

use common::{UPPER, host_of, server, spec};
use plugin_host::{Cache, CacheError, PluginSpec};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

fn cache(path: &Path) -> Cache {
    Cache::open(path, Cache::DEFAULT_BYTES).unwrap()
}

/// A directory that is its owner's alone.
fn private() -> tempfile::TempDir {
    let only_owner = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_owner).tempdir().unwrap()
}

/// Loads the plugin in a host of its own; whether its code came from the cache, and what was wrong
/// with that.
fn load(path: &Path, text: &str) -> (bool, Option<String>) {
    let host = host_of(&server(""), Some(cache(path)));
    let loaded = host.load(&spec("upper", text)).unwrap();
    assert_eq!(host.call("upper", b"ok").unwrap(), b"OK");
    (loaded.from_cache, loaded.cache_warning)
}

/// The one file of machine code in a cache.
fn code_file(path: &Path) -> PathBuf {
    let mut files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "code")).unwrap()
}

#[test]
fn equal_texts_are_compiled_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    assert_eq!(load(&path, UPPER), (false, None));
    assert_eq!(load(&path, UPPER), (true, None));
    assert_eq!(load(&path, &UPPER.replace("- 32", "- 30 - 2 + 0 * n")), (false, None));
    assert_eq!(load(&path, UPPER), (true, None));
    let listed = cache(&path).list().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|code| code.intact && code.plugin == "upper" && code.bytes > 1000));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(code_file(&path)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.join("secret")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn remarks_about_a_text_come_with_its_code_from_the_cache() {
    let dir = private();
    let text = "long handle(const char *in, long n, char *out, long room) { if (n) return 0; }";
    for from_cache in [false, true, true] {
        let host = host_of(&server(""), Some(cache(dir.path())));
        let loaded = host.load(&spec("remarked", text)).unwrap();
        assert_eq!(loaded.from_cache, from_cache);
        let remarks: Vec<&str> = loaded.remarks.iter().map(|remark| remark.text()).collect();
        assert_eq!(remarks, ["`handle` may end without `return`"]);
    }
}

#[test]
fn a_text_compiled_for_another_memory_is_compiled_anew() {
    let dir = private();
    for (memory_bytes, from_cache) in [(1 << 20, false), (2 << 20, false), (1 << 20, true)] {
        let host = host_of(&server(""), Some(cache(dir.path())));
        let small = spec("upper", UPPER);
        let limits = plugin_host::Limits { memory_bytes, ..small.limits };
        assert_eq!(host.load(&PluginSpec { limits, ..small }).unwrap().from_cache, from_cache);
    }
}

#[test]
fn an_altered_file_is_compiled_anew_with_a_warning() {
    let dir = private();
    load(dir.path(), UPPER);
    let file = code_file(dir.path());
    let good = fs::read(&file).unwrap();
    // The magic, the keyed hash, the length of the name, the name, the first, a middle and the last
    // byte of code.
    for at in [0, 15, 16, 47, 48, 49, 50, 54, 55, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&file, bad).unwrap();
        assert!(!cache(dir.path()).list().unwrap()[0].intact, "{at}");
        let (from_cache, warning) = load(dir.path(), UPPER);
        assert!(!from_cache && warning.unwrap().contains("altered"), "{at}");
        // It was written anew.
        assert_eq!(load(dir.path(), UPPER), (true, None), "{at}");
    }
    for length in [0, 1, 16, 48, 50, good.len() - 1] {
        fs::write(&file, &good[..length]).unwrap();
        assert!(!load(dir.path(), UPPER).0, "{length}");
    }
    fs::write(&file, [&good[..], b"x"].concat()).unwrap();
    assert!(!load(dir.path(), UPPER).0);
}

#[test]
fn code_of_another_key_or_another_secret_is_not_used() {
    let dir = private();
    load(dir.path(), UPPER);
    let file = code_file(dir.path());
    let other = private();
    load(other.path(), &UPPER.replace("- 32", "- 31 - 1 + 0 * n"));
    // Properly written code of another text, under this text's name.
    let stolen = dir.path().join("secret");
    fs::copy(other.path().join("secret"), &stolen).unwrap();
    assert!(!load(dir.path(), UPPER).0, "another secret");
    fs::copy(code_file(other.path()), &file).unwrap();
    assert!(!load(dir.path(), UPPER).0, "another key");
}

#[test]
fn a_directory_or_file_that_others_may_use_is_not_used() {
    let dir = private();
    load(dir.path(), UPPER);
    let file = code_file(dir.path());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
    assert!(!load(dir.path(), UPPER).0, "a file that the group may write");
    let good = fs::read(&file).unwrap();
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), good).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(elsewhere.path(), &file).unwrap();
    assert!(!load(dir.path(), UPPER).0, "a link");
    let secret = dir.path().join("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let opened = Cache::open(dir.path(), Cache::DEFAULT_BYTES);
    assert!(
        matches!(&opened, Err(CacheError::Exposed { path, .. }) if *path == secret),
        "{opened:?}"
    );
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let opened = Cache::open(dir.path(), Cache::DEFAULT_BYTES);
    assert!(matches!(opened, Err(CacheError::Exposed { .. })), "{opened:?}");
    let link = tempfile::tempdir().unwrap();
    symlink(tempfile::tempdir().unwrap().path(), link.path().join("l")).unwrap();
    assert!(Cache::open(&link.path().join("l"), 1).is_err());
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let dir = private();
    load(dir.path(), UPPER);
    let one = fs::metadata(code_file(dir.path())).unwrap().len();
    let small = || Cache::open(dir.path(), one * 5 / 2).unwrap();
    for n in 1..6 {
        let host = host_of(&server(""), Some(small()));
        let text = UPPER.replace("- 32", &format!("- {n} - {}", 32 - n));
        // Times of files have the grain of the clock's tick.
        std::thread::sleep(std::time::Duration::from_millis(20));
        host.load(&spec("upper", &(text + &format!("int unused{n};")))).unwrap();
        let bytes: u64 = small().list().unwrap().iter().map(|code| code.bytes).sum();
        assert!(bytes <= one * 5 / 2, "{bytes}");
    }
    assert!(!load(dir.path(), UPPER).0, "the first one had to go");
}

#[test]
fn foreign_modules_and_our_own_have_their_own_keys() {
    let dir = private();
    let module = wat::parse_str(
        "(module (memory (export \"memory\") 1)
            (func (export \"handle\") (param i32 i64 i32 i64) (result i64) i64.const 0))",
    )
    .unwrap();
    for want in [false, true] {
        let host = host_of(&server(""), Some(cache(dir.path())));
        let loaded = host.load(&PluginSpec::wasm("nop", plugin_host::PLUGIN_CONTEXT, &module));
        assert_eq!(loaded.unwrap().from_cache, want);
        assert_eq!(host.call("nop", b"x").unwrap(), b"");
    }
}

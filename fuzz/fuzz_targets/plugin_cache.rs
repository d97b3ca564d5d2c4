//! Machine code on disk that somebody has changed: it is code that this cache has written,
//! unchanged, or altered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::LazyLock};

// As a file of its own: the crate around it is mostly compilers, which the cache does not need.
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/plugin-host/src/cache.rs"]
mod cache;

use cache::{Cache, CachedCode, Key, Lookup};

/// What lies beside the files: kept the same, so that inputs mean the same in every run.
const SECRET: [u8; 32] = *b"this is no secret, for fuzzing..";
const MAGIC: &[u8] = b"dewar plugin 02\n";

static PLACE: LazyLock<(PathBuf, Cache)> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("fuzz-cache-{}", std::process::id()));
    fs::create_dir(&path).expect("a directory");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its mode");
    write(&path.join("secret"), &SECRET);
    let cache = Cache::open(&path, Cache::DEFAULT_BYTES).expect("a cache");
    (path, cache)
});

fn write(path: &PathBuf, bytes: &[u8]) {
    fs::write(path, bytes).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode");
}

fn key(name: &[u8]) -> Key {
    Key(blake3::hash(name))
}

fn file(key: &Key) -> PathBuf {
    PLACE.0.join(format!("{}.code", key.0.to_hex()))
}

fn listed() -> CachedCode {
    PLACE.1.list().expect("listed").pop().expect("there is one")
}

fuzz_target!(|bytes: &[u8]| {
    let key = key(b"fuzz");
    // As they are: nobody without the secret has written them.
    write(&file(&key), bytes);
    if let Lookup::Found(code) = PLACE.1.find(&key) {
        let (code, remarked) = (code.bytes().to_vec(), code.remarked());
        PLACE.1.keep(&key, &listed().plugin, remarked, &code).expect("kept");
        assert_eq!(fs::read(file(&key)).expect("read"), bytes, "what is used is not what was kept");
    }
    // As whoever has the secret writes them.
    let signed = sign(&key, bytes);
    write(&file(&key), &signed);
    let length = bytes.first_chunk().map_or(0, |length| usize::from(u16::from_le_bytes(*length)));
    let whole = bytes.len() >= 3 + length;
    match PLACE.1.find(&key) {
        Lookup::Found(code) => {
            assert!(whole, "a file that ends before its code begins is used");
            assert_eq!((code.bytes(), code.remarked()), (&bytes[3 + length..], bytes[2] != 0));
            assert_eq!(listed().plugin, String::from_utf8_lossy(&bytes[3..3 + length]));
        }
        Lookup::Altered => assert!(!whole, "what was written properly is not used"),
        Lookup::Missing => panic!("it is there"),
    }
    assert_eq!(listed().intact, whole);
    // And changed afterwards, cut short, longer, and for another key.
    let place = blake3::hash(bytes).as_bytes()[0] as usize * signed.len() / 256;
    let mut changed = signed.clone();
    changed[place] ^= 1 << (bytes.len() % 8);
    for altered in [&changed[..], &signed[..place], &[&signed[..], b"\0"].concat()] {
        write(&file(&key), altered);
        assert!(matches!(PLACE.1.find(&key), Lookup::Altered), "changed at {place}");
        assert!(!listed().intact);
    }
    fs::remove_file(file(&key)).expect("removed");
    let other = self::key(b"another");
    write(&file(&other), &signed);
    assert!(matches!(PLACE.1.find(&other), Lookup::Altered), "it is another's");
    fs::remove_file(file(&other)).expect("removed");
});

fn sign(key: &Key, rest: &[u8]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_keyed(&SECRET);
    let mac = hasher.update(key.0.as_bytes()).update(rest).finalize();
    [MAGIC, mac.as_bytes(), rest].concat()
}

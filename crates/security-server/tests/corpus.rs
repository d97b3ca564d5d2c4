//! Replays the fuzzers' corpus, as it is and with bytes changed, cut and repeated: nothing may
//! panic or run away.

use security_server::{cil, policydb};
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/fuzz_targets/exercise.rs"]
mod exercise;
use exercise::exercise;

/// Variants of each file.
const VARIANTS: u64 = 300;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A variant of `bytes`: some bytes changed, sometimes the end cut or a piece repeated.
fn variant(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as usize % limit.max(1)
    };
    let mut out = bytes.to_vec();
    for _ in 0..=below(4) {
        let at = below(out.len());
        let value = [0, 1, 0x7f, 0xff, b'(', b')', below(256) as u8][below(7)];
        if let Some(byte) = out.get_mut(at) {
            *byte = value;
        }
    }
    match below(6) {
        0 => out.truncate(below(bytes.len())),
        1 => {
            let start = below(out.len());
            let piece = out[start..(start + below(64)).min(out.len())].to_vec();
            let at = below(out.len());
            out.splice(at..at, piece);
        }
        _ => {}
    }
    out
}

#[test]
fn no_variant_of_a_binary_policy_makes_the_reader_panic() {
    for bytes in corpus("policydb") {
        exercise(policydb::read(&bytes).expect("the corpus itself is good"));
        for seed in 0..VARIANTS {
            if let Ok(policy) = policydb::read(&variant(&bytes, seed)) {
                exercise(policy);
            }
        }
    }
}

#[test]
fn no_variant_of_a_cil_file_makes_the_compiler_panic() {
    for bytes in corpus("cil") {
        for seed in 0..VARIANTS {
            let text = String::from_utf8_lossy(&variant(&bytes, seed)).into_owned();
            if let Ok(policy) = cil::compile(&[("variant.cil", text)]) {
                exercise(policy);
            }
        }
    }
}

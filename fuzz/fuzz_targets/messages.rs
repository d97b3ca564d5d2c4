//! What processes say to each other: whoever reads it refuses it, or has understood what can be
//! written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::Amendment;
use runs::{Answer, Question, VERSION, Versioned};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde::{Serialize, de::DeserializeOwned};
use std::{fs::File, io::Write as _};

mod memory;

/// What a reader may take beside a multiple of what it reads: a list's first elements, whatever
/// length it claims.
const MOST_BYTES: usize = 4 << 20;

fuzz_target!(|bytes: &[u8]| {
    let ((), most) = memory::most_held(|| {
        binary(bytes, server_port::decode);
        binary(bytes, daemon::decode);
        json::<Question>(bytes);
        json::<Answer>(bytes);
        json::<Amendment>(bytes);
    });
    assert!(most < MOST_BYTES + 64 * bytes.len(), "{most} bytes for {} bytes", bytes.len());
    sealed(bytes);
});

/// What was read and written is read again, if nothing lies behind it.
fn binary(bytes: &[u8], decode: fn(&[u8]) -> Vec<Vec<u8>>) {
    for written in decode(bytes) {
        assert!(decode(&written).contains(&written), "not read again");
        let longer = [&written[..], &[0]].concat();
        assert!(!decode(&longer).contains(&written), "whatever lies behind a message is taken");
    }
}

/// So it is in JSON, in one version.
fn json<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let write = |version, said: &T| {
        serde_json::to_vec(&Versioned { version, said }).expect("what was read can be written")
    };
    let Ok(said) = runs::read::<T>(bytes) else { return };
    let written = write(VERSION, &said);
    let again = runs::read(&written).expect("what was written can be read");
    assert_eq!(write(VERSION, &again), written);
    assert!(runs::read::<T>(&write(VERSION + 1, &said)).is_err(), "another version is read");
}

/// What comes as memory is read as it is if nobody can change it any more, and is no longer than
/// allowed.
fn sealed(bytes: &[u8]) {
    let (allowed, seals) =
        bytes.split_first().map_or((0, 0), |(first, _)| (first & 0xf0, first & 0xf));
    let (most, seals) = (usize::from(allowed) * 4, SealFlags::from_bits_truncate(seals.into()));
    let memory = memfd_create(c"fuzz", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let mut memory = File::from(memory.expect("memory"));
    memory.write_all(bytes).expect("written");
    fcntl_add_seals(&memory, seals).expect("sealed");
    match server_port::read_sealed(memory.into(), most) {
        Ok(read) => {
            assert!(seals.contains(SealFlags::WRITE | SealFlags::SHRINK), "it can still change");
            assert!(bytes.len() <= most, "it is longer than allowed");
            assert_eq!(read, bytes);
        }
        Err(error) => {
            let good = seals.contains(SealFlags::WRITE | SealFlags::SHRINK) && bytes.len() <= most;
            assert!(!good, "{error}");
        }
    }
}

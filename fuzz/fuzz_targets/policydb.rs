//! Any bytes: the reader of binary policies must refuse them or make a policy that decides and can
//! be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use security_server::policydb;

mod exercise;
use exercise::exercise;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(policy) = policydb::read(bytes) {
        exercise(policy);
    }
});

//! Any text: the CIL front end must refuse it or make a policy that decides and can be written
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use security_server::cil;

mod exercise;
use exercise::exercise;

fuzz_target!(|text: &str| {
    if let Ok(policy) = cil::compile(&[("fuzz.cil", text)]) {
        exercise(policy);
    }
});

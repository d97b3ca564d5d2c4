//! The language, by small programs and their results.

use crate::common::{TARGETS, module, run};
use crate::programs::PROGRAMS;
use ecode::{NoHost, Value};

#[test]
fn small_programs_give_the_same_results_on_every_target() {
    for (text, want) in PROGRAMS {
        let module = module(text, "");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), "proc", &[]);
            assert_eq!(got, Ok(Some(Value::I64(*want))), "{target:?}: {text}\n{module}");
        }
    }
}

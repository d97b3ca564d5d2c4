//! No text makes loading panic, and every rule of what compiles leads back into the text or to
//! nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::{Source, Variables, load};

fuzz_target!(|text: &str| {
    let source = Source::Text {
        name: "fuzz.toml".into(),
        text: text.into(),
        directory: "/nonexistent".into(),
    };
    let variables = Variables {
        workspace: "/home/me/work".into(),
        home: "/home/me".into(),
        tmp: "/tmp/dewar".into(),
        user: "me".into(),
        kept: vec!["/home/me/.cache/dewar".into()],
        ..Variables::default()
    };
    let loaded = load(&source, &variables, &mut |names| {
        names.iter().map(|_| Ok(vec![[192, 0, 2, 1].into()])).collect()
    });
    if let Ok(compiled) = loaded {
        for line in 0..=compiled.cil.lines().count() + 1 {
            let _ = compiled.origin(line);
        }
    }
});

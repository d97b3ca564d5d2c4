//! Random programs of system calls: made from a seed, written as text, made smaller.

use crate::grammar::{attributes, descriptors, events, identity, names, processes, sockets};
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use std::fmt::Write as _;

/// A line of a program, or a block of lines that runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A call and its arguments. `%` stands for the directory of the program.
    Call(String),
    /// Where (`blocks.c`), and what happens there.
    Block(&'static str, Vec<Step>),
}

/// A program: what `performer.c` performs.
pub(crate) type Program = Vec<Step>;

/// The program of a seed.
pub(crate) fn generate(seed: u64) -> Program {
    let mut rng = SmallRng::seed_from_u64(seed);
    let length = rng.random_range(4..40);
    steps(&mut rng, length, 0)
}

fn steps(rng: &mut SmallRng, length: usize, depth: u32) -> Vec<Step> {
    let mut steps = Vec::with_capacity(length);
    while steps.len() < length {
        let dice = rng.random_range(0..200);
        let inner = rng.random_range(1..8);
        let mut block = |kind| Step::Block(kind, self::steps(rng, inner, depth + 1));
        steps.push(match dice {
            0..6 if depth < 2 => block("fork"),
            6..9 if depth < 2 => block("thread"),
            9..11 if depth < 2 => block("files"),
            11..13 if depth < 2 => block("place"),
            13..15 if depth < 2 => block("anew"),
            // Whoever is performed in turns has no such partner.
            15..20 if depth == 0 => block("beside"),
            20..22 if depth == 0 => block("thread_beside"),
            22..78 => Step::Call(names::call(rng)),
            78..94 => Step::Call(attributes::call(rng)),
            94..140 => Step::Call(descriptors::call(rng)),
            140..168 => Step::Call(sockets::call(rng)),
            168..180 => Step::Call(events::call(rng)),
            180..190 => Step::Call(processes::call(rng)),
            _ => Step::Call(identity::call(rng)),
        });
    }
    steps
}

/// The text that the performer reads, for the program that it counts as `number` in `directory`.
pub(crate) fn write(program: &[Step], directory: &str, number: usize) -> String {
    let mut text = String::new();
    write_steps(program, &mut text);
    text.push_str("end\n");
    // An abstract name must be this program's own.
    let own = directory.rsplit('/').next().unwrap_or_default();
    text.replace("@%NAME", &format!("@{own}-{number}"))
        .replace("@LONG", &"n".repeat(256))
        .replace('%', &format!("{directory}/{number}/w"))
}

fn write_steps(steps: &[Step], text: &mut String) {
    for step in steps {
        match step {
            Step::Call(call) => text.push_str(&format!("{call}\n")),
            Step::Block(kind, inner) => {
                let _ = writeln!(text, "{kind}");
                write_steps(inner, text);
                text.push_str("end\n");
            }
        }
    }
}

/// Programs with one step less, or with a block's steps in its place.
pub(crate) fn smaller(program: &[Step]) -> Vec<Program> {
    let mut found = Vec::new();
    // Halves first: what is left out does not have to be tried step by step.
    if program.len() > 3 {
        found.push(program[program.len() / 2..].to_vec());
        found.push(program[..program.len() / 2].to_vec());
    }
    for (n, step) in program.iter().enumerate().rev() {
        let with = |inner: &[Step]| [&program[..n], inner, &program[n + 1..]].concat();
        found.push(with(&[]));
        if let Step::Block(kind, inner) = step {
            found.push(with(inner));
            found.extend(smaller(inner).into_iter().map(|inner| with(&[Step::Block(kind, inner)])));
        }
    }
    found
}

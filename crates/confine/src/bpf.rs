//! Classic BPF for seccomp: from one rule per system call to a program the kernel takes.
//!
//! Our own, because the libraries fall short: `seccompiler` has no notification action, and
//! `libseccomp` needs a C library of the right version at run time. The program is a binary search
//! over the call's number, so that calls allowed whatever their arguments stay in the kernel's own
//! allow cache.

use libc::sock_filter;

/// The kernel's limit on a program (`BPF_MAXINSNS`).
const MAX_INSTRUCTIONS: usize = 4096;
/// `AUDIT_ARCH_X86_64` of `linux/audit.h`.
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Set in the numbers of x32 calls (`__X32_SYSCALL_BIT`).
const X32_BIT: u32 = 0x4000_0000;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Action {
    /// Runs at once.
    Allow,
    /// Fails in the kernel with this errno; `Errno(0)` pretends success.
    Errno(u16),
    /// Waits for the monitor.
    Notify,
}

/// A test of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Test {
    /// `(low 32 bits of argument) & mask == value`. The kernel reads such arguments as 32 bits
    /// wide.
    Masked { arg: u8, mask: u32, value: u32 },
    /// All 64 bits are zero.
    Null { arg: u8 },
    /// The low 32 bits of argument `arg`, from `low` to `high`.
    Range { arg: u8, low: u32, high: u32 },
    /// Argument `arg` is `value`, and argument `of` from `low` to `high`; of both the low 32 bits.
    Within { arg: u8, value: u32, of: u8, low: u32, high: u32 },
    /// Argument `arg` is `value`, and argument `of` has every bit of `mask`; of both the low 32
    /// bits.
    Flagged { arg: u8, value: u32, of: u8, mask: u32 },
}

/// The first test that holds decides; else `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Rule {
    pub(crate) tests: Vec<(Test, Action)>,
    pub(crate) otherwise: Action,
}

impl From<Action> for Rule {
    fn from(otherwise: Action) -> Self {
        Self { tests: Vec::new(), otherwise }
    }
}

/// The rules outgrew what the kernel takes.
#[derive(Debug, thiserror::Error)]
#[error("the system call filter would have {0} instructions; the kernel takes {MAX_INSTRUCTIONS}")]
pub struct TooLong(usize);

/// The program for `rules`, indexed by system call number; calls beyond it, x32 and i386 calls fail
/// with `ENOSYS`.
pub(crate) fn assemble(rules: &[Rule]) -> Result<Vec<sock_filter>, TooLong> {
    let unknown = Rule::from(Action::Errno(libc::ENOSYS as u16));
    let mut ranges: Vec<(u32, &Rule)> = Vec::new();
    for (nr, rule) in (0u32..).zip(rules.iter().chain([&unknown])) {
        if ranges.last().is_none_or(|(_, last)| *last != rule) {
            ranges.push((nr, rule));
        }
    }
    // `arch` and `nr` are the second and the first word of `struct seccomp_data`.
    let mut program = vec![
        load(4),
        jump(libc::BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
        ret(Action::Errno(libc::ENOSYS as u16)),
        load(0),
        jump(libc::BPF_JGE, X32_BIT, 0, 1),
        ret(Action::Errno(libc::ENOSYS as u16)),
    ];
    search(&ranges, &mut program);
    if program.len() > MAX_INSTRUCTIONS { Err(TooLong(program.len())) } else { Ok(program) }
}

/// Binary search over `ranges` (first number, rule), the number being in the accumulator.
fn search(ranges: &[(u32, &Rule)], out: &mut Vec<sock_filter>) {
    if let [(_, rule)] = ranges {
        return leaf(rule, out);
    }
    let (left, right) = ranges.split_at(ranges.len() / 2);
    let mut below = Vec::new();
    search(left, &mut below);
    // Conditional jumps reach 255 instructions; the unconditional one reaches everything.
    out.push(jump(libc::BPF_JGE, right[0].0, 0, 1));
    out.push(stmt(libc::BPF_JMP | libc::BPF_JA, below.len() as u32));
    out.append(&mut below);
    search(right, out);
}

fn leaf(rule: &Rule, out: &mut Vec<sock_filter>) {
    for (test, action) in &rule.tests {
        match *test {
            Test::Masked { arg, mask, value } => {
                out.push(load(low_word(arg)));
                out.push(stmt(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask));
                out.push(jump(libc::BPF_JEQ, value, 0, 1));
            }
            Test::Null { arg } => {
                out.push(load(low_word(arg)));
                out.push(jump(libc::BPF_JEQ, 0, 0, 3));
                out.push(load(low_word(arg) + 4));
                out.push(jump(libc::BPF_JEQ, 0, 0, 1));
            }
            Test::Range { arg, low, high } => {
                out.push(load(low_word(arg)));
                out.push(jump(libc::BPF_JGE, low, 0, 2));
                out.push(jump(libc::BPF_JGT, high, 1, 0));
            }
            Test::Within { arg, value, of, low, high } => {
                out.push(load(low_word(arg)));
                out.push(jump(libc::BPF_JEQ, value, 0, 4));
                out.push(load(low_word(of)));
                out.push(jump(libc::BPF_JGE, low, 0, 2));
                out.push(jump(libc::BPF_JGT, high, 1, 0));
            }
            Test::Flagged { arg, value, of, mask } => {
                out.push(load(low_word(arg)));
                out.push(jump(libc::BPF_JEQ, value, 0, 4));
                out.push(load(low_word(of)));
                out.push(stmt(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask));
                out.push(jump(libc::BPF_JEQ, mask, 0, 1));
            }
        }
        out.push(ret(*action));
    }
    out.push(ret(rule.otherwise));
}

/// Offset of the low half of an argument in `struct seccomp_data`, on a little-endian machine.
fn low_word(arg: u8) -> u32 {
    16 + 8 * u32::from(arg)
}

fn load(offset: u32) -> sock_filter {
    stmt(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn stmt(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | condition | libc::BPF_K) as u16, jt, jf, k }
}

fn ret(action: Action) -> sock_filter {
    let value = match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Errno(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
        Action::Notify => libc::SECCOMP_RET_USER_NOTIF,
    };
    stmt(libc::BPF_RET | libc::BPF_K, value)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs a program as the kernel would: the obvious interpreter of the instructions used here.
    pub(crate) fn run(program: &[sock_filter], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
        let word = |offset: u32| match offset {
            0 => nr,
            4 => arch,
            _ => {
                let arg = args[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { arg as u32 } else { (arg >> 32) as u32 }
            }
        };
        run_on(program, word)
    }

    /// The same, on whatever `word` says is at an offset of `struct seccomp_data`.
    pub(crate) fn run_on(program: &[sock_filter], word: impl Fn(u32) -> u32) -> u32 {
        let (mut pc, mut a) = (0usize, 0u32);
        loop {
            let i = program[pc];
            pc += 1;
            let code = u32::from(i.code);
            let (jeq, jge) = (libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_JMP | libc::BPF_JGE);
            let jgt = libc::BPF_JMP | libc::BPF_JGT;
            if code == libc::BPF_RET | libc::BPF_K {
                return i.k;
            } else if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                a = word(i.k);
            } else if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
                a &= i.k;
            } else if code == libc::BPF_JMP | libc::BPF_JA {
                pc += i.k as usize;
            } else if code == jeq | libc::BPF_K {
                pc += usize::from(if a == i.k { i.jt } else { i.jf });
            } else if code == jge | libc::BPF_K {
                pc += usize::from(if a >= i.k { i.jt } else { i.jf });
            } else if code == jgt | libc::BPF_K {
                pc += usize::from(if a > i.k { i.jt } else { i.jf });
            } else {
                panic!("instruction {code:#x} is not used by assemble");
            }
        }
    }

    fn decide(rule: &Rule, args: [u64; 6]) -> Action {
        let holds = |test: &Test| match *test {
            Test::Masked { arg, mask, value } => args[arg as usize] as u32 & mask == value,
            Test::Null { arg } => args[arg as usize] == 0,
            Test::Range { arg, low, high } => (low..=high).contains(&(args[arg as usize] as u32)),
            Test::Within { arg, value, of, low, high } => {
                args[arg as usize] as u32 == value
                    && (low..=high).contains(&(args[of as usize] as u32))
            }
            Test::Flagged { arg, value, of, mask } => {
                args[arg as usize] as u32 == value && args[of as usize] as u32 & mask == mask
            }
        };
        rule.tests.iter().find(|(test, _)| holds(test)).map_or(rule.otherwise, |(_, a)| *a)
    }

    fn any_rule() -> impl proptest::strategy::Strategy<Value = Rule> {
        use proptest::prelude::*;
        let action = || {
            prop_oneof![
                Just(Action::Allow),
                Just(Action::Notify),
                (0u16..3).prop_map(Action::Errno)
            ]
        };
        let test = prop_oneof![
            (0u8..6, 0u32..4, 0u32..4).prop_map(|(arg, mask, v)| Test::Masked {
                arg,
                mask,
                value: v & mask
            }),
            (0u8..6).prop_map(|arg| Test::Null { arg }),
            (0u8..6, 0u32..4, 0u32..4).prop_map(|(arg, low, high)| Test::Range { arg, low, high }),
            (0u8..6, 0u32..4, 0u8..6, 0u32..4, 0u32..4)
                .prop_map(|(arg, value, of, low, high)| Test::Within { arg, value, of, low, high }),
            (0u8..6, 0u32..4, 0u8..6, 0u32..4).prop_map(|(arg, value, of, mask)| Test::Flagged {
                arg,
                value,
                of,
                mask
            }),
        ];
        (proptest::collection::vec((test, action()), 0..3), action())
            .prop_map(|(tests, otherwise)| Rule { tests, otherwise })
    }

    proptest::proptest! {
        #[test]
        fn program_and_rules_agree_on_every_call(
            rules in proptest::collection::vec(any_rule(), 1..120),
            args in proptest::array::uniform6(proptest::prop_oneof![0u64..4, proptest::prelude::Just(1 << 32)]),
        ) {
            let program = assemble(&rules).unwrap();
            for (nr, rule) in rules.iter().enumerate() {
                let got = run(&program, AUDIT_ARCH_X86_64, nr as u32, args);
                proptest::prop_assert_eq!(got, ret(decide(rule, args)).k, "call {}", nr);
            }
        }
    }

    #[test]
    fn other_entry_points_and_unknown_numbers_fail() {
        let program = assemble(&[Rule::from(Action::Allow)]).unwrap();
        let enosys = ret(Action::Errno(libc::ENOSYS as u16)).k;
        let i386 = 0x4000_0003;
        for (arch, nr) in [(i386, 0), (AUDIT_ARCH_X86_64, X32_BIT), (AUDIT_ARCH_X86_64, 1)] {
            assert_eq!(run(&program, arch, nr, [0; 6]), enosys, "{arch:#x} {nr}");
        }
        assert_eq!(run(&program, AUDIT_ARCH_X86_64, 0, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }
}

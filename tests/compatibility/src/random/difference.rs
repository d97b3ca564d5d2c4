//! A difference between a program's results natively and under Dewar.

/// Calls that set attributes of files.
pub(crate) const SETS_ATTRIBUTES: &[&str] = &[
    "chmod",
    "fchmod",
    "fchmodat2",
    "chown",
    "fchown",
    "utimes",
    "utimens",
    "utime",
    "futimesat",
    "lchown",
    "fchmodat",
    "setxattr",
    "fsetxattr",
    "removexattr",
    "fremovexattr",
    "lremovexattr",
    "setxattrat",
    "removexattrat",
];

/// The first line in which the results of a program differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The call as the program has it; empty for a file that was left.
    pub(crate) call: String,
    /// What it returned, without its name.
    pub(crate) native: String,
    pub(crate) dewar: String,
    /// The whole program.
    pub(crate) program: String,
}

impl Difference {
    /// Whether the call has failed by these, natively and under Dewar.
    pub(crate) fn fails_by(&self, native: &str, dewar: &[&str]) -> bool {
        errno(&self.native) == native && dewar.contains(&errno(&self.dewar))
    }

    /// Whether it has come to more bytes under Dewar.
    pub(crate) fn is_more(&self) -> bool {
        let [native, dewar] = [&self.native, &self.dewar].map(|it| it.parse::<i64>());
        native.is_ok_and(|native| native >= 0 && dewar.is_ok_and(|dewar| dewar > native))
    }

    /// Word `n` of the call as a number: 0 is the name.
    pub(crate) fn number(&self, n: usize) -> i64 {
        self.call.split(' ').nth(n).and_then(|word| word.parse().ok()).unwrap_or(-1)
    }

    pub(crate) fn name(&self) -> &str {
        self.call.split(' ').next().unwrap_or_default()
    }
}

/// The errno of a result.
pub(crate) fn errno(result: &str) -> &str {
    result.strip_prefix("-1 ").unwrap_or("")
}

pub(crate) fn is_success(result: &str) -> bool {
    !result.starts_with("-1")
}

/// Of whose PID, user and group: user and group.
pub(crate) fn user(credentials: &str) -> &str {
    credentials.split_once(' ').map_or("", |(_, user)| user)
}

/// What is the same for everybody before results are compared: the set-ID bits of regular files in
/// modes such as `104755`. `open` grants no domain to set them; the calls succeed without them.
pub(crate) fn without_set_ids(line: &str) -> String {
    let plain = |word: &str| match word.as_bytes() {
        [b'1', b'0', bits @ b'2'..=b'7', _, _, _] if word.bytes().all(|it| it.is_ascii_digit()) => {
            format!("10{}{}", (bits - b'0') & 1, &word[3..])
        }
        _ => word.to_owned(),
    };
    line.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

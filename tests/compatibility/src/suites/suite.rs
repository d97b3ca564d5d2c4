//! The suites, and how each is run: a script that prints a line `CASE<TAB>RESULT` for each of its
//! cases. Its argument says whether `all` is run, or what is `quick`.

use crate::stage::Who;

/// See the file.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// What has to be installed, as Debian calls it.
    pub(crate) packages: &'static str,
    pub(crate) script: &'static str,
    /// What is to be done beforehand, natively.
    pub(crate) before: &'static str,
    /// It starts in a copy of what `scripts/suite-sources` has built by this name.
    pub(crate) source: Option<&'static str>,
    /// It has one that is run by `make test`.
    pub(crate) has_quick_part: bool,
    pub(crate) run_by: &'static [Who],
}

pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "stress-ng",
        packages: "stress-ng",
        script: include_str!("stress-ng.sh"),
        before: "",
        source: None,
        has_quick_part: true,
        // By root it tries what would harm the machine.
        run_by: &[Who::User],
    },
    Suite {
        name: "fio",
        packages: "fio",
        script: include_str!("fio.sh"),
        before: "",
        source: None,
        has_quick_part: true,
        run_by: &[Who::Root, Who::User],
    },
    Suite {
        name: "go",
        packages: "golang-go",
        script: include_str!("go.sh"),
        before: "for package in io/fs os os/exec os/signal os/user net syscall internal/poll; do
            go test -c -vet=off -o \"${package//\\//_}.test\" \"$package\" > /dev/null; done; true",
        source: None,
        has_quick_part: false,
        run_by: &[Who::Root, Who::User],
    },
    Suite {
        name: "python",
        packages: "libpython3.11-testsuite",
        script: concat!(include_str!("python-files.sh"), include_str!("python.sh")),
        before: "",
        source: None,
        has_quick_part: false,
        run_by: &[Who::Root, Who::User],
    },
    Suite {
        name: "python-processes",
        packages: "libpython3.11-testsuite",
        script: concat!(include_str!("python-processes.sh"), include_str!("python.sh")),
        before: "",
        source: None,
        has_quick_part: false,
        run_by: &[Who::Root, Who::User],
    },
    of_others(
        "coreutils",
        concat!(include_str!("automake.sh"), include_str!("coreutils.sh")),
        &[Who::Root, Who::User],
    ),
    of_others(
        "findutils",
        concat!(include_str!("automake.sh"), include_str!("findutils.sh")),
        &[Who::Root, Who::User],
    ),
    of_others("ltp", include_str!("ltp.sh"), &[Who::User]),
    of_others("nix", include_str!("crate.sh"), &[Who::Root, Who::User]),
    of_others("pjdfstest", include_str!("pjdfstest.sh"), &[Who::Root, Who::User]),
    of_others("tokio", include_str!("crate.sh"), &[Who::Root, Who::User]),
    of_others(
        "jq",
        concat!(include_str!("automake.sh"), include_str!("jq.sh")),
        &[Who::Root, Who::User],
    ),
    of_others("nodejs", include_str!("nodejs.sh"), &[Who::Root, Who::User]),
    of_others("perl", include_str!("perl.sh"), &[Who::Root, Who::User]),
    of_others("postgresql-15", include_str!("postgresql.sh"), &[Who::User]),
    of_others("redis", include_str!("redis.sh"), &[Who::User]),
    of_others("sqlite3", include_str!("sqlite3.sh"), &[Who::User]),
    of_others("tar", include_str!("tar.sh"), &[Who::Root, Who::User]),
    of_others("zlib", include_str!("zlib.sh"), &[Who::Root, Who::User]),
];

/// The suite of what `scripts/suite-sources` has fetched and built.
const fn of_others(name: &'static str, script: &'static str, run_by: &'static [Who]) -> Suite {
    Suite {
        name,
        packages: "what `scripts/suite-sources` builds",
        script,
        before: "",
        source: Some(name),
        has_quick_part: false,
        run_by,
    }
}

//! Programs in which something differed once that differs in nothing any more.

use crate::{
    performer::{Performer, Way},
    program::{Program, Step},
};
use libtest_mimic::Failed;

/// Each in lines, as the performer reads them.
const MENDED: &[&str] = &[
    // A name to be made that is there, or that nobody makes, in `/proc` of another process.
    "chdir /proc/self/fd\nfork\nlink .. /dev/null\nlink . c\nlink .. 0\nmkdirat -100 0 493\nend",
    // A directory of a process that has ended.
    "files\nopen /proc/self/fd 0 448\nend\nchdir /dev/fd/3",
    // Of a rename, a name that is too long.
    "mkdirat -100 d 493\nmknod -100 a 33188 0\nrename @LONG b\nrename a @LONG\nrename b @LONG\nrename @LONG m/n\nrename m/n @LONG\nrename @LONG .\nrename . @LONG\nrename d/@LONG a/b\nrename a/b d/@LONG\nrename @LONG @LONG\nrenameat2 -100 a -100 @LONG 1\nrenameat2 -100 a -100 @LONG 2\nrename a/@LONG b\nrename a d/@LONG/\nmkdirat -100 @LONG 493\nrmdir @LONG\nunlink @LONG\nlink @LONG b\nlink b @LONG\nlink a @LONG",
    // Of a rename, what is not there, to or from `/proc`.
    "rename a /proc/self/fd/3\nrename /proc/self/fd/9 a\nrename a /proc/self/cwd\nrename /proc/self/cwd/a /proc/self/fd/3\nrename /proc/self/fd/9 .\nrename a /proc/self/fd",
    // The root that openat2 has is a directory of `/proc`.
    "open /proc/self/fd 65536 0\nopenat2 3 /proc/self/fd 0 0 16 24\nopenat2 3 / 65536 0 16 24\nopenat2 3 /x/ 0 0 16 24\nopenat2 3 /proc/self/exe 66 320 18 24\nchdir /proc/self/fd\nopenat2 -100 /dev/fd/3 65536 0 16 24",
    // A script that is open for writing, and whose interpreter is not there.
    "open x 1090 2541\nrename t c\nfexec 3",
    // Extended attributes by directory, path and flags.
    "mknod -100 a 33188 0\nsymlinkat a -100 s\nopen a 2 0\nopen a 2097152 0\nsetxattrat -100 a user.b 0 5 0\nsetxattrat -100 s user.b 256 5 0\nsetxattrat 3 '' user.b 4096 5 0\nsetxattrat 4 '' user.b 4096 5 0\nsetxattrat -100 '' user.b 4096 5 0\nsetxattrat -100 a user.b 0 5 1\nsetxattrat -100 a user.c 0 5 2\nsetxattrat -100 a user.b 7 5 0\nsetxattrat -100 a user.b 0 100 4\ngetxattrat -100 a user.b 0 100 0\nremovexattrat -100 s user.b 0\nremovexattrat -100 s user.b 256\nremovexattrat -100 a user.b 0\nremovexattrat 4 '' user.b 4096\nremovexattrat -100 '' system.posix_acl_access 4096",
    // A slash behind what is no directory.
    "mknod -100 a 50175\nsymlinkat a/ -100 s\nsocketpair 1\nconnect 4 s\nconnect 4 a/",
    // A stream that has a peer is to be connected to the outside.
    "socketpair 1\nconnect 3 ''\nwrite 3 8\nreceive_fd 4 0\nsockname 3",
    // A datagram socket is to be connected to another family.
    "socket 2 2 0\nport 3\nconnect 3 a\nport 3\nsocket 10 2 0\nconnect 4 a\nport 4\nconnect_to 4 3 0",
    // A datagram socket is to send to another family.
    "any_socket 2 2 0\nsendto 3 @%NAME\nport 3\nconnect_to 600 3 0",
];

/// As themselves natively, in both modes.
pub(crate) fn differ_no_more(performer: &Performer) -> Result<(), Failed> {
    let program = |text: &&str| text.lines().map(|line| Step::Call(line.into())).collect();
    let programs: Vec<Program> = MENDED.iter().map(program).collect();
    let mut found = Vec::new();
    for way in Way::ALL {
        for (n, kind) in performer.differing(way, &programs) {
            let kind = kind.map_or_else(|kind| kind, |known| known.native.to_owned());
            found.push(format!("mode {}: program {n}: {kind}", way.name()));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n").into()) }
}

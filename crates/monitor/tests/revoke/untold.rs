//! What is held and hardly tells what it is.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    what_is_open_for_neither_is_taken,
    what_is_open_for_neither_is_taken_where_writing_is,
    watches_are_removed_where_no_births_are_told,
    what_a_device_has_made_is_taken_with_the_device,
];

/// Whether its descriptor leads to the file, and one that is a place alone still does.
const NEITHER: &str = r#"
neither, place = os.open("secret", 3), os.open("secret", os.O_PATH)
change()
leads = lambda fd: os.fstat(fd).st_ino == os.stat("secret").st_ino
said["neither"], said["place"] = leads(neither), leads(place)
say("again", lambda: os.open("secret", 3) and 1)
"#;

fn what_is_open_for_neither_is_taken(stage: &Stage) {
    let ran = stage.without_secret(NEITHER);
    check(&ran, &json!({ "neither": false, "place": true, "again": "EACCES" }));
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["replaced"]);
}

/// It is not opened anew to be read, which it was not.
fn what_is_open_for_neither_is_taken_where_writing_is(stage: &Stage) {
    let readonly = "[files]\nreadonly = ['${workspace}/secret*']\n";
    let ran = stage.change(("", readonly), "\"repair\"", NEITHER);
    check(&ran, &json!({ "neither": false, "place": true, "again": "EACCES" }));
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["replaced"]);
}

/// There, nothing tells by the number of a watched file which one it is.
fn watches_are_removed_where_no_births_are_told(stage: &Stage) {
    let ran = stage.change(
        ("", "[files]\ndeny = ['/dev/pts']\n"),
        "\"repair\"",
        r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
def watch(name, what=0x20):
    number = libc.inotify_add_watch(fd, name, what)
    if number < 0:
        raise OSError(ctypes.get_errno(), "watch")
    return number
said["watch"] = [watch(b"/dev/pts", 0x400), watch(b"public")]
change()
say("ignored", lambda: list(os.read(fd, 16)[:6]))
say("again", lambda: watch(b"/dev/pts"))
os.close(os.open("public", os.O_WRONLY))
say("kept", lambda: list(os.read(fd, 16)[:6]))
"#,
    );
    let event = |watch: u8, what: [u8; 2]| vec![watch, 0, 0, 0, what[0], what[1]];
    let want = json!({
        "watch": [1, 2], "ignored": event(1, [0, 0x80]), "again": "EACCES", "kept": event(2, [0x20, 0]),
    });
    check(&ran, &want);
    assert!(ran.is_complete());
    assert_eq!(ran.actions("watch"), ["removed"]);
}

/// A virtual machine, of which no descriptor of the device is left.
fn what_a_device_has_made_is_taken_with_the_device(stage: &Stage) {
    let ran = stage.change(
        ("[files]\nwrite = ['/dev/kvm']\n", ""),
        "\"repair\"",
        r#"
import fcntl
try:
    kvm = os.open("/dev/kvm", os.O_RDWR)
    machine = fcntl.ioctl(kvm, 0xae01, 0)
    made = [machine, fcntl.ioctl(machine, 0xae41, 0)]
    os.close(kvm)
except OSError:
    made = []
change()
said["made"] = len(made)
said["left"] = [os.readlink(f"/proc/self/fd/{fd}") for fd in made if "kvm" in os.readlink(f"/proc/self/fd/{fd}")]
"#,
    );
    if ran.said["made"] == 0 {
        eprintln!("note: no virtual machine can be made here, so none is taken");
        return;
    }
    check(&ran, &json!({ "made": 2, "left": [] }));
    assert!(ran.is_complete());
    assert_eq!(ran.actions("descriptor"), ["replaced"; 2]);
}

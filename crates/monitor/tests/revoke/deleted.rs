//! Files that the kernel calls deleted.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    a_name_that_ends_as_the_kernel_marks_what_is_deleted_is_a_name,
    memory_is_not_that_of_another_file_with_its_number,
];

fn a_name_that_ends_as_the_kernel_marks_what_is_deleted_is_a_name(stage: &Stage) {
    for name in ["key (deleted)", "public (deleted)"] {
        stage.file(name, "secret content");
    }
    let deny = "[files]\ndeny = ['${workspace}/key', '${workspace}/public (deleted)']\n";
    let ran = stage.change(
        ("", deny),
        "\"repair\"",
        r#"
names = ["key (deleted)", "public (deleted)"]
held = [os.open(name, os.O_RDONLY) for name in names]
mapped = mmap.mmap(held[0], 0, prot=mmap.PROT_READ)
change()
for name, fd in zip(names, held):
    say(name, lambda: os.read(fd, 6))
    say(f"again {name}", lambda: os.read(os.open(name, os.O_RDONLY), 6))
said["mapped"] = mapped[:6].decode()
"#,
    );
    let taken = json!({
        "key (deleted)": "secret", "again key (deleted)": "secret", "mapped": "secret",
        "public (deleted)": "EACCES", "again public (deleted)": "EACCES",
    });
    check(&ran, &taken);
}

/// By the name that it was mapped by, links followed, lies one of the same number elsewhere.
fn memory_is_not_that_of_another_file_with_its_number(stage: &Stage) {
    stage.file(
        "mounts",
        "mkdir keys other; mount -t tmpfs none keys; mount -t tmpfs none other
echo secret >keys/secret",
    );
    let ran = stage.change(
        ("", "[files]\ndeny = ['${workspace}/keys/secret']\n"),
        "\"repair\"",
        r#"
os.mkdir("keys/d")
os.link("keys/secret", "keys/d/x")
file = os.open("keys/d/x", os.O_RDONLY)
number = os.fstat(file).st_ino
shared = mmap.mmap(file, 0, prot=mmap.PROT_READ)
os.close(file)
os.unlink("keys/d/x")
os.rmdir("keys/d")
os.symlink("../other", "keys/d")
other = os.open("other/x", os.O_CREAT | os.O_RDWR)
said["same"] = os.fstat(other).st_ino == number
child = os.fork()
if child == 0:
    change()
    os.write(1, shared[:6])
    os._exit(0)
said["status"] = os.waitpid(child, 0)[1] & 0x7f
"#,
    );
    check(&ran, &json!({ "same": true, "status": 7 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("mapping"), ["unmapped"; 2]);
}

//! Essential programs where people will first try Dewar: without user namespaces, in a container,
//! inside of another sandbox.

use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};

pub(crate) const CASES: &[Case] = cases![
    work_goes_on_as_without_dewar,
    what_is_not_granted_is_refused_and_explained,
    the_doctor_says_what_is_lost,
];

/// Where the filter of a container refuses what Dewar cannot do without.
pub(crate) const CONTAINED: &[Case] = cases![a_container_without_unshare_is_told_what_to_allow];

fn a_container_without_unshare_is_told_what_to_allow(stage: &Stage) {
    let ran = run(stage.dewar(stage.call(), &bash("echo started")), b"");
    assert_eq!((ran.code(), ran.out().as_str()), (125, ""), "{}", ran.err());
    for part in ["unshare(CLONE_FS)", "nothing was started", "--security-opt"] {
        assert!(ran.err().contains(part), "{part}: {}", ran.err());
    }
}

fn work_goes_on_as_without_dewar(stage: &Stage) {
    stage.same("echo a | tr a b > f; (cat f; ls -l f | cut -c1-10) | tee g; mkdir d; mv g d; find . | sort; rm -r d").check();
    stage
        .same("git init -q .; echo a > f; git add f; git commit -qm x; echo b >> f; git diff --stat; git log --format=%s")
        .varies_below(".git")
        .check();
    stage.same("python3 -c 'import json, subprocess, threading; print(json.dumps(subprocess.getoutput(\"echo x\")))'").check();
    stage.same("printf 'int main(void) { return 3; }' > a.c; printf 'a: a.c\\n\\tcc -o a a.c\\n' > Makefile; make -s; ./a; echo $?").varies(&["a"]).check();
    stage
        .same("sqlite3 x.db 'create table t(a); insert into t values(1); select * from t'")
        .varies(&["x.db"])
        .check();
    stage.same("tar cf a.tar /etc/hostname 2> /dev/null; tar tf a.tar; gzip -c a.tar | gunzip | cmp - a.tar").varies(&["a.tar"]).check();
    stage.same("perl -e 'fork or exit 4; wait; print $? >> 8, \"\\n\"'; sleep 0.1 & kill $!; wait $!; echo $?").check();
}

fn what_is_not_granted_is_refused_and_explained(stage: &Stage) {
    let script = "cat ~/.ssh/id_ed25519 || echo refused; cat $OUTSIDE/file || echo refused; echo x > $OUTSIDE/new || echo refused; unshare -Ur true || echo refused";
    let ran = run(stage.dewar(stage.call(), &bash(script)), b"");
    assert_eq!(ran.out(), "refused\n".repeat(4), "{}", ran.err());
    let told = run(stage.control(&["explain"]), b"").out();
    for object in ["/.ssh/id_ed25519", "/file", "/new", "a new user namespace"] {
        // Of what the filter around Dewar refuses, nobody inside hears.
        let is_around = object.ends_with("namespace") && !stage.variant.has_namespaces();
        assert!(is_around || told.contains(object), "{object}: {told}");
    }
}

fn the_doctor_says_what_is_lost(stage: &Stage) {
    let told = run(stage.control(&["doctor"]), b"");
    assert_eq!(told.code(), 0, "{}{}", told.out(), told.err());
    if !stage.variant.has_namespaces() {
        assert!(
            told.out().contains("an ordinary user gets no other namespace")
                || stage.variant.is_root(),
            "{}",
            told.out()
        );
    }
}

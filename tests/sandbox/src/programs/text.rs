//! sed, patch, tar and others that rewrite and pack files.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    sed_edits_in_place,
    patch_applies_and_backs_up,
    tar_packs_and_unpacks_everything,
    compressors_replace_their_input,
];

fn sed_edits_in_place(stage: &Stage) {
    stage
        .same("sed -i s/one/two/ f; sed -i.bak s/two/three/ f; cat f f.bak; sed -i --follow-symlinks s/three/four/ l; sed -n p nothing; awk '{print > \"out-\" $1}' f; awk 'BEGIN { \"date +%Y\" | getline y; print y > 2000 }'")
        .before("echo one > f; chmod 604 f; ln -s f l")
        .check();
}

fn patch_applies_and_backs_up(stage: &Stage) {
    stage
        .same("patch -b f < p; cat f f.orig; patch -R f < p; patch f < p; patch f < p < /dev/null; diff -u g f > q; patch -d . -p0 < q; ls")
        .before("seq 20 > f; seq 20 | sed s/7/seven/ > g; diff -u f g > p; touch -d 2002-02-02 p")
        .varies(&["p", "q"])
        .check();
}

fn tar_packs_and_unpacks_everything(stage: &Stage) {
    stage
        .same("tar --sort=name --xattrs -cf t.tar a; mkdir x; tar --xattrs -xpf t.tar -C x; tar tvf t.tar | awk '{print $1, $6}'; tar czf - a | tar tzf - | wc -l; echo more > a/new; tar -rf t.tar a/new; tar --delete -f t.tar a/new; tar -xOf t.tar a/one; tar --diff -f t.tar; tar -xf t.tar nothing; tar -cf n.tar nothing; mkdir y; tar -xf t.tar -C y --strip-components 1; tar --keep-old-files -xf t.tar -C y --strip-components 1 2>/dev/null; echo $?")
        .before("mkdir -p a/b; echo one > a/one; ln a/one a/hard; ln -s b/two a/link; echo two > a/b/two; chmod 2750 a/b; chmod 444 a/b/two; mkfifo a/fifo; setfattr -n user.k -v v a/one; find a -exec touch -h -d 2003-03-03 {} +")
        .varies(&["t.tar"])
        .check();
}

fn compressors_replace_their_input(stage: &Stage) {
    stage
        .same("gzip -k f; gzip -n f; zcat f.gz | sha256sum; gzip -d f.gz; mv f g; gunzip f.gz; ls; gzip -9c g | gzip -dc | cmp - g; sha256sum g > sums; sha256sum -c sums; gzip f.gz")
        .before("seq 10000 > f; touch -d 2004-04-04 f")
        .noisy()
        .varies(&["f.gz"])
        .check();
}

//! The GNU utilities, find and xargs.

use crate::{
    Case, cases,
    process::run,
    stage::{How, Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    cp_keeps_modes_times_and_links,
    mv_renames_files_and_directories,
    links_are_made_and_followed,
    chmod_and_umask_set_modes,
    set_id_bits_are_left_out,
    touch_sets_times,
    directories_are_made_and_removed,
    install_copies_with_a_mode,
    sort_split_and_tee_work_on_large_files,
    stat_and_df_see_the_file_system,
    find_and_xargs_visit_everything,
    the_root_directory_is_listed,
    temporary_files_are_made,
    extended_attributes_are_kept,
    truncation_and_sparse_files_work,
];

/// Files of several kinds, with modes and times of their own.
const SAMPLE: &str =
    "mkdir -p a/b/c; echo one > a/one; echo two > a/b/two; printf %5000s x > a/b/c/large
    chmod 640 a/one; chmod 751 a/b; ln -s ../one a/b/link; ln a/one a/hard; mkfifo a/fifo
    touch -d '2001-02-03 04:05:06.789' a/one a/b/two a/b/c a/b";

fn cp_keeps_modes_times_and_links(stage: &Stage) {
    stage
        .same("cp -a a copy; cp -r a/b plain; cp -l a/one linked; cp -s $PWD/a/one sym; cp --sparse=always a/b/c/large s; cp -p a/one p; cp -u a/one p; cp a missing/x")
        .before(SAMPLE)
        .check();
}

fn mv_renames_files_and_directories(stage: &Stage) {
    stage
        .same("mv a/one first; mv a/b moved; mkdir d; mv -t d first moved; mv d/first d/moved/; mv -n d/moved/first a/hard; mv -T a d/e; mv d/e d/e/x; mv nothing x; mv d/moved d/moved; ls -R")
        .before(SAMPLE)
        .check();
}

fn links_are_made_and_followed(stage: &Stage) {
    stage
        .same("ln a/one h; ln -s a/b s; ln -sfn a s; ln -s loop2 loop1; ln -s loop1 loop2; cat loop1; cat s/one; ln s/b/link l; ln -L s/b/link deref; readlink -f s/b/link | sed \"s|$PWD||\"; readlink l; ln a x; ln -s dangling d; cat d; echo made > d; cat dangling; realpath --relative-to . s/b/../one; rm s; ls a; ls -d s/")
        .before(SAMPLE)
        .check();
}

fn chmod_and_umask_set_modes(stage: &Stage) {
    stage
        .same("umask; chmod -R u+w,g-rwx,o=t a; chmod 711 a/one; chmod +t a; umask 077; echo x > private; mkdir pd; umask 000; echo x > public; mkdir od; mkfifo pf; (umask 027; touch t; mkdir m; echo > e); umask; chmod 0 private; chmod 777 nothing; cp public c; stat -c '%A %n' *; python3 -c \"import os; fd=os.open('x',os.O_CREAT|os.O_WRONLY,0o606); os.fchmod(fd,0o1640); os.chmod('t',0o600,follow_symlinks=True)\"")
        .before(SAMPLE)
        .check();
}

/// Programs that copy modes go on, and everything but the bits is as it is natively.
fn set_id_bits_are_left_out(stage: &Stage) {
    stage
        .same("cp -p s p; cp s c; install -m 6755 s i; tar -xpf t.tar; chmod 2711 b; chmod u+s c; echo $?; chmod g+s d; mkdir -m 2750 e; chmod u+s f; stat -c '%A %n' d e f; chmod ug-s b c i p s")
        .before("echo s > s; chmod 6755 s; cp -p s b; tar -cf t.tar b; mkdir d; mkfifo f")
        .varies(&["t.tar"])
        .does_without(&["/work/b", "/work/c", "/work/i", "/work/p"])
        .check();
    let record = stage.record();
    for name in ["/work/b", "/work/c", "/work/i", "/work/p"] {
        let found = record.denials_of(name);
        let recorded = found.iter().any(|denial| denial.missing == ["setid"]);
        assert!(recorded, "{name} is not on record: {found:?}");
    }
}

fn touch_sets_times(stage: &Stage) {
    stage
        .same("touch -d '1999-12-31 23:59:59.123456789' a/one new; touch -a -d 2005-05-05 a/b/two; touch -h -d 2010-01-01 a/b/link; touch -r a/one ref; touch -c nothing; touch; stat -c '%n %x %y' a/b/two new ref; touch a/b; find a/b -maxdepth 0 -mmin -5; touch nodir/x")
        .before(SAMPLE)
        .check();
}

fn directories_are_made_and_removed(stage: &Stage) {
    stage
        .same("mkdir -p x/y/z; mkdir -m 700 m; mkdir x; rmdir x; rmdir x/y/z; rm -r a; rmdir -p x/y; mkdir n/o; mkdir t/; rm m; rm -rf m nothing; mkdir -p x/.; rmdir x/.; mkdir e; cd e; rmdir ../e; ls; pwd | sed 's/.*work//'; cd ..; unlink nothing; ls")
        .before(SAMPLE)
        .check();
}

fn install_copies_with_a_mode(stage: &Stage) {
    stage.same("install -D -m 755 a/one bin/x/tool; install -d -m 711 dir/sub; install -m 600 -p a/one dir; install a/one a/b/two dir/sub; ls -R bin dir").before(SAMPLE).check();
}

fn sort_split_and_tee_work_on_large_files(stage: &Stage) {
    stage
        .same("seq 300000 | sort -R --random-source=<(yes) -S 1M > shuffled; sort -n -S 1M --parallel=2 shuffled | tee t1 t2 | sha256sum; split -n 7 shuffled part.; cat part.* | cmp - shuffled && echo same; split -l 100000 t1 lines.; wc -l lines.*; sort -n -o t1 t1; dd if=t1 of=dd bs=4k count=10 conv=fsync status=none; shred -u -n 1 t2; uniq -c dd | tail -1; comm -12 <(head -5 t1) <(head -3 t1)")
        .check();
}

fn stat_and_df_see_the_file_system(stage: &Stage) {
    stage
        .same("stat -c '%n %F %s %h' a/one a/b a/fifo a/b/link /dev/null /etc/passwd; stat -L -c %F a/b/link; df . > /dev/null && echo df; du -s --apparent-size a/b/c/large; stat -f -c %T . ; test -w a/one && echo writable; test -x /bin/sh && echo executable; test -d /etc && ls -d /etc; id -u; whoami; date -r a/one +%Y; nproc; tty; pwd -P | sed 's/.*work//'; cat /etc/hostname > /dev/null; groups")
        .before(SAMPLE)
        .check();
}

fn find_and_xargs_visit_everything(stage: &Stage) {
    stage
        .same("find . | sort; find a -type f -print0 | sort -z | xargs -0 wc -c; find a -name 't*' -exec cat {} +; find a -newermt 2015-01-01 | sort; seq 1000 | xargs -n 50 -P 4 echo | wc -l; find a -depth -delete; find .")
        .before(SAMPLE)
        .check();
}

/// Its names, and nothing of what they stand for.
fn the_root_directory_is_listed(stage: &Stage) {
    stage
        .same("ls /; ls -d /*; cd /; ls .; python3 -c 'import os; print(sorted(os.listdir(\"..\")))'; find / -maxdepth 0; cd - > /dev/null; ls -a $PWD/; basename $(pwd)")
        .check();
    for how in [How::Dewar, How::Fast] {
        let words = bash(
            "ls / | wc -l; ls /root $HOME .. /home /var/lib $OUTSIDE; cat /etc/shadow; cd ..; ls",
        );
        let ran = run(stage.prepared(how, None, &words), b"");
        let count: usize = ran.out().trim().parse().expect("a number, and no name");
        assert!(count > 8 && ran.code() == 2, "{how:?} {}{}", ran.out(), ran.err());
    }
}

fn temporary_files_are_made(stage: &Stage) {
    stage
        .same(r#"f=$(mktemp); echo x > "$f"; cat "$f"; stat -c %a "$f"; d=$(mktemp -d); stat -c %a "$d"; mkdir "$d/e"; mv "$f" "$d/e/g"; cat "$d/e/g"; rm -r "$d"; t=$(mktemp -p .); mv "$t" fixed; ls"#)
        .check();
}

fn extended_attributes_are_kept(stage: &Stage) {
    stage
        .same("setfattr -n user.color -v red a/one; setfattr -n user.x -v y a/b; getfattr -d a/one; cp -a a copy; setfattr -x user.color a/one; getfattr -n user.color a/one; getfattr -h -d a/b/link; setfattr -n user.gone -v 1 nothing; getfattr -d copy/one; setfattr -h -n user.l -v 1 a/b/link")
        .before(SAMPLE)
        .check();
}

fn truncation_and_sparse_files_work(stage: &Stage) {
    stage
        .same("truncate -s 100 a/one new; truncate -s +5 new; fallocate -l 8192 f; fallocate -p -o 0 -l 4096 f; cp --reflink=auto f g; perl -e 'truncate(\"a/b/two\", 2) or die; truncate(\"nothing\", 2) or print \"$!\\n\"; truncate(\"a\", 2) or print \"$!\\n\"'; truncate -s 3 a/fifo; sync f; cmp f g")
        .before(SAMPLE)
        .check();
}

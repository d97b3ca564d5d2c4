//! git.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    git_makes_commits_and_branches,
    git_clones_from_a_directory,
    git_collects_garbage_and_keeps_worktrees,
];

/// Commits have the same identity in each run.
const DATES: &str =
    "export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'\n";
const CONFIG: &str = "git config --global init.defaultBranch main";
/// What git stamps with inode numbers and times.
const STAMPED: &[&str] = &["index", "FETCH_HEAD", "ORIG_HEAD"];

fn git_makes_commits_and_branches(stage: &Stage) {
    stage.prepare(CONFIG);
    let script = "cd r && git init -q && git add . && git commit -qm first && git log --format=%H%n%s
        git checkout -qb topic; echo more >> a; git commit -qam second; git checkout -q main; git mv a b; git commit -qm third
        git merge -q topic -m merged; git log --graph --format=%s; git diff HEAD~1 --stat; git stash list; echo z > z; git status --short
        git stash -uq; git stash pop -q; git tag -a v1 -m v1; git rebase -q HEAD~1; git describe; git reset -q --hard; git grep -n more";
    let script = format!("{DATES}{script}");
    stage
        .same(&script)
        .before("mkdir r; echo content > r/a; printf '#!/bin/sh\\n' > r/x; chmod +x r/x")
        .varies(STAMPED)
        .varies_below("r/.git/logs")
        .check();
}

fn git_clones_from_a_directory(stage: &Stage) {
    stage.prepare(CONFIG);
    let script = "git clone -q file://$PWD/origin.git clone && cd clone && git log --format=%H; echo more > more; git add more
        git commit -qm more; git push -q origin HEAD 2>&1; git -C ../origin.git log --format=%s main; git clone -q ../origin.git local; ls local
        git fetch -q; git pull -q --rebase; git remote -v | sed 's|file.*origin|origin|'; cd ..; git clone -q --depth 1 --bare file://$PWD/origin.git shallow; git -C shallow rev-list --count HEAD";
    let script = format!("{DATES}{script}");
    let before = format!(
        "{DATES} git init -q --bare origin.git; git clone -q origin.git w 2>/dev/null; cd w; for i in 1 2 3; do echo $i > $i; git add .; git commit -qm $i; done; git push -q origin HEAD:main; cd ..; rm -rf w"
    );
    stage.same(&script).before(&before).varies(STAMPED).varies_below("clone/.git").check();
}

fn git_collects_garbage_and_keeps_worktrees(stage: &Stage) {
    stage.prepare(CONFIG);
    let script = "cd r; git gc -q --prune=now; git count-objects; git worktree add -q ../w -b side; echo w > ../w/w; git -C ../w add .; git -C ../w commit -qm w
        git worktree list | wc -l; git log --format=%s side; git fsck; git repack -adq; git archive HEAD | tar t; git worktree remove ../w; git branch -D side | cut -d' ' -f1-3; git bundle create -q ../b HEAD; git verify-pack -v .git/objects/pack/*.idx | wc -l";
    let script = format!("{DATES}{script}");
    let before = format!(
        "{DATES} mkdir r; cd r; git init -q; for i in $(seq 20); do echo $i > f; git add f; git commit -qm $i; done"
    );
    stage.same(&script).before(&before).varies_below("r/.git").noisy().check();
}

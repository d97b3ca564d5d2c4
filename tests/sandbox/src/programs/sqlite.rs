//! SQLite, with its locks and its shared memory.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] =
    cases![sqlite_locks_out_a_second_writer, sqlite_writes_ahead_with_two_processes,];

fn sqlite_locks_out_a_second_writer(stage: &Stage) {
    stage
        .same(
            r#"sqlite3 db 'create table t(x); insert into t values(1)'
            coproc sqlite3 db; echo "begin exclusive; insert into t values(2); select 'held';" >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line
            sqlite3 db 'insert into t values(3)'; echo $?
            echo "commit; select 'free';" >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line; exec {COPROC[1]}>&-; wait
            sqlite3 db 'insert into t values(4); select * from t; vacuum; pragma integrity_check'"#,
        )
        .varies(&["db"])
        .does_without(&[".sqliterc"])
        .check();
}

fn sqlite_writes_ahead_with_two_processes(stage: &Stage) {
    stage
        .same(
            r#"sqlite3 db 'pragma journal_mode=wal; create table t(x)'
            insert() { for i in $(seq 15); do sqlite3 -cmd '.timeout 20000' db "insert into t values($i)"; done; }
            insert & insert & wait; sqlite3 db 'select count(*), sum(x) from t'; sqlite3 db .dump | sort | sha256sum; ls"#,
        )
        .varies(&["db"])
        .does_without(&[".sqliterc"])
        .check();
}

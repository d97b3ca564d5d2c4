//! bash.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    pipelines_and_redirections_work,
    here_documents_and_strings_are_read,
    process_substitution_connects_both_ways,
    job_control_waits_for_background_jobs,
    traps_run_on_signals_and_exit,
    standard_streams_have_their_names,
    a_broken_pipe_ends_the_writer,
    two_thousand_short_processes_run,
];

fn pipelines_and_redirections_work(stage: &Stage) {
    stage
        .same(
            r#"set -o pipefail
            seq 1 1000 | grep 7 | sort -rn | head -5 > out; cat out
            { echo to-out; echo to-err >&2; } > both 2>&1; cat both >> out
            exec 5<> rw; echo through >&5; exec 5>&-; cat rw
            set -C; echo x > out 2>/dev/null || echo kept
            echo y >| out; cat < out; false | true; echo "status $?"; yes | head -3"#,
        )
        .check();
}

fn here_documents_and_strings_are_read(stage: &Stage) {
    stage
        .same(
            "cat <<END > doc\nhome is ${#HOME} long\nEND\ncat doc; tr a-z A-Z <<< word; \
             cat <<'END' | wc -c\n$unexpanded\nEND\nhead -c 200000 /dev/zero | tr '\\0' x > big\n\
             cat <<< \"$(cat big)\" | wc -c",
        )
        .check();
}

fn process_substitution_connects_both_ways(stage: &Stage) {
    stage
        .same(
            r#"> reversed; diff <(seq 1 5) <(seq 1 6); seq 9 | tee >(sort -r > reversed) > plain
            wait $!; paste <(echo a) <(echo b) <(echo c)
            for ((i = 0; i < 400 && $(wc -l < reversed) < 9; i++)); do sleep 0.05; done; cat reversed plain"#,
        )
        .check();
}

fn job_control_waits_for_background_jobs(stage: &Stage) {
    stage
        .same(
            r#"set -m; for i in 1 2 3; do (exit $i) & pids[i]=$!; done
            for i in 1 2 3; do wait ${pids[i]}; echo "$i ended with $?"; done
            sleep 60 & kill -STOP %1; kill -CONT %1; kill %1; wait %1 2> /dev/null; echo "killed: $?"
            coproc cat; echo hello >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo "$line""#,
        )
        .noisy()
        .check();
}

fn traps_run_on_signals_and_exit(stage: &Stage) {
    stage
        .same(
            r#"trap 'echo usr1' USR1; trap 'echo leaving; exit 7' TERM; trap 'echo bye' EXIT
            kill -USR1 $$; (trap - EXIT; sleep 0.2; kill -TERM $$) & while :; do sleep 0.05; done"#,
        )
        .check();
}

fn standard_streams_have_their_names(stage: &Stage) {
    stage
        .same(
            r#"echo a > /dev/stdout; echo b > /dev/stderr; cat /dev/stdin; echo c | cat /dev/fd/0
            exec 7< in; cat /dev/fd/7; exec 8> out; echo d > /proc/self/fd/8; echo e > /dev/fd/8; cat out
            ls -l /proc/self/fd/7 | sed 's/.*-> //'; echo f > /dev/null; [ -e /dev/fd/8 ] && echo there"#,
        )
        .before("echo 'from a file' > in")
        .input(b"from standard input\n")
        .check();
}

fn a_broken_pipe_ends_the_writer(stage: &Stage) {
    stage
        .same("yes | head -1; echo ${PIPESTATUS[@]}; (trap '' PIPE; yes 2> err | head -1; cat err)")
        .check();
}

fn two_thousand_short_processes_run(stage: &Stage) {
    stage
        .same("for ((i = 0; i < 1500; i++)); do (exit 3); done; for ((i = 0; i < 500; i++)); do /bin/true; done; echo $i")
        .check();
}

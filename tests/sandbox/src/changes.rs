//! Policy that changes while a program runs: what it loses, keeps, and gets back.

mod connections;
mod kernel;
mod left;
mod moving;
mod reach;
mod running;
mod silent;

pub(crate) use connections::SURROUNDED;

use crate::{Case, cases, dewar::Call, process::until, stage::Stage};
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use running::{LOOP, Running, data, done, profile, refused, stage_says};

/// The cases of this part.
pub(crate) const CASES: &[&[Case]] = &[
    connections::CASES,
    SURROUNDED,
    kernel::CASES,
    left::CASES,
    moving::CASES,
    reach::CASES,
    silent::CASES,
    cases![
        a_file_is_taken_from_a_loop_and_given_back,
        a_descriptor_that_is_held_is_taken,
        a_file_in_a_directory_that_was_closed_is_taken,
        a_file_is_taken_where_a_pattern_hides_what_is_not_there,
        writing_is_taken_and_reading_stays,
        a_domain_loses_what_others_keep,
        changes_at_once_are_made_one_after_another,
        a_run_may_end_during_a_change,
        what_cannot_be_done_changes_nothing,
        another_profile_takes_over,
        after_everything_was_taken_the_run_ends,
        mode_fast_says_what_it_cannot_take,
        a_run_is_found_by_id_and_name,
    ],
];

fn a_file_is_taken_from_a_loop_and_given_back(stage: &Stage) {
    data(stage);
    let running = Running::trying(stage, stage.call(), "cat data");
    assert_eq!(running.attempt(), "yes");
    let receipt = done(stage, &["revoke", "--file", "${workspace}/d*a"]);
    assert!(receipt.contains("complete after"), "{receipt}");
    assert_eq!(running.attempt(), "no");
    done(stage, &["grant", "--file", "${workspace}/d*a"]);
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "last", "--exec", "/usr/bin/cat"]);
    assert_eq!(running.attempt(), "no");
    done(stage, &["grant", "--all"]);
    assert_eq!(running.attempt(), "yes");
    let history = done(stage, &["policy", "history"]);
    let ran = running.stop();
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let told = done(stage, &["explain"]);
    for part in
        ["dewar revoke --file '${workspace}/d*a'", "dewar grant --file", "dewar grant --all"]
    {
        assert!(history.contains(part) && told.contains(part), "{part}: {history}\n{told}");
    }
    assert!(told.contains("revoked by `dewar revoke --file '${workspace}/d*a'` at 20"), "{told}");
    assert_eq!(stage_says(stage, &["ps"]).out(), "nothing runs\n");
}

fn a_descriptor_that_is_held_is_taken(stage: &Stage) {
    data(stage);
    let call = stage.call();
    let script = format!(
        "exec 7<data 8<other; {}",
        LOOP.replace("ATTEMPT", "head -c 0 <&7 && head -c1 <&7 && head -c1 <&8")
    );
    // Read to its end, it would say nothing: it grows.
    stage.file(&stage.work().join("data"), &"x".repeat(100_000));
    stage.file(&stage.work().join("other"), &"x".repeat(100_000));
    let running = Running::start(stage, call, &script);
    assert_eq!(running.attempt(), "yes");
    let receipt = done(stage, &["revoke", "--file", "data", "--json"]);
    assert!(receipt.contains("\"descriptor\": 7"), "{receipt}");
    assert_eq!(running.attempt(), "no");
    running.stop();
}

fn a_file_in_a_directory_that_was_closed_is_taken(stage: &Stage) {
    stage.prepare("mkdir keys; echo secret > keys/secret");
    let hide = "ln keys/secret other; exec 9<other; chmod 000 keys";
    let attempt = "cat other || { chmod 700 keys; cat keys/secret; got=$?; chmod 000 keys; \
                   test $got = 0; } || head -c 0 /dev/fd/9";
    let script = format!("{hide}; {}", LOOP.replace("ATTEMPT", attempt));
    let running = Running::start(stage, stage.call(), &script);
    assert_eq!(running.attempt(), "yes");
    let ran = stage_says(stage, &["revoke", "--file", "${workspace}/keys/secret"]);
    // To look into it takes a capability, which an ordinary user has in a namespace of its own.
    let looks = stage.variant.has_namespaces();
    assert_eq!(ran.code(), i32::from(!looks), "{}{}", ran.out(), ran.err());
    if looks {
        assert_eq!(running.attempt(), "no");
    }
    running.stop();
    stage.prepare("chmod 700 keys");
}

fn a_file_is_taken_where_a_pattern_hides_what_is_not_there(stage: &Stage) {
    stage.prepare("mkdir ok; echo data > ok/data");
    let profile = profile(stage, "files.hide = [\"${workspace}/**/.env\"]\n");
    let call = Call { profile: Some(&profile), ..stage.call() };
    for taken in ["${workspace}/ok", "${workspace}/**/da*", "${workspace}/ok/.env"] {
        let running = Running::trying(stage, call, "cat ok/data");
        assert_eq!(running.attempt(), "yes");
        done(stage, &["revoke", "--file", taken]);
        let expected = if taken.ends_with(".env") { "yes" } else { "no" };
        assert_eq!(running.attempt(), expected, "{taken}");
        running.stop();
        stage.prepare("rm stop log");
    }
    // What is hidden stays so: taking it does not show that it is there.
    stage.prepare("echo secret > ok/.env");
    let profile =
        self::profile(stage, "hiding = \"strict\"\nfiles.hide = [\"${workspace}/**/.env\"]\n");
    let call = Call { profile: Some(&profile), ..stage.call() };
    let running = Running::trying(stage, call, "[ -e ok/.env ]");
    assert_eq!(running.attempt(), "no");
    done(stage, &["revoke", "--file", "${workspace}/ok"]);
    assert_eq!(running.attempt(), "no");
    running.stop();
}

fn writing_is_taken_and_reading_stays(stage: &Stage) {
    data(stage);
    let running = Running::trying(stage, stage.call(), "cat data && ! echo more >> data");
    assert_eq!(running.attempt(), "no");
    done(stage, &["revoke", "--file", "data", "--write"]);
    assert_eq!(running.attempt(), "yes");
    let told = stage.work().join("data").metadata().expect("the file").len();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(stage.work().join("data").metadata().expect("the file").len(), told);
    running.stop();
}

fn a_domain_loses_what_others_keep(stage: &Stage) {
    data(stage);
    let rules = "[domains.tac]\nexec = [\"/usr/bin/tac\"]\n";
    let profile = profile(stage, rules);
    let call = Call { profile: Some(&profile), ..stage.call() };
    let running = Running::trying(stage, call, "cat data && ! tac data");
    assert_eq!(running.attempt(), "no");
    refused(stage, &["revoke", "--domain", "tca", "--file", "data"], 1, "did you mean `tac`?");
    done(stage, &["revoke", "--domain", "tac", "--file", "data"]);
    assert_eq!(running.attempt(), "yes");
    done(stage, &["grant", "--domain", "tac", "--file", "data"]);
    assert_eq!(running.attempt(), "no");
    running.stop();
}

fn changes_at_once_are_made_one_after_another(stage: &Stage) {
    data(stage);
    let running = Running::trying(stage, stage.call(), "cat data || cat other");
    assert_eq!(running.attempt(), "yes");
    let patterns = ["data", "other", "a*", "b*", "c*", "x/**/y"];
    let spawn = |pattern: &&str| {
        let mut command = stage.control(&["revoke", "--json", "--file", pattern]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start `dewar`")
    };
    let children: Vec<Child> = patterns.iter().map(spawn).collect();
    let mut states = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("wait");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let change: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        states.push(change["receipt"]["seqno"].as_u64().expect("a policy state"));
    }
    states.sort_unstable();
    states.dedup();
    assert_eq!(states.len(), patterns.len(), "two receipts for one state: {states:?}");
    assert_eq!(running.attempt(), "no");
    let history = done(stage, &["policy", "history", "--json"]);
    let history: Vec<serde_json::Value> = serde_json::from_str(&history).expect("JSON");
    assert_eq!(history.len(), patterns.len());
    running.stop();
}

fn a_run_may_end_during_a_change(stage: &Stage) {
    data(stage);
    for round in 0..6 {
        let script = format!(
            "while [ ! -e go{round} ]; do sleep 0.02; done; sleep 0.2{round}; exec 7<data; cat data >/dev/null; exit 7"
        );
        let mut running = Running::start(stage, stage.call(), &script);
        stage.file(&stage.work().join(format!("go{round}")), "");
        let ended = loop {
            let ran = stage_says(stage, &["revoke", "last", "--file", "other"]);
            assert!([0, 1, 2].contains(&ran.code()), "{}", ran.err());
            if ran.code() == 2 {
                break ran;
            }
        };
        assert!(ended.err().contains("nothing runs"), "{}", ended.err());
        let ran = running.wait();
        assert_eq!(ran.code(), 7, "{}", ran.err());
    }
}

fn what_cannot_be_done_changes_nothing(stage: &Stage) {
    data(stage);
    let offline = stage.without_loopback();
    let running =
        Running::trying(stage, Call { profile: Some(&offline), ..stage.call() }, "cat data");
    for (arguments, code, part) in [
        (&["revoke", "nobody", "--all"][..], 2, "no run is called `nobody`"),
        (&["revoke", "--file", "/a["], 1, "a `[` is not closed"),
        (&["revoke", "--file", "${nothing}/x"], 1, "unknown variable"),
        (&["revoke", "--net", "https://example.org"], 1, "it is a URL"),
        (&["revoke", "--domain", "git", "--all"], 1, "domains here are main"),
        (&["grant", "--net", "192.0.2.1:80"], 1, "started without a network"),
        (&["grant", "--exec", "/srv"], 1, "settled in the kernel"),
        (&["policy", "load", "nothing"], 2, "no profile is called `nothing`"),
        (&["policy", "load", "agent"], 1, "cannot be given while it runs: datagram sockets"),
    ] {
        refused(stage, arguments, code, part);
        assert_eq!(running.attempt(), "yes", "{arguments:?}");
    }
    // Nothing of it is in the history, and the profile holds.
    assert_eq!(done(stage, &["policy", "history"]), "nothing was changed\n");
    let domains = profile(stage, "[domains.tac]\nexec = [\"/usr/bin/tac\"]\n");
    refused(stage, &["policy", "load", &domains], 1, "another domain");
    assert_eq!(running.attempt(), "yes");
    running.stop();
}

fn another_profile_takes_over(stage: &Stage) {
    data(stage);
    stage.file(&stage.home().join("log"), "");
    let running = Running::trying(stage, stage.call(), "cat data");
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "--file", "other"]);
    let hides = profile(stage, "files.hide = [\"${workspace}/data\"]\n");
    // Nothing was hidden among what exists, or there is no view: looking at names is not decided.
    let loads = ["policy", "load", "last", &hides];
    refused(stage, &loads, 1, "cannot be taken back while it runs: seeing that");
    assert_eq!(running.attempt(), "yes");
    let denies = profile(stage, "files.deny = [\"${workspace}/data\"]\n");
    done(stage, &["policy", "load", "last", &denies]);
    assert_eq!(running.attempt(), "no");
    assert!(done(stage, &["ps"]).contains("profile.toml"));
    done(stage, &["policy", "load", "workspace"]);
    assert_eq!(running.attempt(), "yes");
    running.stop();
}

fn after_everything_was_taken_the_run_ends(stage: &Stage) {
    let mut running = Running::trying(stage, stage.call(), "true");
    assert_eq!(running.attempt(), "yes");
    let ran = stage_says(stage, &["revoke", "--all"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());
    assert!(ran.out().contains("everything"), "{}", ran.out());
    let ended = running.wait();
    assert_eq!(ended.code(), 137, "{}", ended.err());
}

fn mode_fast_says_what_it_cannot_take(stage: &Stage) {
    data(stage);
    let call = Call { fast: true, ..stage.call() };
    let mut running = Running::trying(stage, call, "cat data");
    if !stage.variant.has_namespaces() {
        // Without a view, reading is decided in this mode, too.
        done(stage, &["revoke", "--file", "data"]);
        assert_eq!(running.attempt(), "no");
        running.stop();
        return;
    }
    refused(stage, &["revoke", "--file", "data"], 1, "mode `fast`");
    refused(stage, &["revoke", "--file", "data", "--kill", "--domain", "main"], 1, "mode `fast`");
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "--file", "other", "--write"]);
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "--file", "data", "--kill"]);
    assert_eq!(running.wait().code(), 137);
}

fn a_run_is_found_by_id_and_name(stage: &Stage) {
    let running = Running::trying(stage, stage.call(), "true");
    let all: serde_json::Value =
        serde_json::from_str(&done(stage, &["ps", "--json"])).expect("JSON");
    let id = all[0]["id"].as_str().expect("an id").to_owned();
    assert!(all[0]["processes"][0]["context"].as_str().expect("a context").contains("main_t"));
    let second = stage.control(&["run", "--name", "second", "--", "sleep", "60"]).spawn();
    let second = Running { stage, child: Some(second.expect("start `dewar`")) };
    until(|| stage_says(stage, &["policy", "history", "second"]).status.success().then_some(()))
        .expect("it is found by its name");
    refused(stage, &["policy", "history"], 2, "which run?");
    refused(stage, &["run", "--name", "second", "--", "true"], 2, "is called `second` already");
    for name in [&id, &id[..5], "second", "last"] {
        done(stage, &["policy", "history", name]);
    }
    let top = done(stage, &["top", "--once", "--json", "--interval", "0.1"]);
    let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    let (runs, rates) = (top["runs"].as_array().expect("runs"), &top["runs"][0]["rates"]);
    assert_eq!(runs.len(), 2, "{top}");
    assert!(
        rates.as_array().expect("rates").iter().any(|rate| rate["queries"].as_f64() > Some(0.0)),
        "{top}"
    );
    // Without a terminal: table after table, until nobody reads any more.
    let mut tables = stage.control(&["top", "--interval", "0.1"]);
    let mut tables = tables.stdout(Stdio::piped()).spawn().expect("start `dewar top`");
    let out = BufReader::new(tables.stdout.take().expect("a pipe"));
    let heads = out.lines().map_while(Result::ok).filter(|line| line.contains("by server"));
    assert_eq!(heads.take(5).count(), 5);
    assert!(tables.wait().expect("it ends").success());
    drop(second);
    running.stop();
}

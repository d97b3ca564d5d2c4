//! Attacks on what files hold, and on where labels come from.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{SECRET, Stage, held},
};

pub(crate) const CASES: &[Case] = cases![
    naming_a_secret_in_every_way,
    swapping_paths_and_links_while_they_are_decided,
    renaming_around_a_protected_directory,
    renaming_the_parent_of_a_hidden_file,
    hiding_inside_what_the_view_puts_back,
    making_programs_that_lend_their_owners_ids,
    executing_what_can_only_be_read,
];

fn naming_a_secret_in_every_way(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    let secret = secret.to_str().expect("UTF-8");
    for fast in [false, true] {
        let call = Call { fast, ..stage.call("workspace") };
        // The shell hands the root directory on as descriptor 9.
        let attack = stage.command(call, "read_secret", &[secret, "9"]);
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "exec \"$@\" 9</", "sh"])
            .arg(attack.get_program())
            .args(attack.get_args());
        held(&stage.like(shell).output().expect("start `sh`"));
    }
    assert_eq!(std::fs::read_to_string(secret).expect("the secret"), SECRET);
}

fn swapping_paths_and_links_while_they_are_decided(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    let outside = stage.file("outside", "outside");
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    stage.holds("workspace", "swap", &[&text(&secret), &text(&outside)]);
    assert_eq!(std::fs::read_to_string(outside).expect("the file"), "outside");
}

fn renaming_around_a_protected_directory(stage: &Stage) {
    let profile = stage.profile("[files]\nreadonly = [\"${workspace}/git/hooks\"]");
    let old = stage.file("work/git/hooks/old", "old");
    stage.holds(&profile, "rename_around", &[]);
    assert_eq!(std::fs::read_to_string(old).expect("the file"), "old");
}

fn renaming_the_parent_of_a_hidden_file(stage: &Stage) {
    let profile = stage.profile("[files]\nhide = [\"${workspace}/config/token\"]");
    stage.file("work/config/token", SECRET);
    stage.holds(&profile, "rename_hidden", &[]);
}

fn hiding_inside_what_the_view_puts_back(stage: &Stage) {
    let hides = "hide = [\"${workspace}/hidden\", \"${home}/cache/token\"]";
    let rules = "write = [\"${home}/cache\"]\ndeny = [\"${workspace}/denied\"]";
    let profile = stage.profile(&format!("[files]\n{rules}\n{hides}"));
    let secrets =
        ["work/hidden", "work/denied", "cache/token"].map(|name| stage.file(name, SECRET));
    let secrets = secrets.each_ref().map(|path| path.to_str().expect("UTF-8"));
    stage.holds(&profile, "read_plainly", &secrets);
}

fn making_programs_that_lend_their_owners_ids(stage: &Stage) {
    stage.holds("workspace", "lend_ids", &[]);
}

fn executing_what_can_only_be_read(stage: &Stage) {
    let profile = stage.profile("[files]\nread = [\"${home}/data\"]");
    let program = stage.program("data/program", "escaped");
    stage.holds(&profile, "execute", &[program.to_str().expect("UTF-8")]);
}

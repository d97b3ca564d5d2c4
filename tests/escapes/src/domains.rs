//! Attacks on the borders between domains of one sandbox.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{Stage, Variant, held},
};

pub(crate) const CASES: &[Case] = cases![
    looking_into_another_domain,
    using_by_a_handle_what_another_domain_has_open,
    entering_a_domain_with_a_library,
    children_of_a_process_that_changes_its_domain,
    attaching_to_what_enters_a_domain,
    reaching_by_a_number_that_is_anothers_by_then,
    changing_a_process_outside_by_a_number_that_is_its_by_then,
    following_links_into_a_domain_while_it_is_entered,
    opening_files_of_what_will_enter_a_domain,
    swapping_paths_in_every_domain,
    keeping_a_label_over_an_exec_by_a_thread,
    opening_files_of_what_enters_a_domain,
    taking_filters_and_personalities_into_a_domain,
    executing_memory_of_another_domain,
    executing_by_the_header_of_another_program,
    signalling_a_group_that_changes,
    reaching_members_of_a_group_that_have_entered_a_domain,
    having_a_domain_killed_by_the_death_of_its_parent,
    reading_what_a_process_of_another_domain_leaves,
    meeting_another_domain_in_shared_memory,
    leading_another_domain_by_links,
    leading_another_domain_to_a_server,
];

/// The same files for both, but for one that only the vault may write.
fn vault(stage: &Stage) -> String {
    stage.program("work/vault", "vault");
    stage.file("vault", "untouched");
    stage.profile(
        "[domains.vault]\nexec = [\"${workspace}/vault\"]\nfiles.write = [\"${home}/vault\"]",
    )
}

fn looking_into_another_domain(stage: &Stage) {
    stage.holds(&vault(stage), "look_inside", &[]);
    // With the same rights on files, reading is left to the kernel where it can be.
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "look_inside", &[]);
}

fn using_by_a_handle_what_another_domain_has_open(stage: &Stage) {
    stage.program("work/vault", "vault");
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "held_by_handle", &[]);
}

fn entering_a_domain_with_a_library(stage: &Stage) {
    let profile = vault(stage);
    stage.program("work/library", "library");
    stage.holds(&profile, "preload", &[]);
    assert!(!stage.work().join("loaded").exists(), "the library has been loaded");
    // What has no loader hands the caller's environment on.
    stage.program("work/static_gate", "static_gate");
    let gate = stage.profile("[domains.gate]\nexec = [\"${workspace}/static_gate\"]");
    stage.holds(&gate, "preload", &["./static_gate"]);
    assert!(!stage.work().join("loaded").exists(), "the library has been loaded");
    // A domain that believes another one says so.
    let other = "[domains.other]\nexec = [\"${workspace}/other\"]\n";
    for (believed, loaded) in [("other", false), ("main", true)] {
        let vault = "[domains.vault]\nexec = [\"${workspace}/vault\"]";
        let profile = stage.profile(&format!("{other}{vault}\nnoatsecure = [\"{believed}\"]"));
        stage.holds(&profile, "preload", &[]);
        assert_eq!(stage.work().join("loaded").exists(), loaded, "{believed}");
    }
}

fn children_of_a_process_that_changes_its_domain(stage: &Stage) {
    let profile = vault(stage);
    let file = stage.home().join("vault");
    let name = file.to_str().expect("UTF-8");
    stage.holds(&profile, "children", &[name]);
    stage.holds(&profile, "children", &[name, "and threads"]);
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "untouched");
}

fn attaching_to_what_enters_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "attach", &[]);
}

/// Where numbers come again soon: `kernel.pid_max` of 32,768, and no PID namespace, which has more.
fn reaching_by_a_number_that_is_anothers_by_then(stage: &Stage) {
    if stage.variant != Variant::Bare {
        return;
    }
    stage.program("work/vault", "vault");
    stage.program("work/gate", "reuse_number");
    let profile = stage.profile(
        "[domains.gate]\nexec = [\"${workspace}/gate\"]\n\
         [domains.vault]\nexec = [\"${workspace}/vault\"]\nfrom = [\"gate\"]",
    );
    for way in ["trace", "signal", "tune"] {
        let attack = stage.command(stage.call(&profile), "reuse_number", &[way]).output();
        held(&attack.expect("start `dewar`"));
    }
}

/// The same with somebody outside, in a run with one domain.
fn changing_a_process_outside_by_a_number_that_is_its_by_then(stage: &Stage) {
    if stage.variant != Variant::Bare {
        return;
    }
    stage.file("work/hidden", "hidden");
    let profile = stage.profile("[files]\nhide = [\"${workspace}/hidden\"]");
    let mut outsider = std::process::Command::new(stage.program("outsider", "outsider"));
    outsider.arg(stage.work().join("number"));
    let mut outsider = stage.like(outsider).spawn().expect("start the one outside");
    // The kernel alone keeps signals inside elsewhere.
    let unscoped = Call { unscoped: true, ..stage.call(&profile) };
    let ways = [
        ("outside", stage.call(&profile)),
        ("outside_group", stage.call(&profile)),
        ("outside_signal", unscoped),
        ("outside_owner", unscoped),
    ];
    let attacks = ways.map(|(way, call)| stage.command(call, "reuse_number", &[way]).output());
    let ended = outsider.try_wait().expect("look");
    outsider.kill().expect("kill the one outside");
    outsider.wait().expect("its end");
    attacks.into_iter().for_each(|attack| held(&attack.expect("start `dewar`")));
    assert_eq!(ended, None, "a process outside was changed");
}

fn following_links_into_a_domain_while_it_is_entered(stage: &Stage) {
    stage.program("work/vault", "vault");
    stage.file("work/granted", "granted");
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "follow_links", &[]);
}

fn opening_files_of_what_will_enter_a_domain(stage: &Stage) {
    stage.program("work/vault", "vault");
    stage.file("work/granted", "granted");
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "open_before", &[]);
}

/// In the first domain, which reads by itself as long as there is no other; and in one that the
/// monitor reads for.
fn swapping_paths_in_every_domain(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    let outside = stage.file("outside", "outside");
    let arguments = [secret.to_str().expect("UTF-8"), outside.to_str().expect("UTF-8")];
    for program in ["vault", "swap"] {
        let rules = format!("[domains.other]\nexec = [\"${{workspace}}/{program}\"]");
        stage.holds(&stage.profile(&rules), "swap", &arguments);
    }
    assert_eq!(std::fs::read_to_string(outside).expect("the file"), "outside");
}

fn keeping_a_label_over_an_exec_by_a_thread(stage: &Stage) {
    stage.program("work/narrow", "narrow");
    stage.file("work/granted", "granted");
    stage.file("work/secret", "secret");
    let narrow = "[domains.narrow]\nexec = [\"${workspace}/narrow\"]\n\
                  files.deny = [\"${workspace}/secret\"]";
    stage.holds(&stage.profile(narrow), "thread_enters", &[]);
}

fn opening_files_of_what_enters_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "exec_window", &[]);
}

fn taking_filters_and_personalities_into_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "take_along", &[]);
}

fn executing_memory_of_another_domain(stage: &Stage) {
    stage.program("work/vault", "vault");
    stage.program("work/granted", "vault");
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "execute_memory", &[]);
}

fn executing_by_the_header_of_another_program(stage: &Stage) {
    stage.program("work/loader", "loader");
    let profile = stage.profile(
        "[domains.other]\nexec = [\"${workspace}/name_loader\"]\n\
         files.deny = [\"${workspace}/loader\"]",
    );
    // Another domain may, or the attack would show nothing.
    let ran = stage.command(stage.call(&profile), "loader", &[]).output().expect("start `dewar`");
    assert_eq!(ran.status.code(), Some(42), "{}", String::from_utf8_lossy(&ran.stderr));
    stage.holds(&profile, "name_loader", &["./loader"]);
}

fn signalling_a_group_that_changes(stage: &Stage) {
    stage.program("work/narrow", "group_signal");
    let narrow = "[domains.narrow]\nexec = [\"${workspace}/narrow\"]";
    stage.holds(&stage.profile(narrow), "group_signal", &[]);
}

/// Of those who are asked about one by one, the first has time.
fn reaching_members_of_a_group_that_have_entered_a_domain(stage: &Stage) {
    stage.program("work/gate", "late_group");
    stage.program("work/vault", "late_group");
    let profile = stage.profile(
        "[domains.gate]\nexec = [\"${workspace}/gate\"]\n\
         [domains.vault]\nexec = [\"${workspace}/vault\"]\nfrom = [\"gate\"]",
    );
    for way in ["kill", "prio"] {
        let attack = stage.command(stage.call(&profile), "late_group", &[way]).output();
        held(&attack.expect("start `dewar`"));
    }
}

/// By a domain between the two: whoever starts the vault may signal it.
fn having_a_domain_killed_by_the_death_of_its_parent(stage: &Stage) {
    stage.program("work/gate", "death_signal");
    stage.program("work/vault", "death_signal");
    let profile = stage.profile(
        "[domains.gate]\nexec = [\"${workspace}/gate\"]\n\
         [domains.vault]\nexec = [\"${workspace}/vault\"]\nfrom = [\"gate\"]",
    );
    stage.holds(&profile, "death_signal", &[]);
}

fn reading_what_a_process_of_another_domain_leaves(stage: &Stage) {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").expect("a pattern");
    if pattern.trim() != "core" {
        eprintln!(
            "note: cores do not go to the working directory here, only their limit is tested"
        );
    }
    stage.holds(&vault(stage), "dump", &[]);
}

fn meeting_another_domain_in_shared_memory(stage: &Stage) {
    stage.holds(&vault(stage), "share", &[]);
}

/// In mode `fast` nobody decides what is read.
fn leading_another_domain_by_links(stage: &Stage) {
    stage.program("work/deputy", "deputy");
    let file = stage.file("kept/file", "untouched");
    stage.file("kept/empty/.keep", "");
    std::fs::remove_file(stage.home().join("kept/empty/.keep")).expect("an empty directory");
    let parent = file.parent().expect("a directory");
    let kept = parent.to_str().expect("UTF-8");
    let profile = stage.profile(
        "[domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.write = [\"${home}/kept/\"]",
    );
    stage.holds(&profile, "deputy", &[kept]);
    stage.holds(&profile, "lead_deputy", &[kept, "write"]);
    let reserves = stage.profile(
        "[files]\nwrite = [\"${home}/kept.json\", \"${home}/kept.json.*\"]\n\
         [domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.write = [\"${home}/kept/\"]",
    );
    stage.file("kept.json", "{}");
    stage.holds(&reserves, "lead_deputy", &[kept, "reserved"]);
    let at = stage.home().join("kept/service");
    let _service = std::os::unix::net::UnixListener::bind(&at).expect("a service");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&at, everybody).expect("everybody may connect");
    let connects = stage.profile(
        "[domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.read = [\"${home}/kept/\"]\n\
         network.connect = [\"unix:${home}/kept/service\"]",
    );
    stage.holds(&connects, "lead_deputy", &[kept, "service"]);
    let reads = stage.command(stage.call(&profile), "lead_deputy", &[kept, "read"]);
    held(&{ reads }.output().expect("start `dewar`"));
    for (link, to) in [("file", &*file), ("directory", parent), ("brought/file", &*file)] {
        let link = stage.work().join(link);
        std::fs::create_dir_all(link.parent().expect("a directory")).expect("make it");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(to, link).expect("make a link");
    }
    let brings = stage.profile(
        "[files]\nreadonly = [\"${workspace}\"]\n\
         [domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.write = [\"${home}/kept/\"]",
    );
    stage.holds(&brings, "deputy", &[kept]);
    stage.holds(&brings, "lead_deputy", &[kept, "brought"]);
    stage.file("work/secret", "hidden");
    let looks = stage.profile(
        "[files]\nreadonly = [\"${workspace}\"]\nhide = [\"${workspace}/secret\"]\n\
         [domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.read = [\"${home}/kept/\"]",
    );
    let looked = stage.command(stage.call(&looks), "lead_deputy", &[kept, "looked"]);
    held(&{ looked }.output().expect("start `dewar`"));
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "untouched");
}

/// A domain that knows more tells nothing to a server of one that knows less, wherever its caller
/// has it connect to: by a proxy that a project's file names.
fn leading_another_domain_to_a_server(stage: &Stage) {
    stage.program("work/deputy", "deputy");
    let file = stage.file("kept/file", "untouched");
    let kept = file.parent().expect("a directory").to_str().expect("UTF-8");
    let profile = stage.profile(
        "[network]\nconnect = [\"192.0.2.1:9\"]\nloopback = \"own\"\n\
         [domains.deputy]\nexec = [\"${workspace}/deputy\"]\nfiles.read = [\"${home}/kept/\"]",
    );
    stage.holds(&profile, "serve_deputy", &[kept]);
}

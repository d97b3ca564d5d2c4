//! Attacks on what files hold, and on where labels come from.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{SECRET, Stage, Variant, held},
};
use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt as _, chown},
    process::{Command, Stdio},
    time::Duration,
};

pub(crate) const CASES: &[Case] = cases![
    naming_a_secret_in_every_way,
    swapping_paths_and_links_while_they_are_decided,
    leading_elsewhere_where_a_directory_with_something_protected_could_be,
    planting_names_that_do_not_exist_yet,
    naming_what_lies_in_a_directory_that_cannot_be_listed,
    renaming_around_a_protected_directory,
    renaming_the_parent_of_a_hidden_file,
    making_a_repository_around_what_is_protected,
    hiding_inside_what_the_view_puts_back,
    making_programs_that_lend_their_owners_ids,
    executing_what_can_only_be_read,
    executing_memory_that_no_path_leads_to,
    changing_what_dewar_believes,
    going_around_the_view_by_what_is_open,
    watching_what_is_not_granted,
    making_protected_names_below_an_odd_directory,
    acting_through_the_monitor_without_capabilities,
    growing_files_beyond_their_limit,
    finding_memory_in_private_directories,
    changing_what_can_only_be_read_by_ioctl,
    finding_out_what_is_hidden,
    using_what_others_have_in_shared_directories,
    cutting_what_can_only_be_read,
    reading_what_was_replaced_outside,
    reaching_what_is_denied_where_it_is_mounted_again,
    giving_what_is_made_outside_the_label_of_what_is_gone,
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

fn leading_elsewhere_where_a_directory_with_something_protected_could_be(stage: &Stage) {
    let rules = "readonly = [\"${workspace}/.git/{config,hooks}\", \"${workspace}/a/b/*g\"]";
    let profile = stage.profile(&format!("[files]\n{rules}"));
    for dir in [".git", "a"] {
        stage.holds(&profile, "lead_elsewhere", &[dir]);
        assert!(!stage.work().join(dir).join("config").exists(), "{dir} leads elsewhere");
        assert!(!stage.work().join(dir).is_symlink() && !stage.work().join(dir).is_file(), "{dir}");
    }
}

fn planting_names_that_do_not_exist_yet(stage: &Stage) {
    let rules = "readonly = [\"${workspace}/.envrc\"]\ndeny = [\"${workspace}/gone\", \"${workspace}/**/*.pth\"]";
    let profile = stage.profile(&format!("[files]\n{rules}"));
    // There is one of the names that the pattern stands for.
    stage.file("work/old.pth", "old");
    stage.holds(&profile, "plant", &[".envrc", "gone", "new.pth"]);
    for name in [".envrc", "gone", "new.pth"] {
        assert!(!stage.work().join(name).exists(), "{name} was made");
    }
}

fn naming_what_lies_in_a_directory_that_cannot_be_listed(stage: &Stage) {
    let profile = stage.profile(
        "[files]\nread = [\"${home}/open\"]\nwrite = [\"${home}/mine\"]\n\
         deny = [\"${home}/open/closed\"]\nreadonly = [\"${home}/mine/closed\"]",
    );
    let secret = stage.file("open/closed/secret", SECRET);
    let kept = stage.file("mine/closed/kept", "kept");
    for path in [&secret, &kept] {
        let directory = path.parent().expect("a directory");
        let mode = |path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
        mode(directory, 0o711).expect("a mode");
        mode(path, 0o666).expect("a mode");
        if rustix::process::geteuid().is_root() {
            chown(directory, Some(0), Some(0)).expect("root's own");
        }
    }
    let [secret, kept] = [&secret, &kept].map(|path| path.to_str().expect("UTF-8"));
    stage.holds(&profile, "read_plainly", &[secret]);
    stage.holds(&profile, "swap", &[secret, kept]);
    assert_eq!(std::fs::read_to_string(kept).expect("the file"), "kept");
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

fn making_a_repository_around_what_is_protected(stage: &Stage) {
    let secrets = ["work/config/key", "work/hooks/key"].map(|name| stage.file(name, SECRET));
    let kept = ["config/kept", "hooks/kept", ".git/config", ".git/hooks/kept"];
    let kept = kept.map(|name| stage.file(&format!("work/{name}"), "kept"));
    for part in ["objects", "refs"] {
        stage.directory(&format!("work/.git/{part}"));
    }
    let files = [&secrets[..], &kept[..]].concat();
    let files: Vec<&str> = files.iter().map(|path| path.to_str().expect("UTF-8")).collect();
    // A rule for `.git` alone would keep a repository from being made.
    for (beside, files) in [("", &files[..4]), (",.git/{config,hooks}", &files)] {
        let profile = stage.profile(&format!(
            "[files]\nreadonly = [\"${{workspace}}/{{config,hooks{beside}}}\"]\n\
             deny = [\"${{workspace}}/config/key\"]\nhide = [\"${{workspace}}/hooks/key\"]"
        ));
        stage.holds(&profile, "around_repository", files);
    }
    for file in &kept {
        let content = std::fs::read_to_string(file).expect("it is there");
        assert_eq!(content, "kept", "{}", file.display());
    }
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

fn cutting_what_can_only_be_read(stage: &Stage) {
    let profile = stage.profile("[files]\nread = [\"${home}/data\"]");
    let file = stage.file("data/file", SECRET);
    // Before Linux 6.2, the envelope does not speak of it.
    for (fast, uncut) in [(false, false), (false, true), (true, false), (true, true)] {
        let call = Call { fast, uncut, ..stage.call(&profile) };
        let attack = stage.command(call, "cut", &[file.to_str().expect("UTF-8")]).output();
        held(&attack.expect("start `dewar`"));
    }
    assert_eq!(std::fs::read_to_string(file).expect("the file"), SECRET);
}

fn executing_memory_that_no_path_leads_to(stage: &Stage) {
    stage.holds("workspace", "execute_own_memory", &[]);
    let several = "[domains.other]\nexec = [\"/usr/bin/true\"]";
    stage.holds(&stage.profile(several), "execute_own_memory", &[]);
}

fn changing_what_dewar_believes(stage: &Stage) {
    let key = stage.file(".cache/dewar/plugins/secret", SECRET);
    let rules = "extends = \"build\"\nfiles.read = [\"${home}\"]";
    let profile = stage.file("work/own.toml", rules);
    let [key, profile] = [&key, &profile].map(|path| path.to_str().expect("UTF-8"));
    stage.holds(profile, "rewrite", &[profile, key]);
    stage.holds(profile, "read_plainly", &[key]);
    assert_eq!(std::fs::read_to_string(profile).expect("the profile"), rules);
}

fn going_around_the_view_by_what_is_open(stage: &Stage) {
    let profile = stage.profile("[files]\ndeny = [\"${workspace}/sub/secret\"]");
    let directory = stage.directory("work/sub");
    stage.file("work/sub/secret", SECRET);
    let outside = tempfile::Builder::new().tempfile_in("/tmp").expect("a file of outside");
    stage.give(outside.path());
    for fast in [false, true] {
        let call = Call { fast, ..stage.call(&profile) };
        let attack = stage.command(call, "by_descriptor", &[]);
        let mut shell = std::process::Command::new("sh");
        let script = "exec \"$@\" 9<\"$0\"";
        shell
            .args(["-c", script])
            .arg(&directory)
            .arg(attack.get_program())
            .args(attack.get_args());
        let mut command = stage.like(shell);
        command.stdin(std::fs::File::open(outside.path()).expect("opened"));
        held(&command.output().expect("start `sh`"));
    }
    assert!(!directory.join("made").exists(), "a directory was made");
}

fn watching_what_is_not_granted(stage: &Stage) {
    stage.holds("workspace", "watch", &["/mnt"]);
}

fn making_protected_names_below_an_odd_directory(stage: &Stage) {
    let profile = stage.profile("[files]\nreadonly = [\"${workspace}/**/.envrc\"]");
    for directory in ["work/a\nb", "work/c\rd"] {
        stage.directory(directory);
    }
    stage.holds(&profile, "plant", &["a\nb/.envrc", "c\rd/.envrc"]);
    assert!(!stage.work().join("a\nb/.envrc").exists(), "it was made");
}

fn acting_through_the_monitor_without_capabilities(stage: &Stage) {
    if stage.variant != Variant::Root || !rustix::process::geteuid().is_root() {
        eprintln!("note: a capability over other users' files is root's to grant");
        return;
    }
    let capabilities = "capabilities = [\"dac_override\", \"dac_read_search\"]";
    let profile = stage.file(
        "profile.toml",
        &format!(
            "extends = \"workspace\"\n{capabilities}\n[files]\nwrite = [\"${{home}}/others\"]"
        ),
    );
    let file = stage.file("others/file", SECRET);
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
    chown(&file, Some(4321), Some(4321)).expect("another's own");
    let [profile, name] = [&profile, &file].map(|path| path.to_str().expect("UTF-8"));
    stage.holds(profile, "drop_rights", &[name]);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), SECRET);
}

fn growing_files_beyond_their_limit(stage: &Stage) {
    stage.holds("workspace", "grow", &[]);
}

fn finding_memory_in_private_directories(stage: &Stage) {
    if stage.variant == Variant::Bare {
        eprintln!("note: without a mount namespace, no directory is private");
        return;
    }
    let profile = stage.profile("limits.memory = \"64M\"");
    // Where no cgroup can be written, a limit is refused unless a poor stand-in will do.
    let call = Call { degraded: true, ..stage.call(&profile) };
    held(&stage.command(call, "fill", &["64"]).output().expect("start `dewar`"));
}

fn changing_what_can_only_be_read_by_ioctl(stage: &Stage) {
    let profile = stage.profile("[files]\nread = [\"${home}/data\"]");
    let file = stage.file("data/file", "data");
    stage.holds(&profile, "control_file", &[file.to_str().expect("UTF-8")]);
}

fn finding_out_what_is_hidden(stage: &Stage) {
    let rules = "hiding = \"strict\"\n[files]\ndeny = [\"${workspace}/denied\"]\nhide = [\"${workspace}/hidden*\"]";
    let profile = stage.profile(rules);
    let files = ["work/denied", "work/hidden", "work/hidden2"].map(|name| stage.file(name, SECRET));
    let files = files.each_ref().map(|path| path.to_str().expect("UTF-8"));
    stage.holds(&profile, "find_out", &files);
}

/// In a view, `/dev/shm` and `/var/tmp` are the run's own; without, what others have there is
/// theirs.
fn using_what_others_have_in_shared_directories(stage: &Stage) {
    let profile = stage.profile("files.write = [\"/var/tmp\"]");
    for shared in ["/dev/shm", "/var/tmp"] {
        let other = tempfile::tempdir_in(shared).expect("make a directory");
        let name = other.path().file_name().expect("a name").to_str().expect("UTF-8");
        let (file, inner) = (other.path().with_extension("file"), other.path().join("file"));
        let beside = format!("{name}.file");
        for path in [&file, &inner] {
            std::fs::write(path, SECRET).expect("make a file");
        }
        [other.path(), &file, &inner].into_iter().for_each(|path| stage.give(path));
        stage.holds(&profile, "shared_directory", &[shared, &beside, name]);
        let left = std::fs::read_to_string(&file);
        std::fs::remove_file(&file).expect("remove a file");
        assert_eq!(left.expect("a file"), SECRET, "{shared}");
        let entries = std::fs::read_dir(other.path()).expect("a directory").count();
        assert_eq!((entries, &*std::fs::read_to_string(&inner).expect("it")), (1, SECRET));
    }
}

/// File systems give out the number of a file that is gone at once, to one that is born in the same
/// tick (not tmpfs). The pattern has the monitor open files there.
fn giving_what_is_made_outside_the_label_of_what_is_gone(stage: &Stage) {
    let rules = "deny = [\"${workspace}/denied\", \"${workspace}/**/*.pth\"]";
    let profile = stage.profile(&format!("[files]\n{rules}"));
    stage.file("work/old.pth", "old");
    let denied = stage.file("work/denied", "denied");
    let attack = stage.command(stage.call(&profile), "reuse_inode", &["denied", "3"]);
    let mut attack = { attack }.stderr(Stdio::piped()).spawn().expect("start `dewar`");
    while attack.try_wait().expect("look").is_none() {
        // Outside, as an editor saves: a name that is missing for a moment is another matter.
        std::fs::rename(stage.file("new", "denied"), &denied).expect("rename");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(std::fs::read_to_string(&denied).expect("the file"), "denied");
    }
    held(&attack.wait_with_output().expect("its end"));
}

/// As an editor outside saves a file. In mode `fast`, what is replaced can be read.
fn reading_what_was_replaced_outside(stage: &Stage) {
    for how in ["hide", "deny"] {
        let profile = stage.profile(&format!("[files]\n{how} = [\"${{workspace}}/.env\"]"));
        let over = stage.work().join("over");
        let _ = std::fs::remove_file(&over);
        let file = stage.file("work/.env", SECRET);
        let mut attack = stage.command(stage.call(&profile), "replaced", &[".env"]);
        let started = attack.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let running = started.expect("start `dewar`");
        // First what covers it, if it is covered.
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(300));
            std::fs::rename(stage.file("work/new", SECRET), &file).expect("rename");
        }
        std::thread::sleep(Duration::from_millis(300));
        std::fs::write(over, "").expect("write a file");
        let output = running.wait_with_output().expect("its end");
        held(&output);
        let none = String::from_utf8_lossy(&output.stdout).starts_with("0 ");
        // With a view, what is hidden is not even looked at.
        let is_seen = how == "deny" || stage.variant == Variant::Bare;
        assert!(!(none && is_seen), "{how}: nothing was replaced");
    }
}

/// Mounted by whoever set the machine up.
fn reaching_what_is_denied_where_it_is_mounted_again(stage: &Stage) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("note: mounts are root's to make");
        return;
    }
    let secret = stage.file("data/denied/secret", SECRET);
    let kept = stage.file("data/kept/kept", "kept");
    let again = stage.directory("work/again");
    let _mounted = Mounted::bind(secret.ancestors().nth(2).expect("a directory"), &again);
    let again = [again.join("denied/secret"), again.join("kept/kept")];
    let [secret, kept_again] = again.each_ref().map(|path| path.to_str().expect("UTF-8"));
    for how in ["hide", "deny"] {
        let rules =
            format!("{how} = [\"${{home}}/data/denied\"]\nreadonly = [\"${{home}}/**/kept\"]");
        let profile = stage.profile(&format!("[files]\n{rules}"));
        stage.holds(&profile, "read_plainly", &[secret]);
        stage.holds(&profile, "swap", &[secret, kept_again]);
        assert_eq!(std::fs::read_to_string(&kept).expect("the file"), "kept");
    }
}

/// A directory that also lies at another place, while this lives.
struct Mounted<'a>(&'a std::path::Path);

impl<'a> Mounted<'a> {
    fn bind(directory: &std::path::Path, place: &'a std::path::Path) -> Self {
        let mounted = Command::new("mount").arg("--bind").args([directory, place]).status();
        assert!(mounted.expect("start `mount`").success(), "it is not mounted");
        Self(place)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // What is left would show in the next test.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

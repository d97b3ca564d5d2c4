//! The profile that a project brings along: found, trusted by what it says, and out of the run's
//! reach.

use crate::Said;
use assert_cmd::Command;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};
use tempfile::TempDir;

/// A home with a repository in it. Not below `/tmp`, of which each run has its own.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        fs::create_dir_all(home.path("repo/.git")).unwrap();
        fs::create_dir_all(home.path("repo/sub/deep")).unwrap();
        home.write("notes.txt", "notes");
        home
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    pub(crate) fn say_in(&self, directory: &str, args: &[&str]) -> Said {
        let output = Command::new(test_support::dewar())
            .args(args)
            .current_dir(self.path(directory))
            .env("NO_COLOR", "1")
            .env("HOME", self.path(""))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .output()
            .unwrap();
        Said {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn say(&self, args: &[&str]) -> Said {
        self.say_in("repo", args)
    }

    /// Runs a shell under the project's profile.
    pub(crate) fn run(&self, directory: &str, script: &str) -> Said {
        self.say_in(directory, &["run", "--no-daemon", "--", "sh", "-c", script])
    }

    pub(crate) fn trust(&self) {
        let said = self.say(&["trust", "--yes"]);
        assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    }
}

const READS_NOTES: &str = "extends = 'workspace'\n[files]\nread = ['${home}/notes.txt']\n";
pub(crate) const READ_THEM: &str = "cat ~/notes.txt";

#[test]
fn a_projects_profile_is_used_only_once_it_is_trusted() {
    let home = Home::new();
    home.write("repo/dewar.toml", READS_NOTES);
    let said = home.run("repo", "touch was-started");
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("you have not trusted it; nothing was started"), "{}", said.err);
    assert!(said.err.contains("dewar trust "), "{}", said.err);
    assert!(said.err.lines().skip(1).all(|line| line.len() <= 80), "{}", said.err);
    assert!(!home.path("repo/was-started").exists());

    let said = home.say(&["trust"]);
    assert_eq!(said.status, 1, "{}", said.err);
    assert!(said.out.contains("may also read ~/notes.txt"), "{}", said.out);
    assert_eq!(home.run("repo", "true").status, 2, "showing is not trusting");

    home.trust();
    for (directory, notice) in
        [("repo", ""), ("repo/sub/deep", "which holds .git, is out of reach")]
    {
        let said = home.run(directory, READ_THEM);
        assert_eq!((said.out.as_str(), said.err.is_empty()), ("notes", notice.is_empty()));
        assert!(said.err.lines().count() <= 1 && said.err.contains(notice), "{}", said.err);
    }
    let said = home.say(&["run", "--no-daemon", "-v", "--", "true"]);
    let first = said.err.lines().next().unwrap_or_default();
    assert!(first.contains("repo/dewar.toml, trusted on 20"), "{}", said.err);
    let said = home.say(&["run", "--no-daemon", "-p", "workspace", "--", "cat", "../notes.txt"]);
    assert_ne!(said.status, 0, "-p says another");
}

#[test]
fn what_was_changed_has_to_be_trusted_again_also_what_it_extends() {
    let home = Home::new();
    home.write("repo/base.toml", "extends = 'workspace'\n");
    home.write("repo/dewar.toml", "extends = './base.toml'\n");
    home.trust();
    assert_eq!(home.run("repo", "true").status, 0);
    home.write("repo/base.toml", READS_NOTES);
    let said = home.run("repo", READ_THEM);
    assert!(said.status == 2 && said.err.contains("changed since you trusted it"), "{}", said.err);
    let said = home.say(&["trust", "--list"]);
    assert!(said.out.contains("changed since"), "{}", said.out);
    home.trust();
    assert_eq!(home.run("repo", READ_THEM).out, "notes");
    let said = home.say(&["trust", "--revoke"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(home.run("repo", "true").status, 2);
}

#[test]
fn a_run_can_neither_change_nor_replace_nor_remove_nor_shade_its_profile() {
    let home = Home::new();
    home.write("repo/base.toml", "extends = 'workspace'\n");
    home.write("repo/dewar.toml", "extends = './base.toml'\n");
    home.trust();
    let wide = "extends = \"open\"";
    for attack in [
        &format!("echo '{wide}' > dewar.toml"),
        &format!("echo '{wide}' >> dewar.toml"),
        &format!("echo '{wide}' > x.toml && mv -f x.toml dewar.toml"),
        &format!("echo '{wide}' > x.toml && ln -f x.toml dewar.toml"),
        &format!("echo '{wide}' > x.toml && ln -sf x.toml dewar.toml"),
        "mv dewar.toml gone.toml",
        "rm -f dewar.toml",
        "truncate -s 0 dewar.toml",
        &format!("echo '{wide}' > base.toml"),
        "rm -f base.toml; ln -s /dev/null base.toml",
        "mv ../repo ../other",
        &format!("sed -i 's/.*/{}/' dewar.toml", "extends = \"open\""),
    ] {
        let said = home.run("repo", attack);
        assert_ne!(said.status, 0, "{attack}");
        assert_eq!(
            fs::read_to_string(home.path("repo/dewar.toml")).unwrap(),
            "extends = './base.toml'\n",
            "{attack}"
        );
        assert_eq!(
            fs::read_to_string(home.path("repo/base.toml")).unwrap(),
            "extends = 'workspace'\n",
            "{attack}"
        );
        assert!(home.path("repo/dewar.toml").symlink_metadata().unwrap().is_file(), "{attack}");
    }
    assert_eq!(home.run("repo", "true").status, 0, "it is trusted as before");
    // What would make a directory below it the top of a repository, beyond which nobody looks.
    home.write("repo/sub/private", "private");
    home.write(
        "repo/dewar.toml",
        "extends = 'workspace'\n[files]\nhide = ['${workspace}/private']\n",
    );
    home.trust();
    for name in [".git", ".hg", ".jj", ".svn", ".fossil"] {
        for make in [format!("mkdir {name}"), format!("echo > {name}"), format!("ln -s .. {name}")]
        {
            let said = home.run("repo/sub", &make);
            assert_ne!(said.status, 0, "{make}");
            let said = home.run("repo/sub", "cat private");
            assert_eq!(said.out, "", "{make}: {}", said.err);
        }
    }
    // One that is made nevertheless, by a run at the top or outside, grants nothing more.
    for make in ["mkdir sub/.git", "echo > sub/.hg", "mv .git moved"] {
        let said = home.say(&["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", make]);
        assert_eq!(said.status, 0, "{make}: {}", said.err);
        let said = home.run("repo/sub", "cat private");
        assert!(said.status == 2 && said.out.is_empty(), "{make}: {}", said.out);
        assert!(said.err.contains("repo/dewar.toml is trusted, and would not be used here"));
        assert!(said.err.lines().skip(1).all(|line| line.len() <= 80), "{make}: {}", said.err);
        // A repository of one's own has a profile of its own.
        let other = ["run", "--no-daemon", "-p", "workspace", "--", "cat", "private"];
        assert_eq!(home.say_in("repo/sub", &other).out, "private", "{make}");
        assert_eq!(home.say_in("repo/sub", &["init"]).status, 0, "{make}");
        assert_eq!(home.run("repo/sub", "cat private").out, "private", "{make}");
        fs::remove_file(home.path("repo/sub/dewar.toml")).unwrap();
        assert_eq!(home.say_in("repo/sub", &["trust", "--revoke"]).status, 0, "{make}");
        fs::remove_dir_all(home.path("repo/sub/.git")).ok();
        fs::remove_file(home.path("repo/sub/.hg")).ok();
    }
    fs::rename(home.path("repo/moved"), home.path("repo/.git")).unwrap();
    // A nearer one would shade it: it is another, and nobody has trusted it.
    let said = home.run("repo", &format!("echo '{wide}' > sub/dewar.toml"));
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(home.run("repo/sub", "true").status, 2);
}

#[test]
fn a_profile_in_a_directory_that_is_moved_is_not_trusted_where_it_comes_to_lie() {
    let home = Home::new();
    home.write("repo/sub/dewar.toml", READS_NOTES);
    assert_eq!(home.say_in("repo/sub", &["trust", "--yes"]).status, 0);
    assert_eq!(home.run("repo/sub", READ_THEM).out, "notes");
    // A run of the whole repository does not depend on it, and may move it.
    home.run("repo", "mv sub moved && mkdir sub");
    let said = home.run("repo/sub", READ_THEM);
    assert!(said.status == 2 && said.err.contains("was trusted, and is gone"), "{}", said.err);
    let said = home.run("repo/moved", READ_THEM);
    assert!(said.status == 2 && said.err.contains("not trusted"), "{}", said.err);
}

#[test]
fn links_and_what_lies_above_the_repository_are_no_projects_profile() {
    let home = Home::new();
    home.write("dewar.toml", "extends = 'open'\n");
    assert_eq!(home.run("repo/sub", READ_THEM).status, 1, "above the repository");
    std::os::unix::fs::symlink(home.path("dewar.toml"), home.path("repo/dewar.toml")).unwrap();
    let said = home.run("repo", "true");
    assert!(said.status == 2 && said.err.contains("is no file by itself"), "{}", said.err);
    fs::remove_file(home.path("repo/dewar.toml")).unwrap();
    // Without a repository, only the workspace's own counts.
    fs::remove_dir(home.path("repo/.git")).unwrap();
    home.write("repo/dewar.toml", "extends = 'open'\n");
    assert_eq!(home.run("repo/sub", READ_THEM).status, 1);
    assert_eq!(home.run("repo", "true").status, 2);
}

#[test]
fn what_is_read_is_what_was_hashed_however_fast_it_is_changed() {
    let home = Home::new();
    home.write("repo/dewar.toml", "extends = 'workspace'\n");
    home.trust();
    let path = home.path("repo/dewar.toml");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Whole files, one after the other, as fast as can be.
            let other = home.path("repo/.next");
            for text in [READS_NOTES, "extends = 'workspace'\n"].into_iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                fs::write(&other, text).unwrap();
                fs::rename(&other, &path).unwrap();
            }
        });
        for _ in 0..20 {
            let said = home.run("repo", READ_THEM);
            assert_ne!(said.out, "notes", "{}", said.err);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn only_its_owner_can_write_what_is_trusted() {
    let home = Home::new();
    home.write("repo/dewar.toml", READS_NOTES);
    home.trust();
    let store = home.path("state/dewar/trust");
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&store).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Also no run whose profile grants the whole home.
    let wide = "extends = 'workspace'\n[files]\nwrite = ['${home}']\n";
    home.write("wide.toml", wide);
    let reach = "ls ~/state/dewar/trust; echo x > ~/state/dewar/trust/x";
    let args = ["run", "--no-daemon", "-p", "../wide.toml", "--", "sh", "-c", reach];
    let said = home.say(&args);
    assert!(said.out.is_empty() && !store.join("x").exists(), "{}", said.out);
    fs::set_permissions(&store, fs::Permissions::from_mode(0o777)).unwrap();
    let said = home.run("repo", READ_THEM);
    assert!(said.status != 0 && said.out.is_empty(), "{}", said.out);
    assert!(said.err.contains("nothing in it is believed"), "{}", said.err);
}

#[test]
fn what_a_profile_would_grant_is_told_in_words() {
    let home = Home::new();
    home.write(
        "repo/dewar.toml",
        "description = 'mine'\nextends = 'workspace'\n[files]\nwrite = ['${home}/.m2']\nread = ['${home}/.ssh']\n\
         [network]\nconnect = ['example.org:443', '*:53/udp']\n[domains.git]\nexec = ['/usr/bin/git']\n\
         files.exec = ['/srv/tools']\nnetwork.connect = ['github.com:443']\n[domains.other]\n\
         exec = ['/usr/bin/cat']\nfiles.exec = ['/srv/tools']\n[env]\nset = { LD_PRELOAD = '/x.so' }\n",
    );
    let said = home.say(&["trust"]);
    for line in [
        "says of itself: mine",
        "may also write ~/.m2",
        "may also read ~/.ssh",
        "may reach example.org:443",
        "may reach *:53/udp",
        "may also (domain git) read and execute /srv/tools",
        "may also (domain other) read and execute /srv/tools",
        "may reach (domain git) github.com:443",
        "sets LD_PRELOAD=/x.so",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert!(said.out.lines().skip(1).all(|line| line.chars().count() <= 80), "{}", said.out);
}

#[test]
fn nothing_that_a_profile_grants_goes_unsaid() {
    let home = Home::new();
    fs::create_dir_all(home.path(".local/share/uv/credentials")).unwrap();
    // What lies in what is granted anyway, and is kept back by default; also without a word on it.
    for (text, line) in [
        ("extends = 'workspace'\n[files]\nread = ['/etc/shadow']\n", "read /etc/shadow, kept back"),
        (
            "extends = 'workspace'\n[files]\nexec = ['${home}/.local/share/uv/credentials']\n",
            "read and execute ~/.local/share/uv/credentials, kept back",
        ),
        (
            "[files]\nread = ['/etc', '/etc/shadow']\nexec = ['/usr']\n",
            "read /etc/shadow, kept back",
        ),
        ("[files]\nwrite = ['${home}']\n", "write ~/.ssh, kept back"),
        ("[files]\nread = ['${home}/.ssh/id_rsa']\n", "read ~/.ssh/id_rsa, kept back"),
        ("[files]\nread = ['${home}/.ssh/**']\n", "read ~/.ssh/**, kept back"),
        ("[files]\nwrite = ['${home}/.ssh/id_*']\n", "write ~/.ssh/id_*, kept back"),
        ("[files]\nread = ['${home}/.aws/*/x']\n", "read ~/.aws/*/x, kept back"),
        ("[files]\nread = ['${home}/.sshx/*']\n", "read ~/.sshx/*\n"),
    ] {
        home.write("repo/dewar.toml", text);
        let said = home.say(&["trust"]);
        assert!(said.out.contains(&format!("may also {line}")), "{line}: {}{}", said.out, said.err);
    }
    // Nor is it lost among what is harmless.
    let many = |count: usize| {
        let harmless: Vec<String> = (0..count).map(|n| format!("'/srv/a{n}'")).collect();
        let harmless = harmless.join(", ");
        format!(
            "extends = 'workspace'\n[files]\nread = [{harmless}]\nwrite = ['${{home}}/.config']\n"
        )
    };
    home.write("repo/dewar.toml", &many(30));
    let said = home.say(&["trust"]);
    let mut last = said.out.lines().rev().take_while(|line| line.contains("may also write "));
    assert!(last.any(|line| line == "  may also write ~/.config"), "{}", said.out);
    home.write("repo/dewar.toml", &many(400));
    let said = home.say(&["trust", "--yes"]);
    assert!(said.status == 2 && said.err.contains("nobody reads"), "{}{}", said.out, said.err);
}

#[test]
fn mistakes_about_trust_are_named() {
    let home = Home::new();
    home.write("repo/other.toml", "extends = 'open'\n");
    for (args, part) in [
        (&["trust"][..], "no dewar.toml in"),
        (&["trust", "other.toml"], "is no dewar.toml"),
        (&["trust", "nosuch"], "cannot look at"),
        (&["trust", "--revoke"], "is not trusted"),
        (&["trust", "--list", "--yes"], "cannot be used with"),
    ] {
        let said = home.say(args);
        assert!(said.status == 2 && said.err.contains(part), "{args:?}: {}", said.err);
    }
    home.write("repo/dewar.toml", "extends = 'nosuch'\n");
    let said = home.run("repo", "true");
    assert!(said.status == 2 && said.err.contains("no profile is called"), "{}", said.err);
}

#[test]
fn init_writes_a_profile_that_is_used_and_never_overwrites_one() {
    let home = Home::new();
    home.write("repo/Makefile", "all:\n\techo made\n");
    let said = home.say(&["init", "--print"]);
    assert!(said.out.contains("extends = \"cmake\""), "{}", said.out);
    assert!(!home.path("repo/dewar.toml").exists());
    let said = home.say(&["init"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let written = fs::read_to_string(home.path("repo/dewar.toml")).unwrap();
    assert!(said.out.starts_with(&written), "{}", said.out);
    let said = home.say(&["run", "--no-daemon", "-v", "--", "true"]);
    assert!(said.status == 0 && said.err.contains("dewar.toml, trusted on"), "{}", said.err);
    let said = home.say(&["init"]);
    assert!(said.status == 2 && said.err.contains("stays as it is"), "{}", said.err);
    assert_eq!(fs::read_to_string(home.path("repo/dewar.toml")).unwrap(), written);
    // What the user has Dewar change stays trusted.
    home.run("repo", READ_THEM);
    let notes = home.path("notes.txt").display().to_string();
    let said = home.say(&["allow", &notes]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(home.run("repo", READ_THEM).out, "notes");
}

#[test]
fn what_dewar_takes_back_of_a_trusted_profile_leaves_it_trusted() {
    let home = Home::new();
    home.write("repo/dewar.toml", "extends = 'workspace'\n");
    home.trust();
    assert_eq!(home.run("repo", READ_THEM).status, 1);
    let allowed = home.say(&["allow", "1"]);
    assert_eq!(allowed.status, 0, "{}{}", allowed.out, allowed.err);
    assert_eq!(home.run("repo", READ_THEM).out, "notes");
    assert_eq!(home.say(&["allow", "--undo"]).status, 0);
    let said = home.run("repo", READ_THEM);
    assert_eq!(said.status, 1, "it runs, and is denied: {}", said.err);
    // What somebody else writes is nobody's word.
    home.write("repo/dewar.toml", READS_NOTES);
    assert_eq!(home.run("repo", READ_THEM).status, 2);
}

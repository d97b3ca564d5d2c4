//! A file system that knows files by other spellings of their names: what rules protect there is
//! had by one, so nothing starts, or it is said.

use crate::account::Account;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

/// Such a file system, mounted.
struct Share {
    place: PathBuf,
    server: Child,
}

impl Share {
    fn mounted(place: PathBuf, program: &Path) -> Self {
        std::fs::create_dir(&place).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("spelling.c");
        let built = Command::new("cc").arg("-o").arg(program).arg(source).status().unwrap();
        assert!(built.success(), "{built}");
        let server = Command::new(program).arg(&place).spawn().unwrap();
        let share = Self { place, server };
        let began = Instant::now();
        while !share.place.join("SECRET.TXT").exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "the file system is not mounted");
            std::thread::sleep(Duration::from_millis(10));
        }
        share
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.place).status();
        let _killed = self.server.kill();
        let _ended = self.server.wait();
    }
}

#[test]
fn where_another_spelling_leads_to_what_is_denied_nothing_starts() {
    let without = std::env::var("DEWAR_TEST_WITHOUT").unwrap_or_default();
    if without.split(',').any(|name| name == "fuse") {
        eprintln!("note: without FUSE, as DEWAR_TEST_WITHOUT says");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("note: only root mounts: the part for root is run elsewhere");
        return;
    }
    assert!(Path::new("/dev/fuse").exists(), "there is no /dev/fuse: set DEWAR_TEST_WITHOUT=fuse");
    for user in [None, Some(61_235)] {
        let account = Account::new(user);
        account.give();
        let _share = Share::mounted(account.path("work/share"), &account.path("server"));
        let cat = ["sh", "-c", "cat share/SECRET.TXT"];
        for (files, refused, said) in [
            ("deny = ['${workspace}/share/secret.txt']", true, "nothing was started"),
            ("hide = ['${workspace}/share']\nread = ['${workspace}/share/plain.txt']", false, ""),
            ("hide = ['${workspace}/share/secret.txt']", true, "nothing was started"),
            ("deny = ['${workspace}/share/*.txt']", true, "nothing was started"),
            ("deny = ['${workspace}/share/later.txt']", true, "nothing was started"),
            ("readonly = ['${workspace}/share/secret.txt']", false, "WARNING: this file system"),
            ("deny = ['${workspace}/other.txt']", false, ""),
        ] {
            let profile = account.path("profile.toml");
            let text = format!("extends = 'workspace'\n[files]\n{files}\n");
            std::fs::write(&profile, text).unwrap();
            let profile = profile.to_str().unwrap();
            let came = account.run(profile, &cat);
            assert_eq!(came.status == 125, refused, "{files}: {}{}", came.out, came.err);
            assert!(came.err.contains(said), "{files}: {}", came.err);
            let speaks = came.err.contains("this file system knows");
            assert_eq!(speaks, !said.is_empty(), "{files}: {}", came.err);
            let degraded = ["run", "--no-daemon", "--allow-degraded", "-p", profile, "--", "true"];
            let came = account.dewar(&degraded);
            assert_eq!(came.status, 0, "{files}: {}", came.err);
            assert_eq!(came.err.contains("DEGRADED: this file"), refused, "{files}: {}", came.err);
        }
    }
}

//! Where programs run: a home with a key, a workspace in it, a server outside.

use crate::programs::Program;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::{
    fs::Permissions,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;

/// What all trials share.
pub(crate) struct Stage {
    directory: TempDir,
    ids: Option<(u32, u32)>,
    server: TcpListener,
    /// A process of the same user.
    outside: Outside,
    number: AtomicU32,
}

/// Ended when it is dropped.
struct Outside(Child);

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let parent = if is_root { "/home" } else { env!("CARGO_TARGET_TMPDIR") };
        let mut builder = tempfile::Builder::new();
        builder.prefix("dewar-matrix-").permissions(Permissions::from_mode(0o755));
        let directory = builder.tempdir_in(parent).context("cannot create a directory")?;
        test_support::install(directory.path(), &["dewar"]);
        let ids = if is_root { Some(test_support::ordinary_user()) } else { None };
        let mut outside = Command::new("sleep");
        outside.arg("3600").stdin(Stdio::null());
        if let Some((uid, gid)) = ids {
            outside.uid(uid).gid(gid);
        }
        let outside = Outside(outside.spawn().context("cannot start `sleep`")?);
        let server = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        Ok(Self { directory, ids, server, outside, number: AtomicU32::new(0) })
    }

    /// What comes of a program under a profile, in words: it works as natively, or what it may not.
    pub(crate) fn outcome(&self, profile: &str, program: &Program) -> anyhow::Result<String> {
        let port = self.server.local_addr()?.port().to_string();
        let outside = self.outside.0.id().to_string();
        let script = program.script.replace("PORT", &port).replace("OUTSIDE", &outside);
        let (native, _) = self.run(None, &script)?;
        if !native.status.success() {
            bail!("`{}` fails natively: {}", program.name, String::from_utf8_lossy(&native.stderr));
        }
        let (ran, denials) = self.run(Some(profile), &script)?;
        if ran.status == native.status && ran.stdout == native.stdout {
            return Ok("works".to_owned());
        }
        let err = String::from_utf8_lossy(&ran.stderr);
        let told = err.lines().rev().find_map(|line| {
            let (_, denial) = line.strip_prefix("dewar: denied ")?.split_once(" may not ")?;
            let (denial, _) = denial.split_once("; `dewar explain`")?;
            let object = |it: &Value| it["object"].as_str().unwrap_or_default().to_owned();
            let it = denials.iter().find(|it| denial.contains(&object(it)))?;
            let missing = it["missing"].as_array()?.iter().filter_map(Value::as_str);
            let object = object(it);
            // An object without a name of its own says what it is.
            let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let kind = object.split(' ').take_while(is_word);
            let told: Vec<&str> = missing.chain(kind).collect();
            Some(told.join(" "))
        });
        match told {
            Some(missing) => Ok(format!("no {missing}")),
            // Its own loopback, on which nobody from outside listens.
            None if err.contains("Connection refused") => Ok("nobody there".to_owned()),
            // Not in its view, where nothing tells it from what is not there.
            None if err.contains("No such file or directory") => Ok("not there".to_owned()),
            None => bail!("`{}` differs under {profile}, and nobody says why: {err}", program.name),
        }
    }

    /// Runs a script in a home of its own, natively or under a profile; what is on record of it.
    fn run(&self, profile: Option<&str>, script: &str) -> anyhow::Result<(Output, Vec<Value>)> {
        let home = self.home()?;
        let mut words: Vec<PathBuf> = vec!["timeout".into(), "60".into()];
        if let Some(profile) = profile {
            words.push(self.directory.path().join("dewar"));
            words.extend(["run", "-p", profile, "--"].map(PathBuf::from));
        }
        let mut command = Command::new(&words[0]);
        let script = script.replace("IN_HOME", &home.display().to_string());
        command.args(&words[1..]).args(["bash", "-c", &script]);
        command.current_dir(home.join("work")).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", &home).env("XDG_STATE_HOME", home.join("state"));
        command.env("XDG_RUNTIME_DIR", home.join("no-runtime-directory"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        command.stdin(Stdio::null());
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        let output = command.output().context("cannot start a program")?;
        let kept = std::fs::read_dir(home.join("state/dewar/runs")).into_iter().flatten().next();
        let record: Value = match kept.transpose()? {
            Some(record) => serde_json::from_slice(&std::fs::read(record.path())?)?,
            None => Value::Null,
        };
        let denials = record["denials"].as_array().cloned().unwrap_or_default();
        std::fs::remove_dir_all(&home)?;
        Ok((output, denials))
    }

    fn home(&self) -> anyhow::Result<PathBuf> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let home = self.directory.path().join(format!("home-{number}"));
        let give = |path: &Path| match self.ids {
            Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        };
        for directory in ["", "work", "state", ".ssh"] {
            let path = home.join(directory);
            std::fs::create_dir(&path)?;
            give(&path)?;
        }
        for file in ["notes", "work/given", ".ssh/id_ed25519"] {
            let path = home.join(file);
            std::fs::write(&path, file)?;
            give(&path)?;
        }
        Ok(home)
    }
}

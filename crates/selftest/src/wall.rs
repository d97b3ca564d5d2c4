//! Walls: none, Dewar, and other tools with the options that their documents recommend.

use crate::{case::Case, scene::ATTACK, stage::Stage};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// What stands around an attack.
#[derive(Clone, Debug)]
pub enum Wall {
    /// Nothing.
    Off,
    /// `dewar run`.
    Dewar(Dewar),
    /// Another tool.
    Peer(&'static Peer),
}

/// How `dewar run` is called.
#[derive(Clone, Debug)]
pub struct Dewar {
    /// The program.
    pub program: PathBuf,
    /// A profile's name, or an absolute path.
    pub profile: String,
    /// `all` or `fast`.
    pub mode: &'static str,
    /// Layers that this machine is to lack.
    pub without: Vec<String>,
}

/// Another tool.
#[derive(Debug)]
pub struct Peer {
    /// What it is called here.
    pub name: &'static str,
    /// What it is, and where its options come from.
    pub description: &'static str,
    prefix: &'static [&'static str],
    /// Settings in the scratch home: a name there, and what it holds.
    settings: Option<(&'static str, &'static str)>,
}

/// As the README of sandbox-runtime has them: keys are not read, the working directory is written,
/// no host is reached.
const SRT_SETTINGS: &str = r#"{"filesystem":{"denyRead":["~/.ssh","~/.aws","~/.npmrc"],"allowWrite":["."],"denyWrite":[]},"network":{"allowedDomains":[],"deniedDomains":[]}}"#;

/// As bubblewrap's demos/bubblewrap-shell.sh, with the workspace; without network, but for `more`.
macro_rules! bubblewrap {
    ($($more:literal),*) => {
        &[
            "bwrap",
            "--ro-bind",
            "/usr",
            "/usr",
            "--ro-bind",
            "/etc",
            "/etc",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/sbin",
            "/sbin",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--dir",
            "/var",
            "--bind",
            "{workspace}",
            "{workspace}",
            "--chdir",
            "{workspace}",
            "--unshare-all",
            $($more,)*
            "--die-with-parent",
            "--new-session",
            "--",
        ]
    };
}

/// Those that are known. `{workspace}` and `{home}` are put in.
pub const PEERS: [Peer; 8] = [
    Peer {
        name: "bwrap",
        description: "bubblewrap, as its demos/bubblewrap-shell.sh, with the workspace, without network, --new-session",
        prefix: bubblewrap!(),
        settings: None,
    },
    Peer {
        name: "bwrap-net",
        description: "the same with --share-net, as the demo has it: what an agent needs to reach any host",
        prefix: bubblewrap!("--share-net"),
        settings: None,
    },
    Peer {
        name: "firejail",
        description: "firejail's default profile, with the workspace in --whitelist and --read-write",
        prefix: &[
            "firejail",
            "--quiet",
            "--whitelist={workspace}",
            "--read-write={workspace}",
            "--",
        ],
        settings: None,
    },
    Peer {
        name: "landrun",
        description: "landrun: the system to read, the workspace to write, no TCP",
        prefix: &[
            "landrun",
            "--rox",
            "/usr,/bin,/lib,/lib64",
            "--ro",
            "/etc,/proc",
            "--rw",
            "/dev/null",
            "--rwx",
            "{workspace}",
            "--env",
            "PATH",
            "--env",
            "HOME",
            "--",
        ],
        settings: None,
    },
    Peer {
        name: "sandlock",
        description: "sandlock, as its README starts a shell: the system to read, the workspace to write",
        prefix: &[
            "sandlock",
            "run",
            "-r",
            "/usr",
            "-r",
            "/lib",
            "-r",
            "/lib64",
            "-r",
            "/bin",
            "-r",
            "/etc",
            "-w",
            "{workspace}",
            "--",
        ],
        settings: None,
    },
    Peer {
        name: "nono",
        description: "nono, as its README runs a command: --allow for the workspace, --block-net",
        prefix: &["nono", "run", "--silent", "--allow", "{workspace}", "--block-net", "--"],
        settings: None,
    },
    Peer {
        name: "codex",
        description: "codex's sandbox for Linux in its mode for agents (workspace-write)",
        prefix: &["codex", "sandbox", "-c", "sandbox_mode=\"workspace-write\"", "--"],
        settings: None,
    },
    Peer {
        name: "srt",
        description: "Anthropic's sandbox-runtime with settings as its README has them: no network, no keys",
        prefix: &["srt", "--"],
        settings: Some((".srt-settings.json", SRT_SETTINGS)),
    },
];

impl Peer {
    /// The peer of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
    }

    /// Its program, as `PATH` finds it.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|place| place.join(self.prefix[0])).find(|it| is_program(it))
    }
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

impl Wall {
    /// What it is called in tables.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Off => "none".to_owned(),
            Self::Dewar(dewar) => format!("dewar {}", dewar.mode),
            Self::Peer(peer) => peer.name.to_owned(),
        }
    }

    /// The command that runs an attack of that name behind this wall.
    pub(crate) fn command(&self, stage: &Stage, attack: &str) -> std::io::Result<Command> {
        let mut words: Vec<String> = Vec::new();
        let text = |path: &Path| path.display().to_string();
        match self {
            Self::Off => {}
            Self::Dewar(dewar) => {
                words.push(text(&dewar.program));
                words.extend(
                    ["run", "--no-daemon", "--json", "--mode", dewar.mode].map(str::to_owned),
                );
                for layer in &dewar.without {
                    words.extend(["--without".to_owned(), layer.clone()]);
                }
                if !dewar.without.is_empty() {
                    words.push("--allow-degraded".to_owned());
                }
                words.extend(["-p".to_owned(), profile(dewar, stage)?]);
                words.extend(["--workspace".to_owned(), text(&stage.workspace()), "--".to_owned()]);
            }
            Self::Peer(peer) => {
                if let Some((name, text)) = peer.settings {
                    stage.file(name, text)?;
                }
                let (work, home) = (text(&stage.workspace()), text(stage.home()));
                let put = |word: &&str| word.replace("{workspace}", &work).replace("{home}", &home);
                // The attack has a `PATH` of its own.
                words.push(peer.program().map_or_else(|| peer.prefix[0].into(), |it| text(&it)));
                words.extend(peer.prefix[1..].iter().map(put));
            }
        }
        words.extend([text(&stage.program()), ATTACK.to_owned(), attack.to_owned()]);
        words.extend(stage.told.iter().map(|(key, value)| format!("{key}={value}")));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Ok(command)
    }

    /// Why a case cannot be asked of this wall.
    pub(crate) fn cannot(&self, _case: &Case, stage: &Stage) -> Option<&'static str> {
        match self {
            Self::Peer(_) => stage.only_dewar,
            Self::Off | Self::Dewar(_) => None,
        }
    }
}

/// The profile that is asked for, or one that adds the case's rules to it.
fn profile(dewar: &Dewar, stage: &Stage) -> std::io::Result<String> {
    let text = match &stage.own_profile {
        Some(text) => text.clone(),
        None if stage.rules.is_empty() => return Ok(dewar.profile.clone()),
        None => format!("extends = {:?}\n{}", dewar.profile, stage.rules),
    };
    Ok(stage.file("profile.toml", &text)?.display().to_string())
}

//! Dewar's own server: with a plugin on each target, in its sandbox, behind nginx, and grown.

use super::{
    WebError,
    clock::ServiceClock,
    peers::nginx_in_front,
    server::{Server, directory, free_port, write},
};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

const GRAY: &str = include_str!("../../../../examples/plugins/gray.e");
/// The targets of plugins, and what each is.
pub(super) const TARGETS: [(&str, &str); 4] = [
    ("isolated", "a plugin in E-code that can touch nothing but its request"),
    ("native", "the same plugin, trusted: machine code without checks"),
    ("native+stack", "the same, with its stack guarded"),
    ("kernel", "the same plugin in the kernel, as BPF"),
];

/// The programs of Dewar that take part.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `dewar-serve`.
    pub serve: PathBuf,
    /// `dewar`, for the server in its sandbox; `None` leaves that out.
    pub dewar: Option<PathBuf>,
}

/// What a grown server has more of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grown {
    /// Plugins besides the one that is asked.
    pub(super) plugins: usize,
    /// Rules of its policy besides the usual ones.
    pub(super) rules: usize,
}

impl Programs {
    pub(super) fn start(
        &self,
        scratch: &Path,
        root: &Path,
        (target, what): (&str, &str),
    ) -> Result<Server, WebError> {
        let name = format!("dewar {target}");
        let own = directory(scratch, &name)?;
        let port = free_port()?;
        let mut command = Command::new(&self.serve);
        let at = format!("127.0.0.1:{port}");
        command.arg("serve").arg(root).args(["-l", &at]).args(["--plugin", &plugin(&own, target)?]);
        let socket = own.join("admin");
        command.arg("--access-log").arg(own.join("access.log")).arg("--admin").arg(&socket);
        let server = Server::start((&name, what), command, (port, target == "isolated"), &own)?;
        Ok(server.timed_by(ServiceClock::Metrics(socket)))
    }

    /// The server as `dewar run -p web` runs it.
    pub(super) fn start_sandboxed(&self, scratch: &Path, root: &Path) -> Result<Server, WebError> {
        let name = "dewar in its sandbox";
        let Some(dewar) = &self.dewar else {
            let what = "`dewar` does not lie beside this program".to_owned();
            return Err(WebError::Server { name: name.to_owned(), what });
        };
        let own = directory(scratch, name)?;
        let port = free_port()?;
        let plugin = plugin(&own, "isolated")?;
        let profile = own.join("site.toml");
        let (serve, place) = (self.serve.display(), own.display());
        let text = format!(
            "extends = 'web'\n[files]\nread = ['{place}']\nwrite = ['{place}']\nexec = ['{serve}']\n\
             [network]\nbind = ['127.0.0.1:{port}']\n"
        );
        write(&profile, &text)?;
        let mut command = Command::new(dewar);
        command.args(["run", "--no-daemon", "-p"]).arg(&profile).arg("-w").arg(root).arg("--");
        command.arg(&self.serve).arg("serve").arg(root);
        command.args(["-l", &format!("127.0.0.1:{port}"), "--plugin", &plugin]);
        command.arg("--access-log").arg(own.join("access.log")).current_dir(root);
        let what = "`dewar isolated` under `dewar run -p web`";
        Server::start((name, what), command, (port, true), &own)
    }

    /// nginx, which hands requests on to a process of its own by a unix socket.
    pub(super) fn start_behind(&self, scratch: &Path, root: &Path) -> Result<Server, WebError> {
        let name = "out of process";
        let own = directory(scratch, name)?;
        let (port, socket) = (free_port()?, own.join("socket"));
        let mut command = Command::new(&self.serve);
        command.arg("serve").arg(root).args(["-l", &format!("127.0.0.1:{port}")]);
        command.args(["-l", &format!("unix:{}", socket.display())]);
        command.args(["--plugin", &plugin(&own, "native")?]);
        let behind = Server::start((name, ""), command, (port, false), &own)?;
        let front = nginx_in_front(name, &directory(scratch, "in front")?, &socket)?;
        Ok(front.with(behind))
    }

    /// An isolated server that has more of something.
    pub(super) fn start_grown(
        &self,
        scratch: &Path,
        root: &Path,
        grown: Grown,
    ) -> Result<Server, WebError> {
        let Grown { plugins, rules } = grown;
        let name = format!("{plugins} plugins, {rules} rules");
        let own = directory(scratch, &name)?;
        write(&own.join("gray.e"), GRAY)?;
        write(&own.join("more.cil"), &policy(rules))?;
        let port = free_port()?;
        let mut config = format!(
            "root = '{}'\naccess_log = 'access.log'\npolicy = ['more.cil']\n[[listen]]\naddress = '127.0.0.1:{port}'\n\
             [plugins.gray]\nfile = 'gray.e'\nroute = '/gray/'\n",
            root.display()
        );
        for at in 0..plugins {
            // Writing to a `String` does not fail.
            let _ =
                write!(config, "[plugins.other-{at}]\nfile = 'gray.e'\nroute = '/other/{at}/'\n");
        }
        write(&own.join("web.toml"), &config)?;
        let mut command = Command::new(&self.serve);
        command.arg("serve").arg("--config").arg(own.join("web.toml"));
        Server::start((&name, ""), command, (port, false), &own)
    }
}

/// The option that says which plugin is used for what.
fn plugin(own: &Path, target: &str) -> Result<String, WebError> {
    let text = own.join("gray.e");
    write(&text, GRAY)?;
    Ok(format!("gray={},gives=image/x-portable-graymap,target={target}", text.display()))
}

/// As many rules, about as many types, none of which is the server's business.
fn policy(rules: usize) -> String {
    let mut text = String::new();
    for at in 0..rules {
        // Writing to a `String` does not fail.
        let _ = write!(
            text,
            "(type other{at}_t) (roletype object_r other{at}_t)\n(allow client_t other{at}_t (file (write)))\n"
        );
    }
    text
}

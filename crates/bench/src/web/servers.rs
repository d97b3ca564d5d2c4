//! The servers: how each is built, started and ended.

use super::{WebError, make_directory, write_images};
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const MOD_GRAY: &str = include_str!("../../../../peers/web/mod_gray.c");
const NGX_GRAY: &str = include_str!("../../../../peers/web/ngx_http_gray_module.c");
const LUA_GRAY: &str = include_str!("../../../../peers/web/gray.lua");
const E_GRAY: &str = include_str!("../../../../examples/plugins/gray.e");
/// What peers' extensions are compiled with.
const FLAGS: [(&str, &str); 2] = [("-O2", "-O2"), ("-O3 native", "-O3 -march=native")];
const TARGETS: [&str; 4] = ["isolated", "native", "native+stack", "kernel"];
const NGINX_SOURCE: &str = "/usr/share/nginx/src";

/// A server that runs, until this is dropped.
#[derive(Debug)]
pub struct Server {
    /// What tables call it.
    pub name: String,
    pub(super) port: u16,
    /// It is also measured with files as they are.
    pub(super) serves_plain: bool,
    gray: &'static str,
    child: Child,
}

/// Servers that run, and why others do not.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that run.
    pub servers: Vec<Server>,
    /// Those that do not: name and reason.
    pub missing: Vec<(String, String)>,
}

impl Server {
    pub(super) fn path(&self, image: &str, gray: bool) -> String {
        format!("{}/{image}.ppm", if gray { self.gray } else { "" })
    }

    /// Processor time that its processes have spent.
    pub(super) fn cpu(&self) -> Duration {
        let ticks: u64 = family(self.child.id()).into_iter().filter_map(ticks).sum();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process and all that descend from it.
fn family(id: u32) -> Vec<u32> {
    let mut all = vec![id];
    let mut at = 0;
    while let Some(id) = all.get(at).copied() {
        at += 1;
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|it| it.parse::<u32>().ok()));
    }
    all
}

/// User and system time of a process, in hundredths of a second.
fn ticks(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Builds and starts every server that this machine has, in directories below `scratch`. `dewar` is
/// `dewar-serve`.
///
/// # Errors
///
/// [`WebError`] when `scratch` cannot be used.
pub fn found(dewar: &Path, scratch: &Path) -> Result<Found, WebError> {
    let root = make_directory(&scratch.join("root"))?;
    write_images(&root)?;
    let mut found = Found::default();
    let mut add = |name: String, started: Result<Server, WebError>| match started {
        Ok(server) => found.servers.push(server),
        Err(error) => found.missing.push((name, error.to_string())),
    };
    for (name, flags) in FLAGS {
        let apache = format!("Apache {name}");
        add(apache.clone(), start_apache(&apache, scratch, &root, Some(flags)));
        let nginx = format!("nginx {name}");
        add(nginx.clone(), start_nginx(&nginx, scratch, &root, flags));
    }
    let lua = "Apache mod_lua".to_owned();
    add(lua.clone(), start_apache(&lua, scratch, &root, None));
    for target in TARGETS {
        let name = format!("dewar {target}");
        add(name.clone(), start_dewar(&name, dewar, scratch, (&root, target)));
    }
    Ok(found)
}

fn start_dewar(
    name: &str,
    binary: &Path,
    scratch: &Path,
    (root, target): (&Path, &str),
) -> Result<Server, WebError> {
    let own = make_directory(&scratch.join(name.replace([' ', '+'], "-")))?;
    let text = own.join("gray.e");
    write(&text, E_GRAY)?;
    let port = free_port()?;
    let plugin = format!("gray={},gives=image/x-portable-graymap,target={target}", text.display());
    let mut command = Command::new(binary);
    command.arg("serve").arg(root).args(["-l", &format!("127.0.0.1:{port}"), "--plugin", &plugin]);
    command.arg("--access-log").arg(own.join("access.log"));
    started(name, command, (port, "/gray", target == "isolated"), &own)
}

fn start_apache(
    name: &str,
    scratch: &Path,
    root: &Path,
    flags: Option<&str>,
) -> Result<Server, WebError> {
    let own = make_directory(&scratch.join(name.replace(' ', "-")))?;
    let filter = match flags {
        Some(flags) => {
            write(&own.join("mod_gray.c"), MOD_GRAY)?;
            let flags: String = flags.split(' ').map(|flag| format!("-Wc,{flag} ")).collect();
            shell(name, &own, &format!("apxs -c {flags} mod_gray.c"))?;
            format!("LoadModule gray_module {}/.libs/mod_gray.so\n", own.display())
        }
        None => {
            write(&own.join("gray.lua"), LUA_GRAY)?;
            format!(
                "LoadModule lua_module /usr/lib/apache2/modules/mod_lua.so\nLuaOutputFilter GRAY {}/gray.lua gray\n",
                own.display()
            )
        }
    };
    let port = free_port()?;
    let modules = "/usr/lib/apache2/modules";
    let (own_shown, root_shown) = (own.display(), root.display());
    let config = format!(
        "ServerRoot {own_shown}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {own_shown}/pid\n\
         ErrorLog {own_shown}/error.log\nLoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\nLoadModule alias_module {modules}/mod_alias.so\n\
         LoadModule mime_module {modules}/mod_mime.so\n{filter}\
         TypesConfig /etc/mime.types\nKeepAlive On\nMaxKeepAliveRequests 0\nEnableSendfile On\nBufferedLogs On\n\
         CustomLog {own_shown}/access.log \"%h %l %u %t \\\"%r\\\" %>s %b %D\"\n\
         DocumentRoot {root_shown}\n<Directory {root_shown}>\nRequire all granted\n</Directory>\n\
         Alias /gray {root_shown}\n<Location /gray>\nSetOutputFilter GRAY\n</Location>\n"
    );
    let path = own.join("apache.conf");
    write(&path, &config)?;
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-f").arg(&path).arg("-DFOREGROUND");
    let plain = flags == Some("-O2");
    started(name, command, (port, "/gray", plain), &own)
}

fn start_nginx(name: &str, scratch: &Path, root: &Path, flags: &str) -> Result<Server, WebError> {
    let own = make_directory(&scratch.join(name.replace(' ', "-")))?;
    let source = make_directory(&own.join("module"))?;
    write(
        &source.join("config"),
        "ngx_addon_name=ngx_http_gray_module\nngx_module_type=HTTP\nngx_module_name=ngx_http_gray_module\n\
         ngx_module_srcs=\"$ngx_addon_dir/ngx_http_gray_module.c\"\n. auto/module\n",
    )?;
    write(&source.join("ngx_http_gray_module.c"), NGX_GRAY)?;
    let (own_shown, root_shown) = (own.display(), root.display());
    // The module must be configured as the server was: with the same options, but for the
    // compiler's.
    shell(
        name,
        &own,
        &format!(
            "test -d src || cp -r {NGINX_SOURCE} src; cd src && source ./conf_flags && ./configure \
             \"${{NGX_CONF_FLAGS[@]}}\" --with-cc-opt='{flags}' --add-dynamic-module={own_shown}/module \
             >configure.out 2>&1 && make -f objs/Makefile modules >make.out 2>&1"
        ),
    )?;
    let port = free_port()?;
    let config = format!(
        "load_module {own_shown}/src/objs/ngx_http_gray_module.so;\ndaemon off;\nworker_processes auto;\n\
         pid {own_shown}/pid;\nerror_log {own_shown}/error.log;\nevents {{ worker_connections 20000; }}\n\
         http {{\n types {{ image/x-portable-pixmap ppm; }}\n sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
         open_file_cache max=1000 inactive=60s;\n access_log {own_shown}/access.log combined buffer=64k flush=1s;\n\
         client_body_temp_path {own_shown}; proxy_temp_path {own_shown}; fastcgi_temp_path {own_shown};\n\
         uwsgi_temp_path {own_shown}; scgi_temp_path {own_shown};\n\
         server {{ listen 127.0.0.1:{port} reuseport; root {root_shown};\n\
         location /gray/ {{ alias {root_shown}/; gray; }} }}\n}}\n"
    );
    let path = own.join("nginx.conf");
    write(&path, &config)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-c").arg(&path).arg("-p").arg(&own);
    started(name, command, (port, "/gray", flags == "-O2"), &own)
}

fn started(
    name: &str,
    mut command: Command,
    (port, gray, serves_plain): (u16, &'static str, bool),
    own: &Path,
) -> Result<Server, WebError> {
    let errors = fs::File::create(own.join("stderr"));
    let errors =
        errors.map_err(|error| WebError::system("cannot keep a server's errors", error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let child = command.spawn().map_err(|error| WebError::system(name, error))?;
    let mut server = Server { name: name.to_owned(), port, serves_plain, gray, child };
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(server);
        }
        if !matches!(server.child.try_wait(), Ok(None)) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let what = fs::read_to_string(own.join("stderr")).unwrap_or_default();
    let logged = fs::read_to_string(own.join("error.log")).unwrap_or_default();
    let what = format!("does not start: {} {}", what.trim(), logged.trim());
    Err(WebError::Server { name: name.to_owned(), what })
}

fn shell(name: &str, directory: &PathBuf, script: &str) -> Result<(), WebError> {
    let run = Command::new("bash").arg("-c").arg(script).current_dir(directory).output();
    let output = run.map_err(|error| WebError::system("cannot run a shell", error))?;
    if output.status.success() {
        return Ok(());
    }
    let what = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let what = format!("its extension does not build in `{}`: {what}", directory.display());
    Err(WebError::Server { name: name.to_owned(), what })
}

fn write(path: &Path, text: &str) -> Result<(), WebError> {
    fs::write(path, text)
        .map_err(|error| WebError::system(format!("cannot write `{}`", path.display()), error))
}

fn free_port() -> Result<u16, WebError> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    port.map(|address| address.port()).map_err(|error| WebError::system("no port is free", error))
}

//! Apache and nginx, with the same function in C or Lua: how each is built and configured.

use super::{
    WebError,
    clock::ServiceClock,
    server::{Server, directory, free_port, write},
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

const MOD_GRAY: &str = include_str!("../../../../peers/web/mod_gray.c");
const NGX_GRAY: &str = include_str!("../../../../peers/web/ngx_http_gray_module.c");
const LUA_GRAY: &str = include_str!("../../../../peers/web/gray.lua");
/// What peers' extensions are compiled with.
pub(super) const FLAGS: [(&str, &str); 2] = [("-O2", "-O2"), ("-O3 native", "-O3 -march=native")];
const NGINX_SOURCE: &str = "/usr/share/nginx/src";
/// What is needed of Debian.
const PACKAGES: [&str; 6] = ["apache2", "apache2-dev", "gcc", "make", "nginx", "nginx-dev"];

/// Installs the peers, as Debian has them.
///
/// # Errors
///
/// [`WebError`]; also if this is not root, or not Debian.
pub fn install() -> Result<(), WebError> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["install", "-y", "--no-install-recommends"]).args(PACKAGES);
    let output = command.output().map_err(|error| WebError::system("cannot run apt-get", error))?;
    if output.status.success() {
        return Ok(());
    }
    let what = format!(
        "cannot be installed by apt-get: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Err(WebError::Server { name: PACKAGES.join(", "), what })
}

pub(super) fn start_apache(
    scratch: &Path,
    root: &Path,
    flags: Option<(&str, &str)>,
) -> Result<Server, WebError> {
    let name = flags.map_or("Apache mod_lua".to_owned(), |(name, _)| format!("Apache {name}"));
    let own = directory(scratch, &name)?;
    let (filter, what) = match flags {
        Some((_, flags)) => {
            write(&own.join("mod_gray.c"), MOD_GRAY)?;
            let each: String = flags.split(' ').map(|flag| format!("-Wc,{flag} ")).collect();
            shell(&name, &own, &format!("apxs -c {each} mod_gray.c"))?;
            let load = format!("LoadModule gray_module {}/.libs/mod_gray.so\n", own.display());
            (load, format!("Apache, event, with its output filter in C, {flags}"))
        }
        None => {
            write(&own.join("gray.lua"), LUA_GRAY)?;
            let load = format!(
                "LoadModule lua_module /usr/lib/apache2/modules/mod_lua.so\nLuaOutputFilter GRAY {}/gray.lua gray\n",
                own.display()
            );
            (load, "Apache, event, with a filter in Lua".to_owned())
        }
    };
    let port = free_port()?;
    let path = own.join("apache.conf");
    write(&path, &apache(&own, root, port, &filter))?;
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-f").arg(&path).arg("-DFOREGROUND");
    let plain = flags.is_some_and(|(name, _)| name == "-O2");
    let server = Server::start((&name, &what), command, (port, plain), &own)?;
    Ok(server.timed_by(ServiceClock::log(own.join("access.log"))))
}

fn apache(own: &Path, root: &Path, port: u16, filter: &str) -> String {
    let modules = "/usr/lib/apache2/modules";
    let (own, root) = (own.display(), root.display());
    format!(
        "ServerRoot {own}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {own}/pid\n\
         ErrorLog {own}/error.log\nLoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\nLoadModule alias_module {modules}/mod_alias.so\n\
         LoadModule mime_module {modules}/mod_mime.so\n{filter}\
         TypesConfig /etc/mime.types\nKeepAlive On\nMaxKeepAliveRequests 0\nEnableSendfile On\nBufferedLogs On\n\
         CustomLog {own}/access.log \"%h %l %u %t \\\"%r\\\" %>s %b %D\"\n\
         DocumentRoot {root}\n<Directory {root}>\nRequire all granted\n</Directory>\n\
         Alias /gray {root}\n<Location /gray>\nSetOutputFilter GRAY\n</Location>\n"
    )
}

pub(super) fn start_nginx(
    scratch: &Path,
    root: &Path,
    (flags_name, flags): (&str, &str),
) -> Result<Server, WebError> {
    let name = format!("nginx {flags_name}");
    let own = directory(scratch, &name)?;
    let source = directory(&own, "module")?;
    write(
        &source.join("config"),
        "ngx_addon_name=ngx_http_gray_module\nngx_module_type=HTTP\nngx_module_name=ngx_http_gray_module\n\
         ngx_module_srcs=\"$ngx_addon_dir/ngx_http_gray_module.c\"\n. auto/module\n",
    )?;
    write(&source.join("ngx_http_gray_module.c"), NGX_GRAY)?;
    // The module must be configured as the server was: with the same options, but for the
    // compiler's.
    let build = format!(
        "test -d src || cp -r {NGINX_SOURCE} src; cd src && source ./conf_flags && ./configure \
         \"${{NGX_CONF_FLAGS[@]}}\" --with-cc-opt='{flags}' --add-dynamic-module={}/module \
         >configure.out 2>&1 && make -f objs/Makefile modules >make.out 2>&1",
        own.display()
    );
    shell(&name, &own, &build)?;
    let port = free_port()?;
    let load = format!("load_module {}/src/objs/ngx_http_gray_module.so;\n", own.display());
    let site = format!(
        "server {{ listen 127.0.0.1:{port} reuseport; root {root};\n\
         location /gray/ {{ alias {root}/; gray; }} }}\n",
        root = root.display()
    );
    let what = format!("nginx with a content handler in C, {flags}, open files kept");
    nginx((&name, &what), &own, (port, flags_name == "-O3 native"), (&load, &site))
}

/// nginx that hands everything on to `socket`, by connections that are kept.
pub(super) fn nginx_in_front(name: &str, own: &Path, socket: &Path) -> Result<Server, WebError> {
    let port = free_port()?;
    let site = format!(
        "upstream behind {{ server unix:{}; keepalive 16; }}\n\
         server {{ listen 127.0.0.1:{port} reuseport; location / {{ proxy_pass http://behind; proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\"; proxy_max_temp_file_size 0; proxy_buffers 16 64k; }} }}\n",
        socket.display()
    );
    let what = "nginx in front of a process of its own: a kept connection to `dewar native` by a unix socket";
    nginx((name, what), own, (port, false), ("", &site))
}

fn nginx(
    named: (&str, &str),
    own: &Path,
    at: (u16, bool),
    (load, site): (&str, &str),
) -> Result<Server, WebError> {
    // Its workers read what only this user may.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let place = own.display();
    let config = format!(
        "{load}{user}daemon off;\nworker_processes auto;\n\
         pid {place}/pid;\nerror_log {place}/error.log;\nevents {{ worker_connections 20000; }}\n\
         http {{\n types {{ image/x-portable-pixmap ppm; }}\n sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
         open_file_cache max=1000 inactive=60s;\n access_log {place}/access.log combined buffer=64k flush=1s;\n\
         client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
         uwsgi_temp_path {place}; scgi_temp_path {place};\n{site}}}\n"
    );
    let path = own.join("nginx.conf");
    write(&path, &config)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-c").arg(&path).arg("-p").arg(own);
    Server::start(named, command, at, own)
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

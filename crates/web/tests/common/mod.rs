//! A server in this process, and a client that says exactly what it is told.
#![allow(dead_code)]

pub(crate) mod h2;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};
use web::{Config, Listen, PluginConfig, Server};

pub(crate) const PLUGINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugins");

/// A directory with a few files, and what serves it.
pub(crate) struct Site {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) config: Config,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("index.html"), "<p>hello</p>\n").unwrap();
        fs::write(root.join("numbers.txt"), "0123456789").unwrap();
        fs::write(root.join("a.ppm"), image(60, 50)).unwrap();
        let mut config = Config::new(root);
        config.listen = vec![Listen { address: "127.0.0.1:0".to_owned(), ..Listen::default() }];
        config.workers = 2;
        config.revalidate_ms = 0;
        Self { directory, config }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.config.root.clone()
    }

    pub(crate) fn plugin(mut self, name: &str, config: PluginConfig) -> Self {
        self.config.plugins.insert(name.to_owned(), config);
        self
    }

    /// A plugin with this text.
    pub(crate) fn text(self, name: &str, text: &str, config: PluginConfig) -> Self {
        let file = self.directory.path().join(format!("{name}.e"));
        fs::write(&file, text).unwrap();
        self.plugin(name, PluginConfig { file, ..config })
    }

    pub(crate) fn start(&self) -> Server {
        Server::start(self.config.clone()).unwrap()
    }
}

pub(crate) fn route(route: &str) -> PluginConfig {
    PluginConfig { route: Some(route.to_owned()), ..PluginConfig::default() }
}

pub(crate) fn shipped(name: &str, config: PluginConfig) -> PluginConfig {
    PluginConfig { file: Path::new(PLUGINS).join(name), ..config }
}

/// An image in colour.
pub(crate) fn image(width: usize, height: usize) -> Vec<u8> {
    let mut image = format!("P6\n{width} {height}\n255\n").into_bytes();
    image.extend((0..width * height * 3).map(|at| (at * 7 % 251) as u8));
    image
}

/// The same in gray.
pub(crate) fn gray(image: &[u8]) -> Vec<u8> {
    let head = image.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
    let mut gray = image[..head].to_vec();
    gray[1] = b'5';
    gray.extend(image[head..].chunks_exact(3).map(|p| (p[0] >> 2) + 5 * (p[1] >> 3) + (p[2] >> 3)));
    gray
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends these bytes; all that comes back until the server closes.
pub(crate) fn raw(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

/// The first answer among `bytes`, and what is behind it.
pub(crate) fn split(bytes: &[u8]) -> (Reply, &[u8]) {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes))) + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let len = field(&head, "content-length").map_or(0, |len| len.parse().unwrap());
    let end_of_body = (end + len).min(bytes.len());
    (Reply { status, head, body: bytes[end..end_of_body].to_vec() }, &bytes[end_of_body..])
}

pub(crate) fn field(head: &str, name: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        field(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, "GET", path, "")
}

pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, fields: &str) -> Reply {
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n");
    split(&raw(address, request.as_bytes())).0
}

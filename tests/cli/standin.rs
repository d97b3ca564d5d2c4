//! A registry on loopback that stands in for those of npm, pip, Go and Cargo: files, as each of
//! them asks for.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use tempfile::TempDir;

/// The registry. It ends with the test.
pub(crate) struct Standin {
    files: TempDir,
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Standin {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let standin = Self { files: TempDir::new().unwrap(), port, asked: Arc::default() };
        let mut make = Command::new("bash");
        make.args(["-c", include_str!("standin.sh"), "standin"]);
        let made = make.arg(standin.files.path()).arg(standin.url("")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let root = standin.files.path().to_owned();
        let asked = Arc::clone(&standin.asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                asked.fetch_add(1, Ordering::Relaxed);
                let root = root.clone();
                thread::spawn(move || serve(&root, stream));
            }
        });
        standin
    }

    /// The address of what lies at `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How many connections it has had.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Answers the requests of one connection.
fn serve(root: &Path, stream: TcpStream) {
    let Ok(mut write) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(path) = request(&mut reader) {
        let (status, body) = match content(root, &path) {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", Vec::new()),
        };
        let kind = match path.as_str() {
            "npm/left" => "application/json",
            path if path.starts_with("pip/simple") => "text/html",
            _ => "application/octet-stream",
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: {kind}\r\n\r\n"
        );
        if write.write_all(head.as_bytes()).and_then(|()| write.write_all(&body)).is_err() {
            return;
        }
    }
}

/// The path that the next request asks for.
fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        let read = reader.read_line(&mut line).unwrap_or(0);
        (read > 0).then_some(line)
    };
    let request = line(reader)?;
    let mut length = 0;
    loop {
        let header = line(reader)?.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let _ = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink());
    let path = request.split_whitespace().nth(1)?;
    Some(path.split('?').next()?.trim_matches('/').to_owned())
}

fn content(root: &Path, path: &str) -> Option<Vec<u8>> {
    let path: PathBuf = root.join(path);
    let index = path.join("index");
    fs::read(if path.is_dir() { index } else { path }).ok()
}

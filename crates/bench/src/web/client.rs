//! Those who ask: `wrk`, and a client that asks once at a time.

use super::{Server, WebError};
use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

/// What `wrk` has found.
pub(super) struct Answered {
    pub(super) requests: f64,
    pub(super) rate: f64,
}

/// Has `wrk` ask by one thread over eight connections.
pub(super) fn load(server: &Server, path: &str, time: Duration) -> Result<Answered, WebError> {
    let wrong = |what: String| WebError::Server { name: server.name.clone(), what };
    let url = format!("http://127.0.0.1:{}{path}", server.port);
    let seconds = format!("{}s", time.as_secs().max(1));
    let run = Command::new("wrk").args(["-t1", "-c8", "-d", &seconds, &url]).output();
    let output = run.map_err(|error| WebError::system("cannot run wrk", error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(wrong(format!("not every request was answered: {text}")));
    }
    let number = |found: Option<&str>| found.and_then(|word| word.trim().parse::<f64>().ok());
    let requests = text.lines().find(|line| line.contains(" requests in "));
    let requests = number(requests.and_then(|line| line.split_whitespace().next()));
    let rate = number(text.lines().find_map(|line| line.strip_prefix("Requests/sec:")));
    match (requests, rate) {
        (Some(requests), Some(rate)) if requests > 0.0 => Ok(Answered { requests, rate }),
        _ => Err(wrong(format!("wrk says nothing that is understood: {text}"))),
    }
}

/// One connection.
pub(super) struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    pub(super) fn connect(server: &Server) -> Result<Self, WebError> {
        let connected = TcpStream::connect(("127.0.0.1", server.port)).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            Ok(stream)
        });
        let stream = connected.map_err(|error| WebError::system(server.name.clone(), error))?;
        Ok(Self { stream, input: vec![0; 64 << 10] })
    }

    /// What is answered.
    pub(super) fn get(&mut self, server: &Server, path: &str) -> Result<Vec<u8>, WebError> {
        let mut body = Vec::new();
        let asked = self.ask(path, &mut |bytes| body.extend_from_slice(bytes));
        asked.map_err(|error| WebError::system(server.name.clone(), error))?;
        Ok(body)
    }

    /// How long it takes until all is answered.
    pub(super) fn time(&mut self, server: &Server, path: &str) -> Result<Duration, WebError> {
        let begun = Instant::now();
        let asked = self.ask(path, &mut |_| {});
        asked.map_err(|error| WebError::system(server.name.clone(), error))?;
        Ok(begun.elapsed())
    }

    fn ask(&mut self, path: &str, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        write!(self.stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut len = 0;
        let end = loop {
            match self.stream.read(&mut self.input[len..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => len += count,
            }
            if let Some(at) = self.input[..len].windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8_lossy(&self.input[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse::<usize>().ok());
        if head.contains("transfer-encoding: chunked") {
            return self.chunks(end, len, take);
        }
        let length = length
            .filter(|_| head.starts_with("http/1.1 200"))
            .ok_or_else(|| io::Error::other(format!("an answer of no known length: {head}")))?;
        take(&self.input[end..len]);
        let mut left = length - (len - end);
        while left > 0 {
            let count = self.stream.read(&mut self.input)?;
            if count == 0 || count > left {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            take(&self.input[..count]);
            left -= count;
        }
        Ok(())
    }

    /// An answer in chunks, as mod_lua sends it.
    fn chunks(&mut self, at: usize, len: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut bytes = self.input[at..len].to_vec();
        loop {
            let line = bytes.windows(2).position(|it| it == b"\r\n");
            let size = line.and_then(|end| {
                usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?.trim(), 16).ok()
            });
            if let (Some(line), Some(size)) = (line, size)
                && bytes.len() >= line + 2 + size + 2
            {
                take(&bytes[line + 2..line + 2 + size]);
                bytes.drain(..line + 2 + size + 2);
                if size == 0 {
                    return Ok(());
                }
                continue;
            }
            match self.stream.read(&mut self.input)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&self.input[..count]),
            }
        }
    }
}

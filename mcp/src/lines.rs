//! The lines between the client and the library of the protocol. The library reads over what is no
//! JSON, and whoever has sent it would wait for ever: here it is answered.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufReader, DuplexStream, duplex, split,
    },
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The longest line that is taken, as by the library.
const MOST_BYTES: usize = 16 << 20;
/// What may be on its way, in bytes and in lines.
const AHEAD: usize = 64 << 10;
const LINES: usize = 16;
/// How long a client that has left may take none of its answers.
const LEFT: Duration = Duration::from_secs(5);

/// What goes on between the two.
pub(crate) struct Lines {
    heard: JoinHandle<()>,
    said: JoinHandle<()>,
}

/// Lines of `input` for the library, and its own for `output`; the stream that it has instead of
/// these. `has_left` says whether nobody is left who could write to `input`.
pub(crate) fn between(
    (input, has_left): (impl AsyncRead + Unpin + Send + 'static, fn() -> bool),
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> (DuplexStream, Lines) {
    let (theirs, ours) = duplex(AHEAD);
    let (from_library, to_library) = split(ours);
    // Whole lines, as two write them.
    let (say, lines) = channel(LINES);
    let heard = tokio::spawn(hear((input, has_left), to_library, say.clone()));
    tokio::spawn(pass(from_library, say));
    (theirs, Lines { heard, said: tokio::spawn(write(lines, output)) })
}

impl Lines {
    /// Waits until nothing more is heard, and then as long as answers may take.
    pub(crate) async fn left(&mut self, answers: Duration) {
        let _ = (&mut self.heard).await;
        sleep(answers).await;
    }

    /// Waits until all is written, once the library has gone.
    pub(crate) async fn end(self) {
        self.heard.abort();
        let _ = self.said.await;
    }
}

/// Hands on what is JSON, and answers what is not. Whoever takes no answers is not heard meanwhile.
async fn hear(
    (input, has_left): (impl AsyncRead + Unpin, fn() -> bool),
    mut to_library: impl AsyncWrite + Unpin,
    say: Sender<Vec<u8>>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while has_room(&say, has_left).await {
        line.clear();
        let whole = (&mut input).take(MOST_BYTES as u64).read_until(b'\n', &mut line).await;
        if !matches!(whole, Ok(1..)) {
            break;
        }
        let why = match line.len() {
            MOST_BYTES if !line.ends_with(b"\n") => {
                skip(&mut input).await;
                Some("it is longer than 16 MiB".to_owned())
            }
            _ => mistake(&line),
        };
        let is_passed = match why {
            Some(why) => say.send(answer(&why)).await.is_ok(),
            None => to_library.write_all(&line).await.is_ok(),
        };
        if !is_passed {
            break;
        }
    }
    // The end of the input is that of the library's, too.
    let _ = to_library.shutdown().await;
}

/// Waits for room for an answer; `false` if there will be none.
async fn has_room(say: &Sender<Vec<u8>>, has_left: fn() -> bool) -> bool {
    loop {
        match timeout(LEFT, say.reserve()).await {
            Ok(room) => return room.is_ok(),
            Err(_) if has_left() => return false,
            Err(_) => {}
        }
    }
}

/// Reads over the rest of a line.
async fn skip(input: &mut BufReader<impl AsyncRead + Unpin>) {
    let mut rest = Vec::new();
    while !rest.ends_with(b"\n") {
        rest.clear();
        let more = (&mut *input).take(AHEAD as u64).read_until(b'\n', &mut rest).await;
        if !matches!(more, Ok(1..)) {
            break;
        }
    }
}

/// Why a line is no JSON, for example as half a character stands in a string.
fn mistake(line: &[u8]) -> Option<String> {
    // As the library does.
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    serde_json::from_slice::<Value>(line).err().map(|error| error.to_string())
}

/// The answer of JSON-RPC to what cannot be parsed. Nobody can tell which question it was.
fn answer(why: &str) -> Vec<u8> {
    let error = json!({ "code": -32700, "message": format!("Parse error: {why}") });
    let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    format!("{answer}\n").into_bytes()
}

/// Hands on what the library says.
async fn pass(from_library: impl AsyncRead + Unpin, say: Sender<Vec<u8>>) {
    let mut from_library = BufReader::new(from_library);
    loop {
        let mut line = Vec::new();
        let read = from_library.read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) || say.send(line).await.is_err() {
            break;
        }
    }
}

async fn write(mut lines: Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            break;
        }
    }
}

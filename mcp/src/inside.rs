//! What a server in a sandbox says to the run around it, by DEWAR_DENIALS (docs/ask.md).

use serde_json::Value;
use std::{future::Future, io, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    select,
    time::sleep,
};

/// The most that is heard; more is no help to an agent.
const MOST_BYTES: u64 = 256 << 10;

/// Says a line to the run at `socket`, and returns what comes back until one of `last`, or a
/// refusal; unless it takes longer than `limit`, or `cancelled` comes before.
pub(crate) async fn say(
    socket: String,
    (request, last): (Value, &[&str]),
    limit: Duration,
    cancelled: impl Future<Output = ()>,
) -> Result<String, String> {
    let mut told = String::new();
    let over = select! {
        done = talk(socket, (request, last), &mut told) => match done {
            Ok(()) => return Ok(told),
            Err(error) => format!("the run does not answer: {error}"),
        },
        () = sleep(limit) => format!("the run has not answered within {} s", limit.as_secs()),
        () = cancelled => "cancelled".to_owned(),
    };
    Err(if told.is_empty() { over } else { format!("{over}; so far:\n{told}") })
}

async fn talk(
    socket: String,
    (request, last): (Value, &[&str]),
    told: &mut String,
) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(format!("{request}\n").as_bytes()).await?;
    let mut lines = BufReader::new(stream.take(MOST_BYTES));
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        told.push_str(&line);
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        if !event["refused"].is_null() || last.iter().any(|key| !event[*key].is_null()) {
            return Ok(());
        }
    }
}

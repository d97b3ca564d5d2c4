//! Other ways to call another process and wait for its reply, for the table of `dewar bench ipc`.
//!
//! `ipc-peers WAY serve PLACE` answers each message with the same bytes, after it has printed
//! `ready`. `ipc-peers WAY call PLACE` reads lines `BYTES COUNT`, makes that many round trips, and
//! prints how many nanoseconds they took together. PLACE is a path of its own for each pair.
#![forbid(unsafe_code)]

mod dbus;
mod grpc;
mod shared;

use std::{
    error::Error,
    io::{BufRead as _, Write as _, stdin, stdout},
    path::Path,
    time::Instant,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let &[way, role, place] = words.as_slice() else {
        return Err("usage: ipc-peers dbus|grpc|iceoryx2 serve|call PLACE".into());
    };
    let place = Path::new(place);
    match (way, role) {
        ("dbus", "serve") => dbus::serve(place),
        ("dbus", "call") => dbus::call(place),
        ("grpc", "serve") => grpc::serve(place),
        ("grpc", "call") => grpc::call(place),
        ("iceoryx2", "serve") => shared::serve(place),
        ("iceoryx2", "call") => shared::call(place),
        _ => Err(format!("no way `{way}`, or no role `{role}`").into()),
    }
}

/// All that these need runs on one thread.
fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn ready() -> Outcome {
    writeln!(stdout(), "ready")?;
    Ok(stdout().flush()?)
}

/// Makes the round trips that standard input asks for.
fn on_demand(mut round_trip: impl FnMut(&[u8]) -> Outcome<usize>) -> Outcome {
    ready()?;
    for line in stdin().lock().lines() {
        let line = line?;
        let (bytes, count) = line.split_once(' ').ok_or("a line is `BYTES COUNT`")?;
        let (message, count) = (vec![7; bytes.parse()?], count.parse::<u64>()?);
        let begun = Instant::now();
        for _ in 0..count {
            if round_trip(&message)? != message.len() {
                return Err("the reply is not as long as the request".into());
            }
        }
        writeln!(stdout(), "{}", begun.elapsed().as_nanos())?;
        stdout().flush()?;
    }
    Ok(())
}

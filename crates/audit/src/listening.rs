//! Where services of the machine listen, looked at from a run with a loopback of its own.

use proc::listeners;
use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

/// A table that is longer is not read to its end.
const MOST_BYTES: u64 = 4 << 20;

/// The tables of the machine's TCP sockets, opened before the run got a network of its own: they
/// stay those of the machine.
#[derive(Debug)]
pub struct Listening(Mutex<Vec<File>>);

impl Listening {
    /// Of the network that the caller is in.
    pub fn here() -> Self {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
        Self(Mutex::new(tables.into_iter().filter_map(|path| File::open(path).ok()).collect()))
    }

    /// Where somebody listens now.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = tables.iter_mut().filter_map(|table| read(table).ok());
        texts.flat_map(|text| listeners(&text).collect::<Vec<_>>()).collect()
    }
}

fn read(table: &mut File) -> io::Result<String> {
    let mut text = String::new();
    table.rewind()?;
    table.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_listens_is_found_by_its_address() {
        let listening = Listening::here();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = TcpListener::bind(at) else { continue };
            let own = server.local_addr().unwrap();
            assert!(listening.addresses().contains(&own), "{own}");
            drop(server);
            assert!(!listening.addresses().contains(&own), "{own}");
        }
    }
}

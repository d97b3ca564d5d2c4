//! D-Bus: through `dbus-daemon`, as programs on a desktop call each other.

use crate::{Outcome, on_demand, ready, runtime};
use serde_bytes::{ByteBuf, Bytes};
use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};
use zbus::connection::Builder;

const NAME: &str = "dewar.bench.Peer";
const PATH: &str = "/dewar/bench/Peer";

struct Echo;

#[zbus::interface(name = "dewar.bench.Peer")]
impl Echo {
    fn echo(&self, message: ByteBuf) -> ByteBuf {
        message
    }
}

fn address(place: &Path) -> String {
    format!("unix:path={}", place.display())
}

pub(crate) fn serve(place: &Path) -> Outcome {
    // It ends with this process, however that ends.
    let mut daemon = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "dbus-daemon",
            "--session",
            "--nofork",
            "--nopidfile",
            "--nosyslog",
        ])
        .arg(format!("--address={}", address(place)))
        .stderr(Stdio::null())
        .spawn()?;
    while !place.exists() {
        if let Some(status) = daemon.try_wait()? {
            return Err(format!("dbus-daemon: {status}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    runtime()?.block_on(async {
        let builder = Builder::address(address(place).as_str()).name(NAME).serve_at(PATH, Echo);
        let _connection = builder.build().await?;
        ready()?;
        std::future::pending().await
    })
}

pub(crate) fn call(place: &Path) -> Outcome {
    let runtime = runtime()?;
    let connection = runtime.block_on(Builder::address(address(place).as_str()).build())?;
    on_demand(|message| {
        runtime.block_on(async {
            let body = Bytes::new(message);
            let reply = connection.call_method(Some(NAME), PATH, Some(NAME), "Echo", &body);
            let reply: ByteBuf = reply.await?.body().deserialize()?;
            Ok(reply.len())
        })
    })
}

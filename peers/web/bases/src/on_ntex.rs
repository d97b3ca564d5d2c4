//! ntex's own reader and writer of HTTP/1.1, on tokio, with one worker; without the framework
//! above.

use crate::{all, length};
use ntex::{
    http::{HttpService, Request, Response},
    rt::{DefaultRuntime, System},
    util::Bytes,
};
use std::{io, net::SocketAddr};

pub(crate) fn serve(address: SocketAddr) {
    let system = System::new("bases", DefaultRuntime);
    system.block_on(run(address)).expect("a server");
}

async fn run(address: SocketAddr) -> io::Result<()> {
    let answering = async |_| {
        let all = Bytes::from(all());
        HttpService::h1(move |request: Request| {
            let body = all.slice(..length(request.path()));
            async move { Ok::<_, io::Error>(Response::Ok().body(body)) }
        })
    };
    ntex::server::build().workers(1).bind("bases", address, answering)?.run().await
}

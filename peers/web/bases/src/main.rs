//! `bases epoll|hyper|monoio|ntex|pingora PORT`: answers `GET /N` with N bytes from memory, on one
//! thread.

mod epoll;
mod on_ntex;
mod on_pingora;

use std::{convert::Infallible, net::SocketAddr};

/// How long the answer to this target is.
fn length(target: &str) -> usize {
    target.trim_start_matches('/').parse().unwrap_or(0)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let kind = args.next().expect("epoll, hyper, monoio, ntex or pingora");
    let port = args.next().and_then(|port| port.parse().ok()).expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    match kind.as_str() {
        "epoll" => epoll::serve(address),
        "hyper" => hyper(address),
        "monoio" => monoio(address),
        "ntex" => on_ntex::serve(address),
        "pingora" => on_pingora::serve(address),
        other => panic!("there is no base `{other}`"),
    }
}

fn hyper(address: SocketAddr) {
    use http_body_util::Full;
    use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
    let all = bytes::Bytes::from(all());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.expect("a runtime").block_on(async move {
        let listener = tokio::net::TcpListener::bind(address).await.expect("a port");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("an option");
            let all = all.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let body = all.slice(..length(request.uri().path()));
                    async move { Ok::<_, Infallible>(Response::new(Full::new(body))) }
                });
                let io = hyper_util::rt::TokioIo::new(stream);
                let _ = http1::Builder::new().serve_connection(io, service).await;
            });
        }
    });
}

/// With io_uring where the machine lets it, else with epoll.
fn monoio(address: SocketAddr) {
    use monoio::io::{AsyncReadRent as _, AsyncWriteRentExt as _};
    let runtime = monoio::RuntimeBuilder::<monoio::FusionDriver>::new().build();
    runtime.expect("a runtime").block_on(async move {
        let listener = monoio::net::TcpListener::bind(address).expect("a port");
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.set_nodelay(true);
            monoio::spawn(async move {
                let (mut input, mut answer) = (vec![0_u8; 4096], bytes::Bytes::new());
                loop {
                    let (read, buffer) = stream.read(input).await;
                    input = buffer;
                    let Ok(count @ 1..) = read else { return };
                    let Some(len) = asked(&input[..count]) else { return };
                    if answer.len() < len {
                        answer = whole(len).into();
                    }
                    if stream.write_all(answer.clone()).await.0.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// What answers from memory are cut from.
fn all() -> Vec<u8> {
    vec![b'x'; 4 << 20]
}

/// How much a request asks for, if all of its head is there and makes sense.
fn asked(bytes: &[u8]) -> Option<usize> {
    let line = bytes.strip_prefix(b"GET ")?;
    let end = line.iter().position(|byte| *byte == b' ')?;
    bytes.ends_with(b"\r\n\r\n").then(|| length(std::str::from_utf8(&line[..end]).unwrap_or("")))
}

/// An answer with its head, in one piece, as a plugin's reply lies behind the head.
fn whole(len: usize) -> Vec<u8> {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + len, b'x');
    answer
}

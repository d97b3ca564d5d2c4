//! pingora's own reader and writer of HTTP/1.1, on one thread that steals no work; without the
//! proxy above.

use crate::{all, length};
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::{
    apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream},
    protocols::http::ServerSession,
    server::{Server, ShutdownWatch, configuration::ServerConf},
    services::listening::Service,
};
use pingora_http::ResponseHeader;
use std::{net::SocketAddr, sync::Arc};

struct App(Bytes);

pub(crate) fn serve(address: SocketAddr) {
    let conf = ServerConf { threads: 1, work_stealing: false, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = Service::new("bases".to_owned(), App(all().into()));
    service.add_tcp(&address.to_string());
    server.add_service(service);
    server.run_forever();
}

#[async_trait]
impl HttpServerApp for App {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !session.read_request().await.ok()? {
            return None;
        }
        session.set_keepalive(Some(60));
        let len = length(session.req_header().uri.path());
        let mut head = ResponseHeader::build(200, Some(2)).ok()?;
        head.insert_header("Date", "Sun, 06 Nov 1994 08:49:37 GMT").ok()?;
        head.insert_header("Content-Length", len).ok()?;
        session.write_response_header(Box::new(head)).await.ok()?;
        session.write_response_body(self.0.slice(..len), true).await.ok()?;
        let settings = HttpPersistentSettings::for_session(&session);
        let reused = session.finish().await.ok()?;
        reused.map(|stream| ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

//! gRPC over a unix socket.

use crate::{Outcome, on_demand, ready, runtime};
use std::{
    convert::Infallible,
    future::{Future, Ready, ready as now},
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status,
    body::Body,
    server::{NamedService, UnaryService},
    transport::{Endpoint, Server},
};
use tonic_prost::ProstCodec;

/// `google.protobuf.BytesValue`.
type Bytes = Vec<u8>;

#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "dewar.bench.Peer";
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        now(Ok(Response::new(request.into_inner())))
    }
}

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async {
            let mut handler = tonic::server::Grpc::new(ProstCodec::<Bytes, Bytes>::default());
            Ok(handler.unary(Echo, request).await)
        })
    }
}

pub(crate) fn serve(place: &Path) -> Outcome {
    runtime()?.block_on(async {
        let listener = UnixListener::bind(place)?;
        ready()?;
        let connections = UnixListenerStream::new(listener);
        Ok(Server::builder().add_service(Echo).serve_with_incoming(connections).await?)
    })
}

pub(crate) fn call(place: &Path) -> Outcome {
    let (runtime, place) = (runtime()?, place.to_owned());
    let mut client = runtime.block_on(async {
        let connect = move |_| {
            let place = place.clone();
            async move { UnixStream::connect(place).await.map(hyper_util::rt::TokioIo::new) }
        };
        // The address is not used: the connector knows the way.
        let endpoint = Endpoint::from_static("http://peer");
        let channel = endpoint.connect_with_connector(tower::service_fn(connect)).await?;
        Ok::<_, tonic::transport::Error>(tonic::client::Grpc::new(channel))
    })?;
    let path = http::uri::PathAndQuery::from_static("/dewar.bench.Peer/Echo");
    on_demand(|message| {
        let request = Request::new(message.to_vec());
        runtime.block_on(async {
            client.ready().await?;
            let codec = ProstCodec::<Bytes, Bytes>::default();
            let reply = client.unary(request, path.clone(), codec).await?;
            Ok(reply.into_inner().len())
        })
    })
}

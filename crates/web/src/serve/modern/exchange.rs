//! A request that hyper has read, and its answer.

use super::{Client, Local};
use crate::{
    answer::{Answer, Ask, Body, Record, Responder},
    http::head::MAX_FIELDS,
    serve::{
        body::{BUFFERED, Content, LOOK, collect, pass_over},
        head::{bytes_of, has_wrong_host, may_be_read_otherwise},
        pace::UnderWay,
        share::{Share, Waiting},
    },
};
use bytes::Bytes;
use httparse::{EMPTY_HEADER, Header, Status};
use hyper::{
    Request, Response,
    body::{Body as _, Incoming},
};
use std::{
    io,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

impl Local {
    /// The answer to what was asked, or to what was refused with a status.
    fn answer(&self, ask: &Ask<'_>, (refused, has_room): (Option<u16>, bool)) -> Answer {
        let mut responder = self.responder.borrow_mut();
        responder.refresh();
        responder.has_room = has_room;
        match refused {
            Some(status) => responder.refusal(crate::http::head::refuse(status, "")),
            None => responder.respond(ask),
        }
    }
}

pub(super) async fn answer(
    local: Rc<Local>,
    client: Rc<Client>,
    under_way: UnderWay,
    request: Request<Incoming>,
) -> Result<Response<Content>, io::Error> {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let limits = local.responder.borrow().site.config.limits;
    let wanted = local.responder.borrow().wants_body(target);
    let time = Duration::from_millis(limits.request_ms.into());
    // What has come is counted as it comes.
    let mut coming = Waiting::new(&client.requests, bytes_of(&parts));
    let most = limits.waiting_bytes;
    let body = if has_wrong_host(&parts) {
        Err(400)
    } else if body.is_end_stream() {
        Ok(Vec::new())
    } else if client.requests.is_over(most, limits.body_bytes) {
        Err(503)
    } else if wanted {
        match timeout(time, collect(body, &mut coming, &limits)).await {
            Ok(collected) => collected.map_err(io::Error::other)?,
            Err(_) => Err(408),
        }
    } else {
        if parts.version == http::Version::HTTP_2
            && let Ok(passed) = timeout(time, pass_over(body, limits.body_bytes)).await
        {
            passed.map_err(io::Error::other)?;
        }
        Ok(Vec::new())
    };
    let mut fields = Vec::with_capacity(parts.headers.len() + 1);
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    if let Some(host) = authority.filter(|_| !parts.headers.contains_key("host")) {
        fields.push(Header { name: "host", value: host.as_bytes() });
    }
    for (name, value) in &parts.headers {
        fields.push(Header { name: name.as_str(), value: value.as_bytes() });
    }
    let version = if parts.version == http::Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" };
    let (body, refused) = match body {
        // A new connection shows who the client is by now.
        _ if !client.is_believed(&local) => (Vec::new(), Some(421)),
        Ok(body) => (body, None),
        Err(status) => (Vec::new(), Some(status)),
    };
    let method = parts.method.as_str();
    let Client { label, peer, .. } = *client;
    let (fields, body) = (&*fields, &*body);
    let ask = Ask { method, target, fields, body, label, peer, version };
    let asked = Instant::now();
    // Whoever has more than its share waits for room.
    let (answer, turn, turned) = loop {
        let (turn, turned) = (client.turns.next().await, Instant::now());
        let has_room = refused.is_some() || !client.replies.is_over(BUFFERED, 0);
        let answer = local.answer(&ask, (refused, has_room));
        if answer.status != 503 || has_room || asked.elapsed() > time / 2 {
            break (answer, turn, turned);
        }
        drop(turn);
        sleep(LOOK).await;
    };
    drop(coming);
    let answer = (answer, begun);
    let mut response = response(&client.replies, &mut local.responder.borrow_mut(), &ask, answer);
    if may_be_read_otherwise(&parts, under_way.has_bare_line_feed()) {
        let close = http::HeaderValue::from_static("close");
        response.headers_mut().insert("connection", close);
    }
    response.body_mut().until_gone(under_way);
    turn.end(turned.elapsed()).await;
    Ok(response)
}

/// An answer, as hyper takes it.
fn response(
    share: &Arc<Share>,
    responder: &mut Responder,
    ask: &Ask<'_>,
    (answer, begun): (Answer, Instant),
) -> Response<Content> {
    let Answer { status, body, len, plugin, .. } = answer;
    let content = match body {
        _ if ask.method == "HEAD" => Content::shared(Bytes::new(), share),
        Body::Empty => Content::shared(Bytes::new(), share),
        Body::Bytes(bytes) => Content::shared(bytes, share),
        Body::Own(bytes) => Content::own(bytes, share),
        Body::File(file, from, to) => Content::file(file, (from, to), share),
        Body::Reply(mut lease, len) => {
            let bytes = lease.session.reply(len).to_vec();
            responder.pool.give_back(lease);
            Content::own(bytes, share)
        }
    };
    let mut response = Response::new(content);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("server", http::HeaderValue::from_static("dewar"));
    if ask.method == "HEAD" && status != 304 && status != 204 {
        headers.insert("content-length", len.into());
    }
    let mut text = responder.fields.clone();
    text.extend_from_slice(b"\r\n");
    let mut room = [EMPTY_HEADER; MAX_FIELDS];
    if let Ok(Status::Complete((_, fields))) = httparse::parse_headers(&text, &mut room) {
        for field in fields {
            let name = http::HeaderName::from_bytes(field.name.as_bytes());
            let value = http::HeaderValue::from_bytes(field.value);
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
    }
    let bytes = if ask.method == "HEAD" { 0 } else { len };
    let us = begun.elapsed().as_micros() as u64;
    let plugin = plugin.as_ref().map(|binding| binding.name.as_str());
    responder.done(ask, Record { status, bytes, us, plugin });
    response
}

//! Plugins that answer requests themselves.

use super::{Answer, Ask, Body, Failure, Responder};
use crate::{http::head::MAX_FIELDS, plugins::Binding};
use bytes::Bytes;
use httparse::{EMPTY_HEADER, Status};
use std::{sync::Arc, time::Instant};

/// What a plugin cannot say: these belong to the connection.
const OURS: [&str; 6] =
    ["content-length", "transfer-encoding", "connection", "date", "server", "keep-alive"];

impl Responder {
    pub(super) fn handled(
        &mut self,
        ask: &Ask<'_>,
        binding: &Arc<Binding>,
    ) -> Result<Answer, Failure> {
        if !self.may_answer(ask, binding) {
            binding.counters[self.index].denied.add(1);
            return Err(Failure(403));
        }
        if !self.has_room {
            return Err(Failure(503));
        }
        let mut request = Vec::with_capacity(512 + ask.body.len());
        head_of(ask, &mut request);
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(ask.body);
        let reply = self.call(ask, binding, &request)?;
        let wrong = |this: &Self, what| {
            this.complain(ask, binding, what);
            Failure(502)
        };
        let mut room = [EMPTY_HEADER; MAX_FIELDS];
        let Ok(Status::Complete((len, fields))) = httparse::parse_headers(&reply, &mut room) else {
            return Err(wrong(
                self,
                "its reply has no header fields and empty line at its beginning",
            ));
        };
        let mut status = 200;
        for field in fields {
            if field.name.eq_ignore_ascii_case("status") {
                let text = std::str::from_utf8(field.value).unwrap_or_default();
                let number = text.split(' ').next().and_then(|number| number.parse().ok());
                status = number
                    .filter(|status| (200..600).contains(status))
                    .ok_or_else(|| wrong(self, "its status is none"))?;
            } else {
                self.field(field.name, field.value);
            }
        }
        let body = Bytes::from(reply).slice(len..);
        let plugin = Some(Arc::clone(binding));
        let body = if matches!(status, 204 | 205 | 304) { Body::Empty } else { Body::Own(body) };
        Ok(Answer { plugin, ..Answer::new(status, body) })
    }

    /// A plugin's reply to `request`.
    pub(super) fn call(
        &mut self,
        ask: &Ask<'_>,
        binding: &Arc<Binding>,
        request: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let mut lease = self.lease(ask, binding)?;
        let begun = Instant::now();
        let ran = lease.session.fill(request).and_then(|()| lease.session.run_on(&request));
        let len = self.ran(ask, binding, begun, ran)?;
        let reply = lease.session.reply(len).to_vec();
        self.pool.give_back(lease);
        let counters = &binding.counters[self.index];
        counters.bytes_in.add(request.len() as u64);
        counters.bytes_out.add(len as u64);
        Ok(reply)
    }

    /// Adds a field that a plugin wants, if it is a plugin's business.
    pub(super) fn field(&mut self, name: &str, value: &[u8]) {
        if !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            self.fields.extend_from_slice(name.as_bytes());
            self.fields.extend_from_slice(b": ");
            self.fields.extend_from_slice(value);
            self.fields.extend_from_slice(b"\r\n");
        }
    }
}

/// A request's line and fields, as plugins are given them.
pub(super) fn head_of(ask: &Ask<'_>, out: &mut Vec<u8>) {
    for part in [ask.method, " ", ask.target, " ", ask.version, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for field in ask.fields {
        out.extend_from_slice(field.name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
}

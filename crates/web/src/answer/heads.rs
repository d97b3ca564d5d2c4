//! Plugins that see and change the heads of answers.

use super::{Answer, Ask, Body, Failure, Responder, handler::head_of, resolve::slashed};
use crate::{
    http::{head::MAX_FIELDS, path, reason},
    plugins::Binding,
};
use httparse::{EMPTY_HEADER, Status};
use std::{io::Write as _, sync::Arc};

impl Responder {
    /// The answer, its fields as the plugins for heads make them, one after the other.
    pub(super) fn with_heads(&mut self, ask: &Ask<'_>, answer: Answer) -> Result<Answer, Failure> {
        if !self.bindings.has_heads() {
            return Ok(answer);
        }
        let (bindings, media) = (Arc::clone(&self.bindings), self.media().unwrap_or_default());
        // One path, however a client writes it, and that of the file, to which a plugin's route
        // leads, too: or it would choose who sees its answer.
        let path = path::decode(ask.path().as_bytes()).map(|target| target.path);
        let mut paths = vec![slashed(&path.unwrap_or_default())];
        paths.extend(answer.lies.as_deref().map(slashed));
        let fields = self.fields.clone();
        for binding in bindings.by_head(&paths, &media) {
            if let Err(failure) = self.rewrite(ask, &answer, binding) {
                if failure.0 == 503 && self.is_outdated() {
                    // It was unloaded meanwhile: those that are there now see the answer as it was.
                    self.refresh();
                    self.fields = fields;
                    return self.with_heads(ask, answer);
                }
                if let Body::Reply(lease, _) = answer.body {
                    self.pool.give_back(lease);
                }
                return Err(failure);
            }
        }
        Ok(answer)
    }

    /// The type of what is answered, in small letters.
    fn media(&self) -> Option<String> {
        let mut lines = self.fields.split(|byte| *byte == b'\n');
        // However a handler writes it: clients read it so.
        let value = lines.find_map(|line| {
            let (name, value) = line.split_at_checked(line.iter().position(|b| *b == b':')?)?;
            name.eq_ignore_ascii_case(b"content-type").then_some(&value[1..])
        });
        let text = std::str::from_utf8(value?).ok()?;
        Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    fn rewrite(
        &mut self,
        ask: &Ask<'_>,
        answer: &Answer,
        binding: &Arc<Binding>,
    ) -> Result<(), Failure> {
        if !self.may_answer(ask, binding) {
            binding.counters[self.index].denied.add(1);
            return Err(Failure(403));
        }
        let mut request = Vec::with_capacity(1024);
        head_of(ask, &mut request);
        // Writing to a `Vec` does not fail.
        let _ = write!(request, "\r\nHTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
        request.extend_from_slice(&self.fields);
        request.extend_from_slice(b"\r\n");
        let mut reply = self.call(ask, binding, &request)?;
        reply.extend_from_slice(b"\r\n\r\n");
        let mut room = [EMPTY_HEADER; MAX_FIELDS];
        let Ok(Status::Complete((_, fields))) = httparse::parse_headers(&reply, &mut room) else {
            self.complain(ask, binding, "its reply is no list of header fields");
            return Err(Failure(502));
        };
        self.fields.clear();
        for field in fields {
            self.field(field.name, field.value);
        }
        Ok(())
    }
}

//! A file as it is: whole, in part, or compressed.

use super::{Answer, Ask, Body, Failure, Responder, resolve::Known};
use crate::{
    compress,
    files::{Served, ServedPath, compressed},
    http::{
        accept::Coding,
        conditional::{self, Precondition},
        head::field,
        range::Range,
    },
};
use bytes::Bytes;
use std::{io::Write as _, sync::Arc};

/// Content in another coding.
enum Coded {
    File(Arc<Served>, Coding),
    Bytes(Bytes, Coding),
}

impl Responder {
    /// The answer with a file's content, or with what a plugin makes of it.
    pub(super) fn content(&mut self, ask: &Ask<'_>, known: &Known) -> Result<Answer, Failure> {
        let (file, manager) = (&known.file, &self.shared.manager);
        if !manager.may_read(ask.label, file.sid, &file.hint, &known.path) {
            return Err(Failure(403));
        }
        match self.transformer(ask, known)? {
            Some(binding) => self.transformed(ask, known, &binding),
            None => Ok(self.plain(ask, known)),
        }
    }

    fn plain(&mut self, ask: &Ask<'_>, known: &Known) -> Answer {
        let file = &known.file;
        if ask.fields.len() > 1 && compress::shrinks(file.essence()) {
            self.fields.extend_from_slice(b"Vary: Accept-Encoding\r\n");
            if let Some(coded) = self.coded(ask, known) {
                self.keep_within_bounds();
                return self.in_coding(ask, file, coded);
            }
        }
        self.fields.extend_from_slice(&file.fields);
        match conditional::outcome(ask.fields, &file.etag, file.modified) {
            Precondition::Go => {}
            Precondition::NotModified => return Answer::new(304, Body::Empty),
            Precondition::Failed => return Answer::new(412, Body::Empty),
        }
        let range = field(ask.fields, "range").filter(|_| ask.method == "GET");
        let range =
            range.filter(|_| conditional::range_holds(ask.fields, &file.etag, file.modified));
        match range.map_or(Range::All, |range| Range::parse(range, file.len)) {
            Range::All => Answer::new(200, whole(file)),
            Range::Part(from, to) => {
                // Writing to a `Vec` does not fail.
                let _ =
                    write!(self.fields, "Content-Range: bytes {from}-{}/{}\r\n", to - 1, file.len);
                Answer::new(206, Body::File(Arc::clone(file), from, to))
            }
            Range::Unsatisfiable => {
                let _ = write!(self.fields, "Content-Range: bytes */{}\r\n", file.len);
                Answer::new(416, Body::Empty)
            }
        }
    }

    /// The content in the best coding that the client takes and that there is.
    fn coded(&self, ask: &Ask<'_>, known: &Known) -> Option<Coded> {
        let accept = field(ask.fields, "accept-encoding")?;
        if field(ask.fields, "range").is_some() {
            return None;
        }
        compress::taken(accept).find_map(|coding| {
            let beforehand = self.site.files.find(&compressed(&known.path, coding), None);
            match beforehand {
                // One that is older shows what the file was.
                Ok(ServedPath::File(coded))
                    if coded.modified >= known.file.modified && coded.sid == known.file.sid =>
                {
                    Some(Coded::File(coded, coding))
                }
                _ if coding == Coding::Gzip => {
                    let bytes = known.file.gzip()?.clone();
                    Some(Coded::Bytes(bytes, coding))
                }
                _ => None,
            }
        })
    }

    fn in_coding(&mut self, ask: &Ask<'_>, file: &Served, coded: Coded) -> Answer {
        let coding = match &coded {
            Coded::File(_, coding) | Coded::Bytes(_, coding) => coding.name(),
        };
        let etag = format!("{}-{coding}\"", file.etag.trim_end_matches('"'));
        let _ = write!(
            self.fields,
            "Content-Type: {}\r\nLast-Modified: {}\r\nETag: {etag}\r\nContent-Encoding: {coding}\r\n",
            file.media,
            crate::clock::http(file.modified)
        );
        match conditional::outcome(ask.fields, &etag, file.modified) {
            Precondition::Go => {}
            Precondition::NotModified => return Answer::new(304, Body::Empty),
            Precondition::Failed => return Answer::new(412, Body::Empty),
        }
        match coded {
            Coded::File(file, _) => Answer::new(200, whole(&file)),
            Coded::Bytes(bytes, _) => Answer::new(200, Body::Bytes(bytes)),
        }
    }
}

/// All of a file, from memory if it is small.
fn whole(file: &Arc<Served>) -> Body {
    match file.small() {
        Some(bytes) => Body::Bytes(bytes.clone()),
        None => Body::File(Arc::clone(file), 0, file.len),
    }
}

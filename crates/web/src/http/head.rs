//! The head of a request: `httparse`, and what two parties could read differently refused.

use httparse::{Header, Request, Status};

/// Header fields that a request may have.
pub const MAX_FIELDS: usize = 64;
/// Bytes of a head.
pub const MAX_HEAD: usize = 16 << 10;
/// Bytes of a request's target.
pub const MAX_TARGET: usize = 8 << 10;

/// A head that was read.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h, 'b> {
    /// As written.
    pub method: &'b str,
    /// Path and query, without scheme and host.
    pub target: &'b str,
    /// 0 or 1, the minor version.
    pub minor: u8,
    /// The fields.
    pub fields: &'h [Header<'b>],
    /// Bytes of the head.
    pub len: usize,
    /// What follows.
    pub body: Length,
    /// The client wants to go on with this connection.
    pub keep_alive: bool,
    /// The client waits to be told before it sends the body.
    pub expects_continue: bool,
}

/// How long a request's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Known(u64),
    /// The chunks say.
    Chunked,
}

/// Why a request is not answered as it asks. The connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {why}")]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// In words.
    pub why: &'static str,
}

/// A refusal.
#[must_use]
pub const fn refuse(status: u16, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// Reads a head at the beginning of `bytes`; `None` if its end is not there yet.
///
/// # Errors
///
/// [`Refusal`] for what is no request, what is too large, and whatever a proxy in front could take
/// for another message than we do: both lengths, several lengths, foreign codings, lines that end
/// without a carriage return, folded lines.
pub fn parse<'h, 'b>(
    bytes: &'b [u8],
    room: &'h mut [Header<'b>; MAX_FIELDS],
) -> Result<Option<Head<'h, 'b>>, Refusal> {
    let mut request = Request::new(room);
    let len = match request.parse(bytes) {
        Ok(Status::Complete(len)) if len <= MAX_HEAD => len,
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
        Ok(_) => return Err(refuse(431, "the head is too long")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(refuse(431, "there are too many header fields"));
        }
        Err(httparse::Error::Version) => return Err(refuse(505, "this is not HTTP/1")),
        Err(_) => return Err(refuse(400, "this is no request")),
    };
    if has_bare_line_feed(&bytes[..len]) {
        return Err(refuse(400, "a line ends without a carriage return"));
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(refuse(400, "this is no request"));
    };
    if target.len() > MAX_TARGET {
        return Err(refuse(414, "the target is too long"));
    }
    let fields: &'h [Header<'b>] = request.headers;
    let target = origin(method, target)?;
    let facts = Facts::of(fields, minor)?;
    let Facts { body, keep_alive, expects_continue } = facts;
    Ok(Some(Head { method, target, minor, fields, len, body, keep_alive, expects_continue }))
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

/// Path and query of a target in origin or absolute form.
fn origin<'b>(method: &str, target: &'b str) -> Result<&'b str, Refusal> {
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok(target);
    }
    let scheme = target.get(..7).filter(|it| it.eq_ignore_ascii_case("http://")).map(|_| 7);
    let scheme = scheme
        .or_else(|| target.get(..8).filter(|it| it.eq_ignore_ascii_case("https://")).map(|_| 8));
    let rest = scheme.and_then(|len| target.get(len..));
    let rest = rest.ok_or(refuse(400, "the target is neither a path nor a URL"))?;
    Ok(rest.find(['/', '?']).map_or("/", |at| &rest[at..])).and_then(|path| {
        if path.starts_with('/') { Ok(path) } else { Err(refuse(400, "the target has no path")) }
    })
}

/// What the fields say about the message itself.
struct Facts {
    body: Length,
    keep_alive: bool,
    expects_continue: bool,
}

impl Facts {
    fn of(fields: &[Header<'_>], minor: u8) -> Result<Self, Refusal> {
        let (mut hosts, mut length, mut chunked) = (0, None, false);
        let (mut keep_alive, mut expects_continue) = (minor == 1, false);
        for field in fields {
            // Lengths tell these few apart from all others.
            match field.name.len() {
                4 if field.name.eq_ignore_ascii_case("host") => {
                    hosts += 1;
                    if field.value.iter().any(|byte| matches!(byte, b' ' | b'/' | b',' | b'@')) {
                        return Err(refuse(400, "the host is no host"));
                    }
                }
                14 if field.name.eq_ignore_ascii_case("content-length")
                    && length.replace(digits(field.value)?).is_some() =>
                {
                    return Err(refuse(400, "there are several lengths"));
                }
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                    if chunked || !field.value.eq_ignore_ascii_case(b"chunked") || minor == 0 {
                        return Err(refuse(400, "the transfer coding is not `chunked`"));
                    }
                    chunked = true;
                }
                10 if field.name.eq_ignore_ascii_case("connection") => {
                    let says = |word: &str| {
                        list(field.value).any(|it| it.eq_ignore_ascii_case(word.as_bytes()))
                    };
                    if says("close") {
                        keep_alive = false;
                    } else if minor == 0 && says("keep-alive") {
                        keep_alive = true;
                    }
                }
                6 if field.name.eq_ignore_ascii_case("expect") => {
                    if !field.value.eq_ignore_ascii_case(b"100-continue") {
                        return Err(refuse(417, "nothing but 100-continue can be expected"));
                    }
                    expects_continue = minor == 1;
                }
                _ => {}
            }
        }
        if hosts > 1 || (hosts == 0 && minor == 1) {
            return Err(refuse(400, "there must be one host"));
        }
        let body = match (chunked, length) {
            (true, Some(_)) => return Err(refuse(400, "there are two lengths")),
            (true, None) => Length::Chunked,
            (false, length) => Length::Known(length.unwrap_or(0)),
        };
        Ok(Self { body, keep_alive, expects_continue })
    }
}

fn digits(value: &[u8]) -> Result<u64, Refusal> {
    let wrong = refuse(400, "the length is no number");
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(wrong);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// The elements of a list, without blanks around.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|it| !it.is_empty())
}

/// The value of a field that stands once; of one that stands several times, the first.
#[must_use]
pub fn field<'b>(fields: &[Header<'b>], name: &str) -> Option<&'b [u8]> {
    let found = fields
        .iter()
        .find(|field| field.name.len() == name.len() && field.name.eq_ignore_ascii_case(name));
    found.map(|field| field.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> u16 {
        let mut room = [httparse::EMPTY_HEADER; MAX_FIELDS];
        match parse(text.as_bytes(), &mut room) {
            Ok(Some(_)) => 200,
            Ok(None) => 0,
            Err(refusal) => refusal.status,
        }
    }

    #[test]
    fn what_two_parties_could_read_differently_is_refused() {
        let with = |fields: &str| status(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(with(""), 200);
        for (fields, want) in [
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", 400),
            ("Content-Length: 1, 1\r\n", 400),
            ("Content-Length: +1\r\n", 400),
            ("Content-Length: 0x1\r\n", 400),
            ("Content-Length: 99999999999999999999\r\n", 400),
            ("Content-Length:\r\n", 400),
            ("Transfer-Encoding: chunked, identity\r\n", 400),
            ("Transfer-Encoding: xchunked\r\n", 400),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
            ("Transfer-Encoding : chunked\r\n", 400),
            ("Transfer-Encoding: chunked\n", 400),
            (" folded: x\r\n", 400),
            ("A: b\r\n folded\r\n", 400),
            ("A\0: b\r\n", 400),
            ("A: b\0\r\n", 400),
            ("Host: b\r\n", 400),
            ("Expect: miracle\r\n", 417),
            ("Transfer-Encoding: chunked\r\n", 200),
            ("Content-Length: 5\r\n", 200),
        ] {
            assert_eq!(with(fields), want, "{fields:?}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 400, "no host");
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), 200, "an old client needs none");
        assert_eq!(status("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
        assert_eq!(status("GET a HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        assert_eq!(status("GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\n"), 0, "not all there");
    }

    #[test]
    fn what_is_too_large_is_refused_before_its_end_has_come() {
        let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(MAX_TARGET));
        assert_eq!(status(&long), 414);
        let endless = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(MAX_HEAD));
        assert_eq!(status(&endless), 431);
        let many = "A: b\r\n".repeat(MAX_FIELDS);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")), 431);
    }
}

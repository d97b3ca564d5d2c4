//! The head of a request, as hyper has read it.

use http::{HeaderName, HeaderValue, Method, Version, request::Parts};

/// Bytes that are kept beside the name and the value of a field.
const FIELD: usize = 96;

/// About how much memory the head of a request takes.
pub(super) fn bytes_of(parts: &Parts) -> usize {
    let field =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + FIELD;
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    target + parts.headers.iter().map(field).sum::<usize>()
}

/// Whether a request has several hosts, or none where there must be one, as our own reader says.
pub(super) fn has_wrong_host(parts: &Parts) -> bool {
    match parts.headers.get_all("host").iter().count() {
        0 => parts.version == Version::HTTP_11,
        count => count > 1,
    }
}

/// Whether another party could find another end of this request in HTTP/1.1: nothing behind it is
/// taken for a request then. hyper reads what ours refuses: two lengths, bare line feeds.
pub(super) fn may_be_read_otherwise(parts: &Parts, is_bare: bool) -> bool {
    let has = |name| parts.headers.contains_key(name);
    let asks = matches!(parts.method, Method::GET | Method::HEAD);
    parts.version < Version::HTTP_2
        && (is_bare || has("transfer-encoding") || asks && has("content-length"))
}

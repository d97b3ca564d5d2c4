//! What HTTP says, without a socket in sight: heads, bodies, paths, conditions, ranges,
//! preferences.

pub mod accept;
pub mod chunked;
pub mod conditional;
pub mod head;
pub mod path;
pub mod range;

/// The reason phrase of a status.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    http_status(status)
}

fn http_status(status: u16) -> &'static str {
    ::http::StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or("")
}

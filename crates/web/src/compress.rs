//! Text, compressed.

use crate::http::accept::{Coding, takes};
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;

/// Below this, compression does not pay; above, it would keep a worker busy: compress those files
/// beforehand.
pub(crate) const WORTH: std::ops::RangeInclusive<u64> = 512..=2 << 20;

/// Whether content of this type shrinks.
pub(crate) fn shrinks(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    media.starts_with("text/")
        || media.ends_with("+xml")
        || media.ends_with("+json")
        || matches!(
            media,
            "application/json"
                | "application/javascript"
                | "application/xml"
                | "application/wasm"
                | "application/manifest+json"
                | "image/x-icon"
                | "font/ttf"
        )
}

/// The codings that a client takes, best first.
pub(crate) fn taken(accept: &[u8]) -> impl Iterator<Item = Coding> {
    Coding::ALL.into_iter().filter(move |coding| takes(accept, *coding))
}

/// `bytes` in gzip; `None` if that is no shorter.
pub(crate) fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(5));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|shorter| shorter.len() < bytes.len())
}

//! What a client prefers: `Accept` and `Accept-Encoding`.

use super::head::list;

/// Codings in which content can be sent, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli, if a file was compressed beforehand.
    Brotli,
    /// Zstandard, if a file was compressed beforehand.
    Zstd,
    /// Gzip.
    Gzip,
}

impl Coding {
    /// All of them, best first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As `Content-Encoding` says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// How the names of files in this coding end.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// Whether a coding is welcome, by `Accept-Encoding`.
#[must_use]
pub fn takes(value: &[u8], coding: Coding) -> bool {
    let named = |name: &[u8]| {
        list(value).map(split).find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, q)| q)
    };
    named(coding.name().as_bytes()).or_else(|| named(b"*")).is_some_and(|quality| quality > 0)
}

/// How welcome a media type is by `Accept`, from 0 to 1000: by the most specific range that fits.
#[must_use]
pub fn quality(value: &[u8], media: &str) -> u32 {
    let class = media.split('/').next().unwrap_or_default();
    let fits = |range: &[u8]| -> Option<u8> {
        if range.eq_ignore_ascii_case(media.as_bytes()) {
            return Some(2);
        }
        if range == b"*/*" {
            return Some(0);
        }
        let wanted = range.strip_suffix(b"/*")?;
        wanted.eq_ignore_ascii_case(class.as_bytes()).then_some(1)
    };
    let best = list(value).map(split).filter_map(|(range, q)| Some((fits(range)?, q))).max();
    best.map_or(0, |(_, quality)| quality)
}

/// An element of a list, and its quality in thousandths.
fn split(element: &[u8]) -> (&[u8], u32) {
    let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")));
    (name, quality.map_or(1000, thousandths))
}

fn thousandths(text: &[u8]) -> u32 {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    number.filter(|it| (0.0..=1.0).contains(it)).map_or(0, |it| (it * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_decides() {
        let accept = b"image/*;q=0.5, image/x-portable-graymap, */*;q=0.1, text/html;q=0";
        assert_eq!(quality(accept, "image/x-portable-graymap"), 1000);
        assert_eq!(quality(accept, "image/png"), 500);
        assert_eq!(quality(accept, "text/plain"), 100);
        assert_eq!(quality(accept, "text/html"), 0);
        assert_eq!(quality(b"", "text/html"), 0);
    }

    #[test]
    fn a_coding_is_used_only_if_it_is_welcome() {
        assert!(takes(b"gzip, deflate", Coding::Gzip));
        assert!(takes(b"*", Coding::Gzip));
        assert!(!takes(b"gzip;q=0, *", Coding::Gzip));
        assert!(!takes(b"identity", Coding::Gzip));
        assert!(!takes(b"xgzip", Coding::Gzip));
    }
}

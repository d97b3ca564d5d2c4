//! From a target to a path beneath ROOT.

use super::head::{Refusal, refuse};

/// A target, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The path without the leading `/`, decoded; no part of it is empty, `.` or `..`.
    pub path: Vec<u8>,
    /// It ends with `/`, or is nothing but that.
    pub is_dir: bool,
}

/// Reads the path of a target, query aside.
///
/// # Errors
///
/// [`Refusal`] for what climbs, hides, or is no path. `..` is refused even where it would stay
/// beneath: browsers resolve it themselves.
pub fn decode(path: &[u8]) -> Result<RequestTarget, Refusal> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut is_dir = true;
    for part in path.split(|byte| *byte == b'/') {
        let from = decoded.len();
        if from > 0 && !part.is_empty() {
            decoded.push(b'/');
        }
        let begin = decoded.len();
        unescape(part, &mut decoded)?;
        let part = &decoded[begin..];
        is_dir = part.is_empty() || part == b".";
        if part == b".." || part.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return Err(refuse(400, "the path climbs, or hides a slash"));
        }
        if part == b"." {
            decoded.truncate(from);
        } else if part.starts_with(b".") && part != b".well-known" {
            return Err(refuse(404, "names with a dot in front are not served"));
        }
    }
    Ok(RequestTarget { path: decoded, is_dir })
}

/// Appends `part` with its escapes resolved.
fn unescape(part: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let digit = |at: usize| {
        let digit = part.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        digit.ok_or(refuse(400, "an escape in the path is none"))
    };
    let mut at = 0;
    while let Some(byte) = part.get(at) {
        if *byte == b'%' {
            out.push((digit(at + 1)? * 16 + digit(at + 2)?) as u8);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    Ok(())
}

impl RequestTarget {
    /// The one spelling that stands for all that mean the same, with as few escapes as a target may
    /// have.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.path.len() + 2);
        text.push('/');
        write(&mut text, &self.path, b"!$&'()*+,;=:@");
        if self.is_dir && !self.path.is_empty() {
            text.push('/');
        }
        text
    }
}

/// `path` as it can stand in a target or a link.
#[must_use]
pub fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    write(&mut text, path, b"");
    text
}

/// Appends `path`, in which `plain` and what is plain everywhere stand for themselves.
fn write(text: &mut String, path: &[u8], plain: &[u8]) {
    for byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(*byte));
            }
            byte if plain.contains(byte) => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_its_root() {
        for path in [
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/etc",
            "/%2e./x",
            "/a/..%2fb",
            "/a%2f..%2fb",
            "/%00",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a/%2E%2E",
        ] {
            assert_eq!(decode(path.as_bytes()).unwrap_err().status, 400, "{path}");
        }
        for path in ["/.git/config", "/a/.htaccess", "/%2ehidden", "/..."] {
            assert_eq!(decode(path.as_bytes()).unwrap_err().status, 404, "{path}");
        }
    }

    #[test]
    fn one_spelling_stands_for_all_and_for_nothing_else() {
        for (path, want) in [
            ("/", "/"),
            ("//./", "/"),
            ("/a/./b/", "/a/b/"),
            ("/a/.", "/a/"),
            ("/%61%2e%62", "/a.b"),
            ("/a%2541", "/a%2541"),
            ("/a%41", "/aA"),
            ("/a%20b+c,d", "/a%20b+c,d"),
            ("/%c3%a4", "/%C3%A4"),
        ] {
            let target = decode(path.as_bytes()).unwrap();
            assert_eq!(target.canonical(), want, "{path}");
            assert_eq!(decode(want.as_bytes()).unwrap(), target, "{path}");
        }
    }

    #[test]
    fn one_file_has_one_path_however_it_is_written() {
        for (path, want, is_dir) in [
            ("/", "", true),
            ("//", "", true),
            ("/a/b", "a/b", false),
            ("//a///b", "a/b", false),
            ("/a/./b/", "a/b", true),
            ("/a/.", "a", true),
            ("/%61%20b", "a b", false),
            ("/.well-known/x", ".well-known/x", false),
        ] {
            let target = decode(path.as_bytes()).unwrap();
            assert_eq!(
                (target.path.as_slice(), target.is_dir),
                (want.as_bytes(), is_dir),
                "{path}"
            );
        }
    }
}

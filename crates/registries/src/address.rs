//! From an address as configuration spells it to a host and a port.

use std::fmt;

/// A host and a port, by TCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name, or an address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    /// As a network rule of a profile spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Endpoint {
    /// That of a URL (`sparse+https://me:pass@host:8443/index/`); `None` if it names none: a file,
    /// a path, or nonsense.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let port = match scheme.rsplit('+').next()?.to_ascii_lowercase().as_str() {
            "https" => 443,
            "http" => 80,
            "ssh" => 22,
            "git" => 9418,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#', '\\']).next()?;
        Self::of_authority(authority.rsplit('@').next()?, port)
    }

    /// That of `HOST[:PORT]`.
    pub(crate) fn of_authority(text: &str, default: u16) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                rest.split_once(']').map(|(host, port)| (host, port.strip_prefix(':')))?
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            None | Some("") => default,
            Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        let good = !host.is_empty() && host.chars().all(plain);
        // What could be read as a range of addresses is no host.
        good.then(|| Self { host: host.to_ascii_lowercase(), port })
    }
}

/// A URL without the name and password in it; `None` if it has some.
pub(crate) fn without_password(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    (!authority.contains('@')).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_host_and_a_port() {
        for (url, want) in [
            ("https://registry.npmjs.org/", "registry.npmjs.org:443"),
            ("http://127.0.0.1:4873", "127.0.0.1:4873"),
            ("sparse+https://Crates.Example.org/api/index/", "crates.example.org:443"),
            ("https://me:p%40ss@npm.example.org:8443/x?y#z", "npm.example.org:8443"),
            ("http://[::1]:8080/simple", "[::1]:8080"),
            ("git+ssh://git@example.org/x", "example.org:22"),
        ] {
            assert_eq!(Endpoint::of_url(url).unwrap().to_string(), want);
        }
        for url in [
            "",
            "file:///srv/index",
            "/srv/index",
            "https://",
            "https://a b/",
            "https://a:99999/",
            "https://*/",
            "https://*:443/",
            "https://10.0.0.0%2f8/",
            "https://${X}/",
            "https://a:0/",
        ] {
            assert_eq!(Endpoint::of_url(url), None, "{url}");
        }
    }
}

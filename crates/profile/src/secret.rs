//! Values that are secrets by their looks: addresses with a password, and tokens of known formats.

use regex::bytes::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// No token is shorter, and most values are.
const SHORTEST: usize = 16;

/// The format of a token.
struct Format {
    name: &'static str,
    keywords: Vec<&'static str>,
    source: &'static str,
    regex: OnceLock<Option<Regex>>,
}

/// What kind of secret `value` is, if it looks like one: `an address with a password`, or the name
/// of a token's format.
pub(crate) fn kind(value: &str) -> Option<String> {
    if has_password(value) {
        return Some("an address with a password".to_owned());
    }
    if value.len() < SHORTEST {
        return None;
    }
    let lower = value.to_ascii_lowercase();
    let found = formats().iter().find(|format| format.matches(value, &lower));
    found.map(|format| format!("a token ({})", format.name))
}

/// Whether some `SCHEME://USER:PASSWORD@HOST` stands in `value`.
fn has_password(value: &str) -> bool {
    value.match_indices("://").any(|(at, mark)| {
        let rest = &value[at + mark.len()..];
        let authority = rest.split(['/', '?', '#', ' ', '\t', '\n', '"', '\'']).next();
        // A password may hold an `@` of its own.
        let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

impl Format {
    fn matches(&self, value: &str, lower: &str) -> bool {
        self.keywords.iter().any(|keyword| lower.contains(keyword))
            && self.regex().is_some_and(|regex| regex.is_match(value.as_bytes()))
    }

    /// Compiled when a value first holds a keyword: most never do.
    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(self.source).unicode(false).build().ok();
        self.regex.get_or_init(compile).as_ref()
    }
}

fn formats() -> &'static [Format] {
    static FORMATS: OnceLock<Vec<Format>> = OnceLock::new();
    FORMATS.get_or_init(|| {
        let text = include_str!("../../../policy/secrets/token-formats");
        text.lines().filter_map(format).collect()
    })
}

fn format(line: &'static str) -> Option<Format> {
    let mut fields = line.split('\t');
    let (name, keywords, source) = (fields.next()?, fields.next()?, fields.next()?);
    let keywords = keywords.split(',').collect();
    Some(Format { name, keywords, source, regex: OnceLock::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_compiles() {
        assert!(formats().len() > 90, "{}", formats().len());
        for format in formats() {
            assert!(format.regex().is_some(), "{}", format.name);
            assert!(format.keywords.iter().all(|keyword| *keyword == keyword.to_lowercase()));
        }
    }

    #[test]
    fn secrets_are_known_by_their_looks_and_harmless_values_pass() {
        let repeated =
            |head: &str, tail: &str, count: usize| format!("{head}{}", tail.repeat(count));
        for secret in [
            "postgres://me:hunter2@db.example.org/x".to_owned(),
            "redis://:hunter2@cache:6379".to_owned(),
            "http://user:p@ss@proxy.example.org:3128".to_owned(),
            "git+https://x-access-token:abc@github.com/a/b".to_owned(),
            repeated("ghp_", "aB3", 12),
            repeated("github_pat_", "a1", 41),
            repeated("glpat-", "x9Y", 7),
            repeated("AKIA", "Q", 16),
            repeated("npm_", "z9", 18),
            repeated("sk-ant-api03-", "a", 93) + "AA",
            repeated("Bearer ghp_", "aB3", 12),
            repeated("Authorization: Bearer ", "aB3", 12),
            "Server=db;User Id=me;Password=hunter2;".to_owned(),
            "Pwd=hunter2;Server=db".to_owned(),
            "host=db.example.org user=me password=hunter2".to_owned(),
            "password=hunter2 host=/run/postgresql".to_owned(),
            "jdbc:oracle:thin:scott/tiger@//db:1521/x".to_owned(),
            "jdbc:postgresql://db/x?user=me&password=hunter2".to_owned(),
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aB3+/aB3aB3=".to_owned(),
            "https://a.blob.core.windows.net/c?sv=2024-01-01&sig=aB3%2BaB3aB3%3D".to_owned(),
            "https://nuget.example.org/?api_key=aB3aB3aB3".to_owned(),
            repeated("https://discord.com/api/webhooks/123456/", "aB3_", 12),
            repeated("https://api.telegram.org/bot123456:", "aB3", 12),
            repeated("x-key=1,Authorization=Bearer ", "aB3", 12),
            repeated("Basic ", "aB3z", 5) + "==",
            "-Xmx2g -Djavax.net.ssl.keyStorePassword=hunter2".to_owned(),
            r#"{"http-basic": {"a.org": {"username": "me", "password": "hunter2"}}}"#.to_owned(),
        ] {
            assert!(kind(&secret).is_some(), "{secret}");
        }
        for harmless in [
            "/usr/local/bin:/usr/bin:/bin",
            "xterm-256color",
            "https://proxy.golang.org,direct",
            "http://proxy.example.org:3128",
            "ssh://git@github.com/a/b",
            "unix:path=/run/user/1000/bus",
            "0123456789abcdef0123456789abcdef01234567",
            "rs=0:di=01;34:ln=01;36:*.tar=01;31:*.tgz=01;31:*.xs.s.desk=00",
            "user:password@host",
            "history -a; pwd=$(pwd)",
            "password=",
            "2026-11-22T10:00:00Z",
            "-Xmx2g -Dfile.encoding=UTF-8 -Dhttp.proxyHost=proxy",
            "host=db.example.org user=me dbname=x",
            "https://example.org/search?q=keyboards&page=2",
            "https://example.org/a?password=$PASSWORD",
            "octocat/hello/.github/workflows/x.yml@refs/heads/main",
            "the basic and the full configuration",
            r#"{"name": "x", "version": "1.0.0"}"#,
        ] {
            assert_eq!(kind(harmless), None, "{harmless}");
        }
    }
}

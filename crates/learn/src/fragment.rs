//! What a program proposes: a few lines of TOML that are read as foreign bytes, and say nothing but
//! what could be granted.

use crate::{Line, Scope};
use flask::Protocol;
use std::{
    net::IpAddr,
    path::{Component, Path},
};
use toml_edit::{DocumentMut, Item, TableLike};

/// The longest text that is read.
const MOST_BYTES: usize = 16 << 10;
/// Entries of a proposal.
const MOST_LINES: usize = 16;
/// Bytes of all entries together: what is longer than a screen, nobody reads.
const MOST_SHOWN: usize = 1024;
/// The lists that a running sandbox can be given something of.
const KEYS: [(&str, &[&str]); 2] = [("files", &["read", "write"]), ("network", &["connect"])];
/// The variables that an entry may begin with.
const VARIABLES: [&str; 3] = ["${home}", "${workspace}", "${tmp}"];

/// Why a proposal is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FragmentError {
    /// It is longer than a person reads.
    #[error("it is too long: at most {MOST_LINES} entries, of {MOST_SHOWN} bytes together")]
    TooLong,
    /// It is no TOML.
    #[error("it is no TOML")]
    Syntax,
    /// It has something else than lists of what can be granted.
    #[error("`{0}` cannot be proposed; files.read, files.write and network.connect can")]
    Key(String),
    /// An entry is not what a list holds.
    #[error("`{0}` is no entry: write a path from the root, or HOST:PORT")]
    Entry(String),
    /// An address that has another spelling, in which people know it.
    #[error("`{0}` has an address that is spelled otherwise: write `{1}`")]
    Spelling(String, IpAddr),
    /// Nothing is in it.
    #[error("it proposes nothing")]
    Empty,
}

/// The lines that `text` proposes, for the domain of that name.
///
/// # Errors
///
/// [`FragmentError`]: nothing of it counts then.
pub fn fragment(text: &str, domain: Option<&str>) -> Result<Vec<Line>, FragmentError> {
    if text.len() > MOST_BYTES {
        return Err(FragmentError::TooLong);
    }
    let document: DocumentMut = text.parse().map_err(|_| FragmentError::Syntax)?;
    let mut lines = Vec::new();
    for (name, item) in document.iter() {
        let known = KEYS.iter().find(|(section, _)| *section == name);
        let (Some((_, keys)), Some(table)) = (known, item.as_table_like()) else {
            return Err(FragmentError::Key(shown(name)));
        };
        read(table, (name, keys), domain, &mut lines)?;
    }
    match lines.iter().map(|line| line.value.len()).sum() {
        0 => Err(FragmentError::Empty),
        shown if shown > MOST_SHOWN => Err(FragmentError::TooLong),
        _ => Ok(lines),
    }
}

fn read(
    table: &dyn TableLike,
    (section, keys): (&str, &[&str]),
    domain: Option<&str>,
    lines: &mut Vec<Line>,
) -> Result<(), FragmentError> {
    for (key, item) in table.iter() {
        let whole = format!("{section}.{key}");
        let array = Item::as_array(item).filter(|_| keys.contains(&key));
        let Some(array) = array else { return Err(FragmentError::Key(shown(&whole))) };
        for value in array {
            let text = value.as_str().ok_or_else(|| FragmentError::Entry(shown(&whole)))?;
            let good = match section {
                "files" => is_path(text),
                _ => Endpoint::of(text).is_some(),
            };
            if let Some(address) = Endpoint::of(text).and_then(|it| it.respelled())
                && section == "network"
            {
                return Err(FragmentError::Spelling(shown(text), address));
            }
            if !good {
                return Err(FragmentError::Entry(shown(text)));
            }
            let (domain, comment) = (domain.map(str::to_owned), "proposed".to_owned());
            lines.push(Line { domain, key: whole.clone(), value: text.to_owned(), comment });
            if lines.len() > MOST_LINES {
                return Err(FragmentError::TooLong);
            }
        }
    }
    Ok(())
}

/// A path without patterns, spelled in the one way: what it grants is what a person reads.
fn is_path(text: &str) -> bool {
    let variable = VARIABLES.iter().find_map(|variable| text.strip_prefix(variable));
    let rest = variable.unwrap_or(text);
    let odd = |c: char| is_unseen(c) || r#"\*?[]{}$""#.contains(c);
    let parts = Path::new(rest).components().skip(1);
    let is_plain = parts.clone().all(|part| matches!(part, Component::Normal(_)));
    let spelled: usize = parts.map(|part| part.as_os_str().len() + 1).sum();
    // No `//`, no `/./`, no slash at the end: that has directories made.
    rest.starts_with('/')
        && rest.len() > 1
        && is_plain
        && spelled == rest.len()
        && !rest.contains(odd)
        && !rest.contains("  ")
}

/// A character that shows nothing, turns the text around, or breaks the line.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || c.is_whitespace() && c != ' '
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}')
        || matches!(c, '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}')
        || matches!(c, '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A host by name or address, and one port: no unix socket, no network, no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// As it was spelled.
    pub host: &'a str,
    /// From 1.
    pub port: u16,
    /// TCP, where nothing is said.
    pub protocol: Protocol,
}

impl<'a> Endpoint<'a> {
    /// What `text` spells; `None` for what a person could misread.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (text, protocol) = match text.strip_suffix("/udp") {
            Some(rest) => (rest, Protocol::Udp),
            None => (text.strip_suffix("/tcp").unwrap_or(text), Protocol::Tcp),
        };
        let (host, digits) = text.rsplit_once(':')?;
        let port: u16 = digits.parse().ok().filter(|port: &u16| port.to_string() == digits)?;
        let this = Self { host, port, protocol };
        let is_host = match this.address() {
            Some(address) => !address.is_unspecified() && !address.is_multicast(),
            None => is_name(host),
        };
        (is_host && port > 0).then_some(this)
    }

    /// Its address, if it names none but that; of IPv4 however it is spelled.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let inner = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address: IpAddr = inner.unwrap_or(self.host).parse().ok()?;
        (address.is_ipv6() == inner.is_some()).then(|| canonical(address))
    }

    /// Its address, if it is spelled in another way than that.
    fn respelled(&self) -> Option<IpAddr> {
        let spelled = self.host.trim_matches(['[', ']']);
        self.address().filter(|address| address.to_string() != spelled)
    }
}

/// What an address stands for: of IPv4, also in the ways in which IPv6 writes it.
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(ip) = address else { return address };
    let is_compatible = ip.segments()[..6] == [0; 6] && ip.to_bits() > 0xffff;
    match ip.to_ipv4() {
        Some(ip) if is_compatible => ip.into(),
        _ => address.to_canonical(),
    }
}

/// A name as name servers know them, which no resolver takes for a number: `127.1` is one.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(inner) && !label.starts_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    // As a host, these would be sockets in the file system.
    !["unix", "unixgram"].contains(&host)
        && host.len() <= 253
        && host.split('.').all(is_label)
        && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Whether one of `lines` covers a secret, or something that holds one, or leads to what acts for
/// whoever connects.
#[must_use]
pub fn covers_secret(lines: &[Line], scope: &Scope) -> bool {
    if lines.iter().any(|line| line.gives(scope).is_some()) {
        return true;
    }
    lines.iter().filter(|line| line.key.starts_with("files.")).any(|line| {
        let path = scope.path(&line.value);
        path.is_none_or(|path| scope.secrets.is_one(&path) || scope.secrets.below(&path).is_some())
    })
}

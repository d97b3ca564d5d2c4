//! The text of a profile, changed: entries are added to its lists, and everything else, comments
//! above all, stays as it is.

use crate::Line;
use flask::visible;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// Why a text cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// It is no TOML.
    #[error("it is no TOML: {0}")]
    Syntax(#[from] toml_edit::TomlError),
    /// Something else stands where a list has to be.
    #[error("`{0}` is no list")]
    NoList(String),
    /// Something else stands where a table has to be.
    #[error("`{0}` is no table")]
    NoTable(String),
}

/// A profile that is being changed.
#[derive(Clone, Debug)]
pub struct Edit {
    document: DocumentMut,
}

impl Edit {
    /// Of a profile's text.
    ///
    /// # Errors
    ///
    /// [`EditError::Syntax`] if it is no TOML.
    pub fn of(text: &str) -> Result<Self, EditError> {
        Ok(Self { document: text.parse()? })
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Adds a line; whether it was not there yet.
    ///
    /// # Errors
    ///
    /// [`EditError`] if the profile has something else in its place.
    pub fn add(&mut self, line: &Line) -> Result<bool, EditError> {
        let mut path: Vec<&str> = Vec::new();
        if let Some(domain) = &line.domain {
            path.extend(["domains", domain]);
        }
        path.extend(line.key.split('.'));
        let Some((last, tables)) = path.split_last() else { return Ok(false) };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for (depth, name) in tables.iter().enumerate() {
            let is_last = depth + 1 == tables.len();
            let item = table.entry(name).or_insert_with(|| new_table(!is_last));
            let whole = || path[..=depth].join(".");
            table = item.as_table_like_mut().ok_or_else(|| EditError::NoTable(whole()))?;
        }
        if line.key == "network.netlink" {
            let is_there = table.get(last).is_some();
            if !is_there {
                table.insert(last, toml_edit::value(true));
            }
            return Ok(!is_there);
        }
        let item = table.entry(last).or_insert_with(|| toml_edit::value(Array::new()));
        let array = item.as_array_mut().ok_or_else(|| EditError::NoList(path.join(".")))?;
        Ok(push(array, line))
    }

    /// Takes the loopback of its own, unless the text says which one.
    pub fn share_loopback(&mut self) {
        self.set_loopback("none");
    }

    /// Lets the run have ports of its own on the machine's loopback, unless the text says which
    /// one.
    pub fn own_loopback(&mut self) {
        self.set_loopback("own");
    }

    fn set_loopback(&mut self, which: &str) {
        let network = self.document.entry("network").or_insert_with(|| new_table(false));
        if let Some(network) = network.as_table_like_mut() {
            network.entry("loopback").or_insert_with(|| toml_edit::value(which));
        }
    }

    /// Sets what stands at the top of the text.
    pub fn set_extends(&mut self, base: &str) {
        self.document["extends"] = toml_edit::value(base);
    }
}

fn new_table(implicit: bool) -> Item {
    let mut table = Table::new();
    table.set_implicit(implicit);
    Item::Table(table)
}

/// Adds an entry on a line of its own, with its comment behind it.
fn push(array: &mut Array, line: &Line) -> bool {
    if array.iter().any(|value| value.as_str() == Some(&line.value)) {
        return false;
    }
    // What stands behind the last entry is its comment, and stays with it; without a comma it is
    // part of the entry.
    let mut behind = array.trailing().as_str().unwrap_or_default().to_owned();
    let last = array.len().checked_sub(1).filter(|_| !array.trailing_comma());
    if let Some(last) = last.and_then(|at| array.get_mut(at)) {
        let suffix = last.decor().suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default();
        behind = format!("{suffix}{behind}");
        last.decor_mut().set_suffix("");
    }
    let behind = behind.trim_end();
    let mut value = Value::from(line.value.as_str());
    value.decor_mut().set_prefix(format!("{behind}\n    "));
    array.push_formatted(value);
    array.set_trailing_comma(true);
    // Programs choose their names: none ends the comment, nor shows it in another order.
    let comment = match visible(&line.comment) {
        comment if comment.is_empty() => comment,
        comment => format!("  # {comment}"),
    };
    array.set_trailing(format!("{comment}\n"));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, value: &str) -> Line {
        Line { key: key.into(), value: value.into(), comment: "node: once".into(), domain: None }
    }

    #[test]
    fn entries_are_added_and_comments_stay_where_they_were() {
        let text = "# mine\nextends = \"workspace\"\n\n[files] # of all\nread = [\n    \"/a\",  # first\n    \"/b\", # second\n]\nhide = [\"/x\"]\n";
        let mut edit = Edit::of(text).unwrap();
        assert!(edit.add(&line("files.read", "/c")).unwrap());
        assert!(!edit.add(&line("files.read", "/a")).unwrap());
        assert!(edit.add(&line("network.connect", "example.org:443")).unwrap());
        assert!(edit.add(&line("network.netlink", "true")).unwrap());
        let domain = Line { domain: Some("git".into()), ..line("files.write", "/d") };
        assert!(edit.add(&domain).unwrap());
        let want = "# mine\nextends = \"workspace\"\n\n[files] # of all\nread = [\n    \"/a\",  # first\n    \"/b\", # second\n    \"/c\",  # node: once\n]\nhide = [\"/x\"]\n\n[network]\nconnect = [\n    \"example.org:443\",  # node: once\n]\nnetlink = true\n\n[domains.git.files]\nwrite = [\n    \"/d\",  # node: once\n]\n";
        assert_eq!(edit.text(), want);
    }

    #[test]
    fn lists_of_one_line_and_comments_without_a_comma_survive() {
        let mut edit =
            Edit::of("[files]\nread = [\"/a\" , '/b']\nwrite = [\n  \"/a\" # mine\n]\n").unwrap();
        edit.add(&line("files.read", "/c")).unwrap();
        edit.add(&line("files.write", "/c")).unwrap();
        let text = edit.text();
        assert!(text.contains("\"/a\", # mine\n") && text.contains("'/b'"), "{text}");
        let again: toml_edit::DocumentMut = text.parse().unwrap();
        assert_eq!(again["files"]["read"].as_array().unwrap().len(), 3, "{text}");
        assert_eq!(again["files"]["write"].as_array().unwrap().len(), 2, "{text}");
    }

    #[test]
    fn no_name_of_a_program_becomes_a_line_of_the_profile() {
        for name in [
            "x\n]\nwrite = [\"/\"]\nhide = [ #",
            "x\r\nmode = \"fast\" #",
            "x\u{85}\u{2028}\u{202e}y",
        ] {
            let mut edit = Edit::of("[files]\nhide = [\"/a\"]\n").unwrap();
            let comment = format!("{name}: allowed");
            edit.add(&Line { comment, ..line("files.read", "/c") }).unwrap();
            edit.add(&line("files.read", "/d")).unwrap();
            let text = edit.text();
            let again: toml_edit::DocumentMut = text.parse().unwrap();
            let files = again["files"].as_table().unwrap();
            let list = |key: &str| files[key].as_array().unwrap().iter().count();
            assert_eq!(
                (again.len(), files.len(), list("hide"), list("read")),
                (1, 2, 1, 2),
                "{text}"
            );
            assert!(text.contains("  # x\\u00") && !text.contains('\u{202e}'), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_said_by_name() {
        let mut edit = Edit::of("files = 7\nnetwork.connect = \"x\"\n").unwrap();
        let error = edit.add(&line("files.read", "/c")).unwrap_err().to_string();
        assert_eq!(error, "`files` is no table");
        let error = edit.add(&line("network.connect", "/c")).unwrap_err().to_string();
        assert_eq!(error, "`network.connect` is no list");
    }
}

//! Keys that stand below a table and name their own: a line of `dewar explain`, copied to the end
//! of a profile.

use crate::error::Problem;
use toml::Spanned;
use toml::de::DeValue;

/// Tables at the top of a profile whose keys people write with a dot.
const TOP: [&str; 5] = ["files", "network", "env", "limits", "domains"];

/// The problem of `key` in the table `path`, if the key is a table of its own at the top.
pub(crate) fn misplaced(path: &str, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Problem> {
    let table = path.strip_suffix('.')?;
    let mut whole = TOP.contains(&key).then(|| key.to_owned())?;
    let mut inner = value.get_ref().as_table()?;
    loop {
        let (name, value) = inner.iter().next()?;
        whole = format!("{whole}.{}", name.get_ref());
        match value.get_ref().as_table() {
            Some(table) => inner = table,
            None => return Some(Problem::Misplaced { key: whole, table: table.to_owned() }),
        }
    }
}

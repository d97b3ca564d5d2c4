//! A directory as a page.

use crate::http::path::encode;
use rustix::fs::{Dir, FileType};
use std::os::fd::AsFd;

/// Entries that are listed.
const MOST: usize = 10_000;

/// A page with links to what is in `directory` and `is_listed`; names with a dot in front aside. It
/// says so if not all entries were looked at.
pub(crate) fn page(
    directory: impl AsFd,
    path: &[u8],
    is_listed: impl Fn(&[u8], FileType) -> Option<bool>,
) -> rustix::io::Result<Vec<u8>> {
    let mut entries = Vec::new();
    let mut is_whole = true;
    for (at, entry) in Dir::read_from(directory)?.enumerate() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if at == MOST {
            is_whole = false;
            break;
        }
        if name.starts_with(b".") {
            continue;
        }
        match is_listed(name, entry.file_type()) {
            Some(true) => entries.push((entry.file_type() != FileType::Directory, name.to_vec())),
            Some(false) => {}
            None => is_whole = false,
        }
    }
    entries.sort();
    let title = escape(&format!("/{}", String::from_utf8_lossy(path)));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n<ul>\n"
    );
    if !path.is_empty() {
        page += "<li><a href=\"../\">../</a>\n";
    }
    for (is_file, name) in entries {
        let end = if is_file { "" } else { "/" };
        let (link, shown) = (encode(&name), escape(&String::from_utf8_lossy(&name)));
        page += &format!("<li><a href=\"./{link}{end}\">{shown}{end}</a>\n");
    }
    page += "</ul>\n";
    if !is_whole {
        page += "<p>There is more, which is not listed.\n";
    }
    Ok(page.into_bytes())
}

/// `text` as it can stand in a page.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

//! Every example in README.md and docs/, run in order, page by page, in the home of a user who has
//! just come.
//!
//! A fenced block says what it is:
//!
//! - `sh`: commands, each of which succeeds, or ends with the status that `# exit N` behind it
//!   says;
//! - `console`: commands after `$ `, and what they print. `…` stands for anything;
//! - `toml` and `cil`: a profile that `dewar policy show` takes, a policy; with a name, that file,
//!   for what comes below (a second block of that name goes on with it);
//! - `text`: nothing to run.
//!
//! `<!-- before: COMMANDS -->` above a block prepares for it what a reader has. A block that cannot
//! be run is marked by `<!-- not run: WHY -->` above it; `cargo test --test documents --
//! --nocapture` lists them.

mod page;
mod reader;

use page::Block;
use std::{fs, path::PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages whose examples a test of their own runs, as they need ports:
/// crates/dewar-serve/tests/followed.rs.
const FOLLOWED: &[&str] = &["docs/web.md", "docs/plugins/"];

/// Blocks that are marked as not run. May shrink, not grow.
const MOST_NOT_RUN: usize = 17;

fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(format!("{ROOT}/{}", folder.display())).expect("a folder").flatten()
        {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path.display().to_string());
            }
        }
    }
    pages.sort();
    pages
}

fn read(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(format!("{ROOT}/{page}")).expect("a page");
    page::blocks(&text).unwrap_or_else(|error| panic!("{page}: {error}"))
}

#[test]
fn whoever_types_what_the_documents_say_sees_what_they_say() {
    let mut wrong = Vec::new();
    let elsewhere = |page: &String| FOLLOWED.iter().any(|followed| page.starts_with(followed));
    for page in pages().into_iter().filter(|page| !elsewhere(page)) {
        let blocks = read(&page);
        if blocks.iter().any(|block| block.not_run.is_none() && block.kind != "text") {
            wrong
                .extend(reader::follow(&blocks).into_iter().map(|error| format!("{page}:{error}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_example_is_run_or_says_why_not() {
    let mut not_run = 0;
    for page in pages() {
        for block in read(&page) {
            let known = ["sh", "console", "toml", "cil", "text"].contains(&&*block.kind);
            let Block { line, kind, .. } = &block;
            assert!(
                known || block.not_run.is_some(),
                "{page}:{line}: what is a block of `{kind}`?"
            );
            if let Some(why) = &block.not_run {
                assert!(why.len() > 10, "{page}:{line}: `{why}` is no reason");
                println!("{page}:{line}: not run: {why}");
                not_run += 1;
            }
        }
    }
    assert!(not_run <= MOST_NOT_RUN, "{not_run} examples are not run");
    println!("{not_run} blocks are not run");
}

#[test]
fn every_page_is_in_the_book_and_every_link_leads_somewhere() {
    let book = fs::read_to_string(format!("{ROOT}/docs/SUMMARY.md")).expect("docs/SUMMARY.md");
    for page in pages().iter().filter_map(|page| page.strip_prefix("docs/")) {
        assert!(
            page == "SUMMARY.md" || book.contains(&format!("({page})")),
            "{page} is not in docs/SUMMARY.md"
        );
    }
    for page in pages() {
        let text = fs::read_to_string(format!("{ROOT}/{page}")).expect("a page");
        let folder = PathBuf::from(format!("{ROOT}/{page}"));
        let folder = folder.parent().expect("its folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let local = !target.is_empty()
                && !target.contains("://")
                && !target.contains(char::is_whitespace);
            assert!(!local || folder.join(target).exists(), "{page}: `{link}` leads nowhere");
        }
    }
}

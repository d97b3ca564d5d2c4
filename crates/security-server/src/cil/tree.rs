//! CIL text as nested lists of words.

use super::errors::{PolicyError, PolicyErrors, Sources};
use super::words::{Word, Words};
use crate::spelling;
use std::cell::Cell;

/// A word, a quoted string or a list, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) offset: u32,
    pub(super) item: Item,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Word(Word),
    Quoted(Word),
    List { start: u32, len: u32 },
}

/// Everything read so far.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) words: Words,
    pub(super) sources: Sources,
    nodes: Vec<Node>,
    /// Expressions over sets that are being read, one inside of the other.
    pub(super) nested: Cell<u32>,
}

/// Lists that are nested deeper are refused: whatever walks a tree needs a bounded stack.
const MAX_DEPTH: usize = 200;

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            words: Words::new(),
            sources: Sources::new(),
            nodes: Vec::new(),
            nested: Cell::new(0),
        }
    }

    /// The items of a list; none for a word.
    pub(super) fn list(&self, node: Node) -> &[Node] {
        match node.item {
            Item::List { start, len } => &self.nodes[start as usize..(start + len) as usize],
            _ => &[],
        }
    }

    pub(super) fn text(&self, word: Word) -> &str {
        self.words.text(word)
    }

    /// Reads a file and gives its statements.
    pub(super) fn parse(&mut self, name: &str, text: &str) -> Result<Vec<Node>, PolicyErrors> {
        let Some(base) = self.sources.add(name, text) else {
            let message = "the policy's files together exceed 4 GiB".to_owned();
            return Err(PolicyErrors::new(vec![PolicyError::without_place(message)]));
        };
        let mut reader =
            Reader { tree: self, text, base, at: 0, open: Vec::new(), done: Vec::new() };
        match reader.read() {
            Ok(statements) => Ok(statements),
            Err(Bad { at, message, help }) => {
                let offset = base + at as u32;
                let error = self.sources.error(offset, message.to_owned(), Some(help.to_owned()));
                Err(PolicyErrors::new(vec![error]))
            }
        }
    }
}

struct Bad {
    at: usize,
    message: &'static str,
    help: &'static str,
}

struct Reader<'a> {
    tree: &'a mut Tree,
    text: &'a str,
    base: u32,
    at: usize,
    /// Of each open list: where it starts in the text and in `done`.
    open: Vec<(usize, usize)>,
    /// Items whose list is still open.
    done: Vec<Node>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<Vec<Node>, Bad> {
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b';' => self.comment()?,
                b'(' => self.open_list()?,
                b')' => self.close_list()?,
                b'"' => self.quoted()?,
                _ => self.word()?,
            }
        }
        match self.open.last() {
            Some((at, _)) => {
                Err(Bad { at: *at, message: "this list is not closed", help: "add a `)`" })
            }
            None => Ok(std::mem::take(&mut self.done)),
        }
    }

    /// Passes over a comment, or keeps what a line mark says.
    fn comment(&mut self) -> Result<(), Bad> {
        let rest = &self.text[self.at..];
        let line = rest.split('\n').next().unwrap_or(rest);
        let at_start = self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n';
        let mark = line.strip_prefix(";;*").filter(|_| at_start);
        let understood = mark
            .is_none_or(|mark| self.tree.sources.mark(self.base + self.at as u32, mark).is_some());
        if !understood {
            return Err(Bad {
                at: self.at,
                message: "this is not a line mark",
                help: "write `;;* lms LINE FILE`, `;;* lmx LINE FILE` or `;;* lme`; or a comment: `; …`",
            });
        }
        self.at += line.len();
        Ok(())
    }

    fn open_list(&mut self) -> Result<(), Bad> {
        if self.open.len() == MAX_DEPTH {
            return Err(Bad {
                at: self.at,
                message: "lists are nested deeper than 200 levels",
                help: "give inner expressions a name, as an attribute or a set",
            });
        }
        self.open.push((self.at, self.done.len()));
        self.at += 1;
        Ok(())
    }

    fn close_list(&mut self) -> Result<(), Bad> {
        let Some((at, first)) = self.open.pop() else {
            return Err(Bad {
                at: self.at,
                message: "no list is open here",
                help: "remove this `)`",
            });
        };
        let start = self.tree.nodes.len() as u32;
        let len = (self.done.len() - first) as u32;
        self.tree.nodes.extend_from_slice(&self.done[first..]);
        self.done.truncate(first);
        self.done.push(Node { offset: self.base + at as u32, item: Item::List { start, len } });
        self.at += 1;
        Ok(())
    }

    fn quoted(&mut self) -> Result<(), Bad> {
        let rest = &self.text[self.at + 1..];
        let end = rest.find(['"', '\n']).filter(|end| rest.as_bytes()[*end] == b'"');
        let Some(end) = end else {
            return Err(Bad {
                at: self.at,
                message: "this string does not end on its line",
                help: "add a closing `\"`",
            });
        };
        if !spelling::is_quotable(&rest[..end]) {
            return Err(Bad {
                at: self.at,
                message: "this string holds a character that cannot be shown",
                help: "remove control characters and marks of direction",
            });
        }
        let word = self.tree.words.intern(&rest[..end]);
        self.push(Item::Quoted(word))?;
        self.at += end + 2;
        Ok(())
    }

    fn word(&mut self) -> Result<(), Bad> {
        let rest = &self.text.as_bytes()[self.at..];
        let end = rest.iter().position(|byte| !spelling::is_name_byte(*byte)).unwrap_or(rest.len());
        if end == 0 {
            return Err(Bad {
                at: self.at,
                message: "this character has no meaning in CIL",
                help: "quote text that is not a name: \"…\"",
            });
        }
        let word = self.tree.words.intern(&self.text[self.at..self.at + end]);
        self.push(Item::Word(word))?;
        self.at += end;
        Ok(())
    }

    fn push(&mut self, item: Item) -> Result<(), Bad> {
        if self.open.is_empty() {
            return Err(Bad {
                at: self.at,
                message: "a statement is a list",
                help: "put it into parentheses",
            });
        }
        self.done.push(Node { offset: self.base + self.at as u32, item });
        Ok(())
    }
}

//! The fenced blocks of a page.

/// A block, and what is said above it.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Where it begins.
    pub(crate) line: usize,
    /// The first word behind the fence.
    pub(crate) kind: String,
    /// The second: a file.
    pub(crate) name: Option<String>,
    pub(crate) before: Vec<String>,
    pub(crate) not_run: Option<String>,
    pub(crate) lines: Vec<String>,
}

/// All of them, in order.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let (mut blocks, mut next, mut open) = (Vec::new(), Block::default(), None::<Block>);
    let mut note = None::<String>;
    for (line, number) in text.lines().zip(1..) {
        let fence = line.trim_start().strip_prefix("```");
        if let Some(block) = &mut open {
            match fence {
                Some(_) => blocks.extend(open.take()),
                None => block.lines.push(line.to_owned()),
            }
        } else if let Some(info) = fence {
            let mut words = info.split_whitespace();
            next.kind =
                words.next().ok_or(format!("{number}: a block says what it is"))?.to_owned();
            next.name = words.next().map(str::to_owned);
            next.line = number;
            open = Some(std::mem::take(&mut next));
        } else if note.is_some() || line.starts_with("<!-- ") {
            let mut told = note.take().unwrap_or_default();
            told.push_str(line.trim_start_matches("<!-- "));
            match told.strip_suffix("-->") {
                Some(told) => take(&mut next, told.trim()),
                None => note = Some(told + "\n"),
            }
        } else if !line.trim().is_empty() {
            next = Block::default();
        }
    }
    if open.is_some() { Err("a block does not end".into()) } else { Ok(blocks) }
}

fn take(next: &mut Block, told: &str) {
    if let Some(commands) = told.strip_prefix("before:") {
        next.before.push(commands.trim().to_owned());
    } else if let Some(why) = told.strip_prefix("not run:") {
        next.not_run = Some(why.trim().to_owned());
    }
}

//! Where in the text the parts of a module come from.

use crate::ir::{At, Lines, Module, Spot};
use std::{collections::HashMap, sync::Arc};

/// For each part of a module's WebAssembly, where in the text it comes from.
#[derive(Clone, Debug, Default)]
pub struct Places {
    lines: Arc<Lines>,
    /// By the number of the function: offsets in its code at which parts begin, in order.
    funcs: HashMap<u32, Vec<(usize, At)>>,
}

impl Places {
    pub(super) fn new(module: &Module) -> Self {
        Self { lines: Arc::clone(&module.lines), funcs: HashMap::new() }
    }

    /// Adds function `number`, which begins at `begin`.
    pub(super) fn add(&mut self, number: u32, begin: At, marks: Vec<(usize, At)>) {
        self.funcs.insert(number, std::iter::once((0, begin)).chain(marks).collect());
    }

    /// Where the instruction at `offset` in the code of function `number` comes from; without an
    /// offset, where the function begins.
    #[must_use]
    pub fn find(&self, number: u32, offset: Option<usize>) -> Option<Spot> {
        let marks = self.funcs.get(&number)?;
        let offset = offset.unwrap_or(0);
        let last = marks.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        self.lines.spot(marks[last].1)
    }
}

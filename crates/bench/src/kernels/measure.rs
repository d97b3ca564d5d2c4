//! Runs all kernels of all sizes in all implementations, in turn.

use super::{
    Callable, Cell, Implementation, KERNELS, Kernel, KernelReport, SIZES,
    report::{CodeSize, Mean},
};
use crate::{
    interleaved::{Batch, Interleaved},
    machine::Machine,
    statistics::Summary,
    sys,
};
use std::cell::RefCell;

/// What is compared.
pub struct KernelComparison<'a> {
    /// The implementations; replies must equal those of the first one that works.
    pub implementations: Vec<Box<dyn Implementation + 'a>>,
    /// The sizes of requests in bytes; [`SIZES`] if empty.
    pub sizes: Vec<usize>,
    /// The names of the kernels; all if empty.
    pub kernels: Vec<String>,
    /// How often.
    pub turns: Interleaved,
    /// Pairs of names whose ratio is wanted over all kernels and sizes.
    pub ratios: Vec<(String, String)>,
}

impl KernelComparison<'_> {
    /// Measures; tells `progress` what comes.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> KernelReport {
        let machine = Machine::here();
        let sizes = if self.sizes.is_empty() { SIZES.to_vec() } else { self.sizes.clone() };
        let (mut cells, mut code) = (Vec::new(), Vec::new());
        let wanted = |kernel: &&Kernel| {
            self.kernels.is_empty() || self.kernels.iter().any(|name| name == kernel.name)
        };
        for kernel in KERNELS.iter().filter(wanted) {
            let mut prepared: Vec<_> =
                self.implementations.iter().map(|made| made.prepare(kernel)).collect();
            for (made, callable) in self.implementations.iter().zip(&prepared) {
                if let Some(bytes) = callable.as_ref().ok().and_then(|made| made.code_bytes()) {
                    let (kernel, implementation) = (kernel.name.to_owned(), made.name());
                    code.push(CodeSize { kernel, implementation, bytes });
                }
            }
            for &size in &sizes {
                progress(&format!("{} at {size} bytes", kernel.name));
                cells.extend(self.measure(kernel, size, &mut prepared));
            }
        }
        let names = self.implementations.iter().map(|made| made.name()).collect();
        let means = (self.ratios.iter())
            .filter_map(|(over, under)| Mean::of(&cells, over, under))
            .collect();
        let instructions = sys::instructions(|| ()).err();
        KernelReport { machine, turns: self.turns, names, sizes, cells, code, means, instructions }
    }

    fn measure(
        &self,
        kernel: &Kernel,
        size: usize,
        prepared: &mut [Result<Box<dyn Callable>, String>],
    ) -> Vec<Cell> {
        let request = kernel.request(size);
        // What the first implementation replies, all must.
        let expected: RefCell<Option<Vec<u8>>> = RefCell::new(None);
        let check = |callable: &mut dyn Callable| {
            let reply = callable.reply()?;
            let mut expected = expected.borrow_mut();
            match &*expected {
                Some(first) if *first != reply => Err("its reply differs".to_owned()),
                Some(_) => Ok(()),
                None => {
                    *expected = Some(reply);
                    Ok(())
                }
            }
        };
        let mut jobs: Vec<Batch<'_>> = Vec::new();
        for callable in prepared.iter_mut() {
            let ready = match callable {
                Ok(callable) => callable.fill(&request).map(|()| callable),
                Err(why) => Err(why.clone()),
            };
            jobs.push(match ready {
                Ok(callable) => Box::new(|times| {
                    let took = callable.run(times)?;
                    check(&mut **callable).map(|()| took)
                }),
                Err(why) => Box::new(move |_| Err(why.clone())),
            });
        }
        let results = self.turns.run(&mut jobs);
        drop(jobs);
        let mut cells = Vec::new();
        for ((made, callable), runs) in self.implementations.iter().zip(prepared).zip(results) {
            let instructions = match (callable, &runs) {
                (Ok(callable), Ok(_)) => sys::instructions(|| callable.run(1).map(drop)).ok(),
                _ => None,
            };
            let instructions = instructions.and_then(|(done, count)| done.is_ok().then_some(count));
            let runs = runs.and_then(|runs| {
                let summary = Summary::of(&runs).ok_or_else(|| "no runs".to_owned())?;
                Ok((summary, runs))
            });
            let (implementation, kernel) = (made.name(), kernel.name);
            cells.push(Cell::new(kernel, size, implementation, runs, instructions));
        }
        cells
    }
}

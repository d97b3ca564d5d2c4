//! The `kernel` target: BPF over an arena that host and kernel share.
//!
//! The kernel's verifier proves that the program ends its iterations and touches nothing but its
//! arena; in the arena, every address that the program computes is compared with the end of its
//! memory. Host functions work as everywhere: the program leaves with all its state in the arena,
//! and is started again with the result.
#![deny(unsafe_code)]

mod access;
mod asm;
mod error;
mod func;
mod graph;
mod homes;
mod inst;
mod instance;
mod program;
mod simplify;
mod sys;
mod traps;

pub use error::KernelError;
pub use instance::KernelInstance;
use instance::Loaded;

use ecode::{
    Host,
    ir::{Body, Func, FuncId, Inst, Module, Signature, Ty},
    wasm::{Layout, WasmOptions},
};
use graph::Need;
use program::Bounds;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// Limits of plugins in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelOptions {
    /// Sizes of memory.
    pub memory: WasmOptions,
    /// Bytes for what calls keep apart from memory: variables without address, ways back.
    pub call_stack_bytes: u32,
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self { memory: WasmOptions::default(), call_stack_bytes: 256 << 10 }
    }
}

impl KernelOptions {
    /// No more stack than `module` can use: every page of it costs time when an instance is made.
    fn fitted(mut self, module: &Module) -> Self {
        let need = Need::new(module);
        let fit = |limit: u32, need: Option<u64>| match need {
            Some(need) => limit.min(u32::try_from(need).unwrap_or(limit)),
            None => limit,
        };
        let reserve = func::MAX_OFFSET as u64;
        let slots = need.slots.map(|bytes| if bytes > 0 { bytes + reserve } else { 0 });
        self.memory.stack_bytes = fit(self.memory.stack_bytes, slots);
        self.call_stack_bytes = fit(self.call_stack_bytes, need.frames);
        self
    }
}

/// Code of one plugin, which any number of instances share.
#[derive(Clone)]
pub struct KernelCode {
    code: Arc<Code>,
}

struct Code {
    module: Module,
    options: KernelOptions,
    shared: Arc<Shared>,
    /// For a verifier that has refused the other one.
    patient: OnceLock<Option<Arc<Shared>>>,
}

/// A program, and what its instances need to know.
struct Shared {
    program: program::Program,
    /// The module's static data, where it lies in memory.
    data: Vec<(u32, Vec<u8>)>,
    /// Exported functions by name: site and signature.
    entries: HashMap<String, (i32, Signature)>,
    /// Names and signatures of host functions.
    hosts: HashMap<FuncId, (String, Signature)>,
    layout: Layout,
    options: KernelOptions,
}

impl KernelCode {
    /// BPF instructions for `module`. Needs no permission.
    ///
    /// # Errors
    ///
    /// [`KernelError::Float`], [`KernelError::TooLarge`] and [`KernelError::Emit`].
    pub fn compile(module: &Module, options: KernelOptions) -> Result<Self, KernelError> {
        only_integers(module)?;
        let is_large = |func: &&Func| func.body.as_ref().is_some_and(Body::is_large);
        if let Some(func) = module.funcs.iter().find(is_large) {
            return Err(KernelError::TooLarge(func.name.clone()));
        }
        let shared = match Shared::new(&module.with_unrolled_loops(), options, Bounds::Enter) {
            // It may fit without what was written out.
            Err(KernelError::TooLarge(_)) => Shared::new(module, options, Bounds::Enter),
            done => done,
        };
        let (module, shared, patient) = (module.clone(), shared?, OnceLock::new());
        Ok(Self { code: Arc::new(Code { module, options, shared, patient }) })
    }

    /// Bytes of BPF instructions.
    #[must_use]
    pub fn code_bytes(&self) -> usize {
        self.code.shared.program.insns.len() * size_of::<asm::Insn>()
    }

    /// A fresh instance: a program in the kernel and its arena.
    ///
    /// # Errors
    ///
    /// [`KernelError`] when the kernel does not permit it, or refuses the program.
    pub fn instantiate<H: Host>(&self, host: H) -> Result<KernelInstance<H>, KernelError> {
        let shared = &self.code.shared;
        let loaded = match Loaded::new(shared)? {
            Some(loaded) => loaded,
            None => match self.code.patient().map(Loaded::new) {
                Some(Ok(Some(loaded))) => loaded,
                _ => Loaded::or_reason(shared)?,
            },
        };
        KernelInstance::new(loaded, host)
    }
}

impl Code {
    /// The program with less, and fewer bounds, for the verifier to follow, if it can be made.
    fn patient(&self) -> Option<&Arc<Shared>> {
        let build = || Shared::new(&self.module, self.options, Bounds::Iteration).ok();
        self.patient.get_or_init(build).as_ref()
    }
}

impl Shared {
    fn new(
        module: &Module,
        options: KernelOptions,
        bounds: Bounds,
    ) -> Result<Arc<Self>, KernelError> {
        let (options, module) = (options.fitted(module), &simplified(module));
        let layout = Layout::new(module, &options.memory)?;
        let control = Control::new(&options);
        let program = program::build(module, &layout, control.end as i32, bounds)?;
        let sites = program.sites.iter().enumerate();
        let entries = sites.filter_map(|(index, site)| match site {
            program::Site::Entry(id) => {
                let number = program::code::FIRST_SITE + index as i32;
                let name = module.funcs[id.0 as usize].name.clone();
                Some((name, (number, module.sig_of(*id).clone())))
            }
            _ => None,
        });
        let entries = entries.collect();
        let hosts = module.funcs.iter().enumerate().filter(|(_, func)| func.body.is_none());
        let hosts = hosts.map(|(index, func)| {
            let id = FuncId(index as u32);
            (id, (func.name.clone(), module.sig_of(id).clone()))
        });
        let hosts = hosts.collect();
        let data = layout.data(module);
        Ok(Arc::new(Self { program, data, entries, hosts, layout, options }))
    }
}

/// Where frames lie in the arena: behind all that memory may become.
struct Control {
    start: u64,
    end: u64,
}

impl Control {
    fn new(options: &KernelOptions) -> Self {
        let start = u64::from(options.memory.max_memory_bytes.min(1 << 30));
        let start = start.next_multiple_of(sys::PAGE);
        let bytes = options.call_stack_bytes.min(1 << 28);
        Self { start, end: start + u64::from(bytes).next_multiple_of(sys::PAGE) }
    }
}

fn simplified(module: &Module) -> Module {
    let mut module = module.clone();
    for body in module.funcs.iter_mut().filter_map(|func| func.body.as_mut()) {
        *body = simplify::simplify(body);
    }
    module
}

/// The kernel has neither floating point nor vectors.
fn only_integers(module: &Module) -> Result<(), KernelError> {
    let is_float = |ty: &Ty| matches!(ty, Ty::F32 | Ty::F64);
    for func in &module.funcs {
        let sig = &module.sigs[func.sig.0 as usize];
        let body = func.body.as_ref();
        let regs = body.into_iter().flat_map(|body| &body.regs);
        let mut insts = body.into_iter().flat_map(|body| &body.blocks).flat_map(|b| &b.insts);
        if regs.chain(&sig.params).chain(&sig.ret).any(is_float) || insts.any(Inst::is_float) {
            let (function, place) = (func.name.clone(), func.float.clone());
            return Err(KernelError::Float { function, place });
        }
        let mut insts = body.into_iter().flat_map(|body| &body.blocks).flat_map(|b| &b.insts);
        if insts.any(|inst| inst.is_of_transformations()) {
            return Err(KernelError::Vectors(func.name.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ecode::{Input, compile};
    use std::fmt::Write as _;

    /// A function with `count` variables that live over ten loops, in each of which many values are
    /// waiting to be used.
    fn crowded(count: usize) -> Module {
        let variables = (0..count).fold(String::new(), |mut text, id| {
            let _ = write!(text, "long v{id} = n + {id};");
            text
        });
        let uses = (0..count).fold(String::new(), |mut text, id| {
            let _ = write!(text, "h ^= v{id};");
            text
        });
        let loads =
            "long p = a[i], q = a[i + 1], r = a[i + 2], s = a[i + 3], t = a[i + 4], u = a[i + 5];";
        let iteration = "h ^= u - t; h ^= s - r; h ^= q - p;";
        let looped = format!("for (long i = 0; i < n; i++) {{ {loads} {iteration} }}").repeat(10);
        let text = format!(
            "static long a[99]; long proc(long n) {{ long h = 0; {variables} {looped} {uses} return h; }}"
        );
        compile(&Input::new("crowded.e", &text)).unwrap().module
    }

    #[test]
    fn what_is_too_large_with_its_loops_written_out_is_taken_as_it_is() {
        let options = KernelOptions::default();
        let module = crowded(1_950);
        let rows = Shared::new(&module.with_unrolled_loops(), options, Bounds::Enter);
        assert!(matches!(rows, Err(KernelError::TooLarge(name)) if name == "proc"));
        assert!(KernelCode::compile(&module, options).is_ok());
    }
}

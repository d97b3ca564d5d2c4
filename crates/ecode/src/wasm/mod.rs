//! The intermediate form to WebAssembly.
//!
//! Memory, from address 0: a part that holds nothing, the frames (growing down), static data, the
//! heap. A fuel counter ([`crate::ir::Inst::Tick`]) goes from [`STRIP`] down; when it is used up,
//! the module calls the import `dewar.tick`, where the host ends calls that take too long.

mod func;
mod index;
mod inst;
mod layout;
mod number;
mod options;
mod places;
mod relative;
mod structure;
mod unit;
mod vector;

use crate::ir::Module;
pub use layout::{EmitError, Layout, PAGE};
pub use options::{STRIP, WasmOptions};
pub use places::Places;
use unit::{Numbers, Unit, val_type};
use wasm_encoder::{
    BranchHints, CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType,
    ExportKind, ExportSection, FunctionSection, GlobalSection, GlobalType, ImportSection,
    MemorySection, MemoryType, NameMap, NameSection, RefType, TableSection, TableType, TypeSection,
    ValType,
};

/// The longest strip. Pointers walk through no more than memory in so many iterations
/// ([`crate::meter`]).
const MAX_STRIP: i32 = 1 << 20;
/// Module name of host functions.
pub const HOST: &str = "host";
/// Module name of what every module needs.
pub const DEWAR: &str = "dewar";

/// The module as WebAssembly. Equal modules and options give equal bytes.
///
/// # Errors
///
/// [`EmitError`] when it cannot fit its limits.
pub fn emit(module: &Module, options: &WasmOptions) -> Result<Vec<u8>, EmitError> {
    Ok(emit_with_places(module, options)?.0)
}

/// The module as WebAssembly, and where in the text its parts come from.
///
/// # Errors
///
/// As [`emit`].
pub fn emit_with_places(
    module: &Module,
    options: &WasmOptions,
) -> Result<(Vec<u8>, Places), EmitError> {
    let module = &module.with_vectors().with_counters();
    let layout = Layout::new(module, options)?;
    let numbers = Numbers::new(module);
    let strip = options.strip_iterations.clamp(1, MAX_STRIP);
    let unit = Unit { module, layout, numbers, strip };
    let mut out = wasm_encoder::Module::new();
    out.section(&unit.types());
    out.section(&unit.imports());
    out.section(&unit.functions());
    out.section(&unit.table());
    out.section(&unit.memory(options));
    out.section(&unit.globals());
    out.section(&unit.exports());
    out.section(&unit.elements());
    let (hints, code, places) = unit.code();
    out.section(&hints);
    out.section(&code);
    out.section(&unit.data());
    out.section(&unit.names());
    Ok((out.finish(), places))
}

impl Unit<'_> {
    fn types(&self) -> TypeSection {
        let mut section = TypeSection::new();
        section.ty().function([], []);
        for sig in &self.module.sigs {
            let params: Vec<_> = sig.params.iter().map(|ty| val_type(*ty)).collect();
            section.ty().function(params, sig.ret.map(val_type));
        }
        section
    }

    fn imports(&self) -> ImportSection {
        let mut section = ImportSection::new();
        section.import(DEWAR, "tick", EntityType::Function(0));
        for func in self.module.funcs.iter().filter(|f| f.body.is_none()) {
            section.import(HOST, &func.name, EntityType::Function(func.sig.0 + 1));
        }
        section
    }

    fn functions(&self) -> FunctionSection {
        let mut section = FunctionSection::new();
        for func in self.module.funcs.iter().filter(|f| f.body.is_some()) {
            section.function(func.sig.0 + 1);
        }
        section
    }

    fn table(&self) -> TableSection {
        let mut section = TableSection::new();
        let size = self.numbers.table.len() as u64 + 1;
        section.table(TableType {
            element_type: RefType::FUNCREF,
            minimum: size,
            maximum: Some(size),
            table64: false,
            shared: false,
        });
        section
    }

    fn memory(&self, options: &WasmOptions) -> MemorySection {
        let mut section = MemorySection::new();
        section.memory(MemoryType {
            minimum: self.layout.pages,
            maximum: Some(u64::from(options.max_memory_bytes) / PAGE),
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        section
    }

    fn globals(&self) -> GlobalSection {
        let mut section = GlobalSection::new();
        let i32_global = |mutable| GlobalType { val_type: ValType::I32, mutable, shared: false };
        section.global(i32_global(true), &ConstExpr::i32_const(self.layout.stack_top as i32));
        section.global(i32_global(true), &ConstExpr::i32_const(self.strip));
        section.global(i32_global(false), &ConstExpr::i32_const(self.layout.heap_base as i32));
        section
    }

    fn exports(&self) -> ExportSection {
        let mut section = ExportSection::new();
        section.export("memory", ExportKind::Memory, 0);
        section.export("__heap_base", ExportKind::Global, 2);
        for (index, func) in self.module.funcs.iter().enumerate() {
            let reserved = matches!(func.name.as_str(), "memory" | "__heap_base");
            if func.exported && func.body.is_some() && !reserved {
                let number = self.numbers.functions[index];
                section.export(&func.name, ExportKind::Func, number);
            }
        }
        section
    }

    fn elements(&self) -> ElementSection {
        let mut section = ElementSection::new();
        let table: Vec<u32> =
            self.numbers.table.iter().map(|id| self.numbers.function(*id)).collect();
        if !table.is_empty() {
            let functions = Elements::Functions(table.into());
            section.active(None, &ConstExpr::i32_const(1), functions);
        }
        section
    }

    fn code(&self) -> (BranchHints, CodeSection, Places) {
        let (mut hints, mut section) = (BranchHints::new(), CodeSection::new());
        let mut places = Places::new(self.module);
        for (func, number) in self.module.funcs.iter().zip(&self.numbers.functions) {
            let Some(body) = &func.body else { continue };
            let emitted = func::emit(self, func, body);
            section.function(&emitted.code);
            if !emitted.unlikely.is_empty() {
                hints.function_hints(*number, emitted.unlikely);
            }
            places.add(*number, func.begin, emitted.marks);
        }
        (hints, section, places)
    }

    fn data(&self) -> DataSection {
        let mut section = DataSection::new();
        for (at, bytes) in self.layout.data(self.module) {
            section.active(0, &ConstExpr::i32_const(at as i32), bytes);
        }
        section
    }

    /// What tools call functions. Where one failed, [`Places`] says.
    fn names(&self) -> NameSection {
        let funcs = self.module.funcs.iter().zip(&self.numbers.functions);
        let own = funcs.filter(|(func, _)| func.body.is_some());
        let mut own: Vec<(u32, &str)> = own.map(|(func, no)| (*no, func.name.as_str())).collect();
        own.sort_unstable();
        let mut names = NameMap::new();
        own.iter().for_each(|(number, name)| names.append(*number, name));
        let mut section = NameSection::new();
        section.functions(&names);
        section
    }
}

//! A module as machine code in memory.

use super::{NativeError, Protection, flow, frame::Frame, symbol};
use cranelift_codegen::{
    Context,
    control::ControlPlane,
    ir::{
        AbiParam, Endianness, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type,
        UserFuncName, types,
    },
    isa::OwnedTargetIsa,
    settings::{self, Configurable},
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleReloc};
use ecode::ir::{self, Signature, Ty};
use std::sync::{Arc, OnceLock};

/// Bytes of addresses that are set aside for the code of a module. Memory is taken as code is laid
/// down; a module that is larger is refused. Functions call each other by 32-bit distances, which
/// separate mappings can exceed in a process with large ones of its own.
const ADDRESSES: usize = 64 << 20;

/// Code that is ready to run, and where its functions are.
pub(crate) struct Unit {
    pub(crate) jit: JITModule,
    /// For each function of the module, the code.
    pub(crate) funcs: Vec<FuncId>,
    /// For exported functions, the code that takes arguments from memory.
    pub(crate) entries: Vec<(ir::FuncId, FuncId)>,
    /// Bytes of machine code.
    pub(crate) code_bytes: usize,
}

/// What all functions refer to.
pub(super) struct Shared<'m> {
    pub(super) module: &'m ir::Module,
    pub(super) protection: Protection,
    /// Offsets of static data in the context.
    pub(super) globals: Vec<i64>,
    pub(super) table: Vec<ir::FuncId>,
    pub(super) funcs: Vec<FuncId>,
    pub(super) raise: FuncId,
    pub(super) host: FuncId,
    pub(super) copy: FuncId,
    pub(super) zero: FuncId,
}

/// Generates code for `module`. `symbols` are the functions of `symbol`, by address.
pub(crate) fn build(
    module: &ir::Module,
    protection: Protection,
    symbols: &[(&str, *const u8)],
) -> Result<Unit, NativeError> {
    let module = &module.with_vectors();
    let mut jit = new_jit(symbols)?;
    let shared = declare(module, protection, &mut jit)?;
    let mut gen_ =
        Generator { jit, context: Context::new(), builder: FunctionBuilderContext::new() };
    let mut code_bytes = 0;
    for (index, func) in module.funcs.iter().enumerate() {
        let id = ir::FuncId(index as u32);
        code_bytes += match &func.body {
            Some(body) => gen_.function(&shared, id, body)?,
            None => gen_.host_thunk(&shared, id)?,
        };
    }
    let mut entries = Vec::new();
    for (index, func) in module.funcs.iter().enumerate() {
        if func.exported && func.body.is_some() {
            let id = ir::FuncId(index as u32);
            entries.push((id, gen_.entry(&shared, id)?));
        }
    }
    let mut jit = gen_.jit;
    jit.finalize_definitions()?;
    Ok(Unit { jit, funcs: shared.funcs, entries, code_bytes })
}

fn new_jit(symbols: &[(&str, *const u8)]) -> Result<JITModule, NativeError> {
    static ISA: OnceLock<OwnedTargetIsa> = OnceLock::new();
    let isa = match ISA.get() {
        Some(isa) => isa,
        None => {
            let isa = this_machine()?;
            ISA.get_or_init(|| isa)
        }
    };
    let mut builder =
        JITBuilder::with_isa(Arc::clone(isa), cranelift_module::default_libcall_names());
    builder.symbols(symbols.iter().map(|(name, address)| (*name, *address)));
    let memory = ArenaMemoryProvider::new_with_size(ADDRESSES)
        .map_err(|error| NativeError::Codegen(format!("no addresses for code: {error}")))?;
    builder.memory_provider(Box::new(memory));
    Ok(JITModule::new(builder))
}

fn this_machine() -> Result<OwnedTargetIsa, NativeError> {
    let mut flags = settings::builder();
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_verifier", "false")]
    {
        flags.set(name, value).map_err(|error| NativeError::Codegen(error.to_string()))?;
    }
    let machine =
        cranelift_native::builder().map_err(|why| NativeError::Machine(why.to_owned()))?;
    machine
        .finish(settings::Flags::new(flags))
        .map_err(|error| NativeError::Codegen(error.to_string()))
}

/// Declares a function of the process that takes `params` words.
fn import(
    jit: &mut JITModule,
    name: &str,
    params: usize,
    returns: bool,
) -> Result<FuncId, NativeError> {
    let mut sig = jit.make_signature();
    sig.params = vec![AbiParam::new(types::I64); params];
    sig.returns = vec![AbiParam::new(types::I64); usize::from(returns)];
    Ok(jit.declare_function(name, Linkage::Import, &sig)?)
}

fn declare<'m>(
    module: &'m ir::Module,
    protection: Protection,
    jit: &mut JITModule,
) -> Result<Shared<'m>, NativeError> {
    let raise = import(jit, symbol::RAISE, 2, false)?;
    let host = import(jit, symbol::HOST, 3, true)?;
    let copy = import(jit, symbol::COPY, 3, false)?;
    let zero = import(jit, symbol::ZERO, 2, false)?;
    let mut funcs = Vec::with_capacity(module.funcs.len());
    for func in &module.funcs {
        let sig = signature(jit, &module.sigs[func.sig.0 as usize]);
        funcs.push(jit.declare_anonymous_function(&sig)?);
    }
    let (globals, _) = data_layout(module);
    let table = module.address_taken();
    Ok(Shared { module, protection, globals, table, funcs, raise, host, copy, zero })
}

/// Offsets of static data in the context, and where it ends.
pub(crate) fn data_layout(module: &ir::Module) -> (Vec<i64>, usize) {
    let mut at = super::context::DATA as u64;
    let offsets = module.globals.iter().map(|global| {
        at = at.next_multiple_of(global.align.max(1));
        let place = at as i64;
        at += global.size;
        place
    });
    let offsets = offsets.collect();
    (offsets, at as usize)
}

pub(super) fn machine_type(ty: Ty) -> Type {
    match ty {
        Ty::I32 => types::I32,
        Ty::I64 | Ty::Ptr => types::I64,
        Ty::F32 => types::F32,
        Ty::F64 => types::F64,
        Ty::V128 => types::I8X16,
    }
}

pub(super) fn signature(jit: &JITModule, own: &Signature) -> cranelift_codegen::ir::Signature {
    let mut sig = jit.make_signature();
    sig.params.push(AbiParam::new(types::I64));
    sig.params.extend(own.params.iter().map(|ty| AbiParam::new(machine_type(*ty))));
    sig.returns.extend(own.ret.map(|ty| AbiParam::new(machine_type(ty))));
    sig
}

/// Accesses to the plugin's own memory: they may be anywhere, and do not reorder with calls.
pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

struct Generator {
    jit: JITModule,
    context: Context,
    builder: FunctionBuilderContext,
}

impl Generator {
    fn function(
        &mut self,
        shared: &Shared<'_>,
        id: ir::FuncId,
        body: &ir::Body,
    ) -> Result<usize, NativeError> {
        let params = shared.module.sig_of(id).params.len();
        let mut frame = Frame::new(body, params, shared.protection);
        // What never leaves its register is as safe as in a place below the arrays, and costs
        // nothing.
        let homes = frame.homes.take();
        self.generate(shared, id, body, frame.clone());
        self.compile()?;
        let is_all = self.context.compiled_code().is_some_and(|code| frame.is_all(code));
        if homes.is_some() && !is_all {
            self.generate(shared, id, body, Frame { homes, ..frame });
            self.compile()?;
        }
        self.define(shared.funcs[id.0 as usize])
    }

    fn generate(&mut self, shared: &Shared<'_>, id: ir::FuncId, body: &ir::Body, frame: Frame) {
        let sig = signature(&self.jit, shared.module.sig_of(id));
        self.begin(sig, shared.funcs[id.0 as usize]);
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        flow::function(shared, &mut self.jit, builder, id, body, frame);
    }

    fn begin(&mut self, sig: cranelift_codegen::ir::Signature, id: FuncId) {
        self.jit.clear_context(&mut self.context);
        self.context.func.signature = sig;
        self.context.func.name = UserFuncName::user(0, id.as_u32());
    }

    fn compile(&mut self) -> Result<(), NativeError> {
        let compiled = self.context.compile(self.jit.isa(), &mut ControlPlane::default());
        compiled.map(drop).map_err(|error| NativeError::Codegen(format!("{:?}", error.inner)))
    }

    /// Takes the code that was compiled for `id`; returns its bytes.
    fn define(&mut self, id: FuncId) -> Result<usize, NativeError> {
        let Some(code) = self.context.compiled_code() else { return Ok(0) };
        let (bytes, align) = (code.code_buffer(), u64::from(code.buffer.alignment));
        let relocs = code.buffer.relocs().iter();
        let relocs =
            relocs.map(|reloc| ModuleReloc::from_mach_reloc(reloc, &self.context.func, id));
        self.jit.define_function_bytes(id, align, bytes, &relocs.collect::<Vec<_>>())?;
        Ok(bytes.len())
    }

    /// A host function as plugins call it: arguments go to memory, the host's dispatcher takes it
    /// from there.
    fn host_thunk(&mut self, shared: &Shared<'_>, id: ir::FuncId) -> Result<usize, NativeError> {
        let own = shared.module.sig_of(id);
        let sig = signature(&self.jit, own);
        self.begin(sig, shared.funcs[id.0 as usize]);
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let bytes = own.params.len().max(1) as u32 * 8;
        let slot =
            b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3));
        let cells = b.ins().stack_addr(types::I64, slot, 0);
        let params = b.block_params(block).to_vec();
        for (index, param) in params[1..].iter().enumerate() {
            b.ins().store(flags(), *param, cells, index as i32 * 8);
        }
        let number = b.ins().iconst(types::I64, i64::from(id.0));
        let host = self.jit.declare_func_in_func(shared.host, b.func);
        let call = b.ins().call(host, &[params[0], number, cells]);
        let failed = b.inst_results(call)[0];
        let (raise_block, done) = (b.create_block(), b.create_block());
        b.set_cold_block(raise_block);
        b.ins().brif(failed, raise_block, &[], done, &[]);
        b.switch_to_block(raise_block);
        flow::raise(&mut b, &mut self.jit, shared.raise, params[0], super::code::HOST);
        b.switch_to_block(done);
        let result = own.ret.map(|ty| b.ins().load(machine_type(ty), flags(), cells, 0));
        b.ins().return_(result.as_slice());
        b.seal_all_blocks();
        b.finalize(self.jit.target_config());
        self.compile()?;
        self.define(shared.funcs[id.0 as usize])
    }

    /// `entry(context, arguments, result)` for an exported function.
    fn entry(&mut self, shared: &Shared<'_>, id: ir::FuncId) -> Result<FuncId, NativeError> {
        let own = shared.module.sig_of(id);
        let mut sig = self.jit.make_signature();
        sig.params = vec![AbiParam::new(types::I64); 3];
        let entry = self.jit.declare_anonymous_function(&sig)?;
        self.begin(sig, entry);
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let params = b.block_params(block).to_vec();
        let mut args = vec![params[0]];
        for (index, ty) in own.params.iter().enumerate() {
            args.push(b.ins().load(machine_type(*ty), flags(), params[1], index as i32 * 8));
        }
        let target = self.jit.declare_func_in_func(shared.funcs[id.0 as usize], b.func);
        let call = b.ins().call(target, &args);
        if own.ret.is_some() {
            let result = b.inst_results(call)[0];
            b.ins().store(flags(), result, params[2], 0);
        }
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(self.jit.target_config());
        self.compile()?;
        self.define(entry)?;
        Ok(entry)
    }
}

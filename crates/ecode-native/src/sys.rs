//! Running native code: the only place where this crate is not checked by the compiler.

#![allow(unsafe_code)]

use crate::{NativeError, Protection, Unit, build, code, data_layout, frame, symbol};
use ecode::{
    Args, CallError, Host, Memory, Reply, Value,
    ir::{At, FuncId, Module, Operand, Signature, Spot, TrapCode, Ty},
};
use std::{
    arch::naked_asm,
    cell::Cell,
    collections::HashMap,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Arguments of host functions that need no allocation.
const MAX_INLINE_ARGS: usize = 8;
/// Stack that a call may use, beyond what host functions take.
const STACK_BYTES: usize = 512 << 10;

/// Machine code of one plugin, which any number of instances share.
#[derive(Clone)]
pub struct NativeCode {
    shared: Arc<Shared>,
}

struct Shared {
    module: Module,
    /// What the host is told of its own functions; nothing of the plugin's own, which has the same
    /// numbers.
    imports: Vec<Import>,
    unit: Option<Unit>,
    /// Code addresses of exported functions, by name.
    entries: HashMap<String, (usize, Signature)>,
    /// Pairs of code address and signature number, by function address.
    table: Vec<[u64; 2]>,
    code_bytes: usize,
}

// SAFETY: `unit` is only reached by `drop`, which has the value alone; all other fields are plain
// data that nothing changes after `compile`. The code they point to is not changed either.
unsafe impl Send for Shared {}
// SAFETY: as above: shared use only reads.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(unit) = self.unit.take() {
            // SAFETY: instances hold this value by `Arc`, so none is left, and calls borrow an
            // instance, so none is running: nothing uses the code any more.
            unsafe { unit.jit.free_memory() };
        }
    }
}

/// The head of what an instance's code sees; `native::context` has the offsets.
#[repr(C, align(64))]
struct Context {
    /// The stack pointer to return to from `raise`.
    saved: u64,
    unused: u64,
    stack_limit: u64,
    guard: u64,
    table: *const [u64; 2],
    instance: *mut Inside<dyn Host>,
}

/// A host function: its name, and the types of its parameters.
#[derive(Default)]
struct Import {
    name: String,
    params: Vec<Ty>,
}

/// What the host's dispatcher needs.
struct Inside<H: ?Sized> {
    shared: Arc<Shared>,
    failure: Option<String>,
    host: H,
}

/// A plugin's static data and the host it may call.
pub struct NativeInstance<H = Box<dyn Host>> {
    /// The context, and static data behind it. Its place never changes: the data holds addresses in
    /// it.
    memory: Vec<Line>,
    inside: Box<Inside<H>>,
    spot: Option<Spot>,
}

/// A function of one plugin, its name and types resolved.
pub struct NativeEntry<A: Args, R: Reply> {
    code: usize,
    shared: Arc<Shared>,
    types: PhantomData<fn(A) -> R>,
}

/// 64 bytes, aligned so.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u64; 8]);

// SAFETY: the pointers in the context lead to what the instance itself owns (`inside`, the table in
// `shared`), and both may change threads: `Host` is `Send` and `Shared` is.
unsafe impl<H: Host> Send for NativeInstance<H> {}

impl NativeCode {
    /// Machine code for `module`.
    ///
    /// # Errors
    ///
    /// [`NativeError`] when Cranelift does not know the machine or refuses the code.
    pub fn compile(module: &Module, protection: Protection) -> Result<Self, NativeError> {
        let symbols: [(&str, *const u8); 4] = [
            (symbol::RAISE, raise as *const u8),
            (symbol::HOST, host_entry as *const u8),
            (symbol::COPY, copy_bytes as *const u8),
            (symbol::ZERO, zero_bytes as *const u8),
        ];
        let unit = build(module, protection, &symbols)?;
        let address = |id| unit.jit.get_finalized_function(id) as u64;
        let entries = unit.entries.iter().map(|(own, code)| {
            let name = module.funcs[own.0 as usize].name.clone();
            (name, (address(*code) as usize, module.sig_of(*own).clone()))
        });
        let entries = entries.collect();
        let mut table = vec![[0, u64::MAX]];
        table.extend(module.address_taken().iter().map(|id| {
            let sig = module.funcs[id.0 as usize].sig.0;
            [address(unit.funcs[id.0 as usize]), u64::from(sig)]
        }));
        let imports = module.funcs.iter().map(|func| match func.body {
            None => Import {
                name: func.name.clone(),
                params: module.sigs[func.sig.0 as usize].params.clone(),
            },
            Some(_) => Import::default(),
        });
        let (imports, code_bytes) = (imports.collect(), unit.code_bytes);
        let module = module.clone();
        let shared = Shared { module, imports, unit: Some(unit), entries, table, code_bytes };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Bytes of machine code.
    #[must_use]
    pub fn code_bytes(&self) -> usize {
        self.shared.code_bytes
    }

    /// A fresh instance.
    ///
    /// # Safety
    ///
    /// Calls run with all rights of the process, and can read and write all of its memory. The
    /// caller trusts the program's text, and trusts it with every address that is passed to
    /// [`NativeInstance::call`].
    #[must_use]
    pub unsafe fn instantiate<H: Host + 'static>(&self, host: H) -> NativeInstance<H> {
        let shared = Arc::clone(&self.shared);
        let (offsets, end) = data_layout(&shared.module);
        let mut memory = vec![Line([0; 8]); end.div_ceil(size_of::<Line>()).max(1)];
        let base = memory.as_ptr() as u64;
        let mut put = |at: usize, byte: u8| {
            let (line, word, shift) = (at / 64, at % 64 / 8, at % 8 * 8);
            let cell = &mut memory[line].0[word];
            *cell = *cell & !(0xff << shift) | u64::from(byte) << shift;
        };
        for (global, offset) in shared.module.globals.iter().zip(&offsets) {
            let start = *offset as usize;
            global.init.iter().enumerate().for_each(|(index, byte)| put(start + index, *byte));
            for (at, target) in &global.relocs {
                let address = static_address(&shared, &offsets, base, target);
                let at = start + *at as usize;
                address.to_le_bytes().iter().enumerate().for_each(|(i, byte)| put(at + i, *byte));
            }
        }
        let inside = Box::new(Inside { shared, failure: None, host });
        NativeInstance { memory, inside, spot: None }
    }
}

fn static_address(shared: &Shared, offsets: &[i64], base: u64, target: &Operand) -> u64 {
    match target {
        Operand::Global(global, off) => {
            base.wrapping_add_signed(offsets[global.0 as usize]).wrapping_add_signed(*off)
        }
        Operand::Func(id) => function_address(&shared.module, *id),
        _ => 0,
    }
}

fn function_address(module: &Module, id: FuncId) -> u64 {
    module.address_taken().binary_search(&id).map_or(0, |index| index as u64 + 1)
}

impl<H: Host + 'static> NativeInstance<H> {
    /// The host that the instance may call.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.inside.host
    }

    /// Where in the text the call ended that failed, if that is known.
    #[must_use]
    pub fn spot(&self) -> Option<&Spot> {
        self.spot.as_ref()
    }

    /// The function `name`, to be called by [`NativeInstance::enter`].
    ///
    /// # Errors
    ///
    /// [`CallError::NoFunction`] when there is none with these parameters and this result.
    pub fn entry<A: Args, R: Reply>(&self, name: &str) -> Result<NativeEntry<A, R>, CallError> {
        match self.inside.shared.entries.get(name) {
            Some((code, sig)) if sig.params == A::TYPES && sig.ret == R::TYPE => {
                let shared = Arc::clone(&self.inside.shared);
                Ok(NativeEntry { code: *code, shared, types: PhantomData })
            }
            _ => Err(CallError::NoFunction(name.to_owned())),
        }
    }

    /// Calls `entry`. There is no limit of time.
    ///
    /// # Errors
    ///
    /// [`CallError`] says why there is no result. Do not use the instance again.
    ///
    /// # Panics
    ///
    /// When `entry` is another plugin's.
    #[inline]
    pub fn enter<A: Args, R: Reply>(
        &mut self,
        entry: &NativeEntry<A, R>,
        args: A,
    ) -> Result<R, CallError> {
        assert!(Arc::ptr_eq(&entry.shared, &self.inside.shared), "an entry of another plugin");
        let cells = args.cells();
        // SAFETY: `entry` made sure that the code is that of a function which takes `A` and returns
        // `R`; `cells` holds the one. It is code of this instance's `shared`, as was just checked.
        unsafe { self.run(entry.code, cells.as_ref()) }.map(R::from_bits)
    }

    /// Calls `function` by its name and with values whose types are checked: slower than
    /// [`NativeInstance::enter`]. There is no limit of time.
    ///
    /// # Errors
    ///
    /// [`CallError`] says why there is no result. Do not use the instance again.
    pub fn call(&mut self, function: &str, args: &[Value]) -> Result<Option<Value>, CallError> {
        let missing = || CallError::NoFunction(function.to_owned());
        let (code, sig) = self.inside.shared.entries.get(function).ok_or_else(missing)?;
        if !sig.params.iter().copied().eq(args.iter().map(|arg| arg.ty())) {
            return Err(missing());
        }
        let (code, ret) = (*code, sig.ret);
        let cells: Vec<u64> = args.iter().map(|arg| arg.bits()).collect();
        // SAFETY: `code` is the entry of a function of this instance, whose parameters `cells` were
        // just compared with.
        let result = unsafe { self.run(code, &cells) }?;
        Ok(ret.map(|ty| Value::from_bits(ty, result)))
    }

    /// Calls the entry at `code`.
    ///
    /// # Safety
    ///
    /// It must be an entry in `shared.entries` of this instance, with as many parameters as
    /// `cells`.
    unsafe fn run(&mut self, code: usize, cells: &[u64]) -> Result<u64, CallError> {
        let mut result = 0_u64;
        let context = self.context();
        // SAFETY: `code` is finished code with the signature `entry(context, arguments, result)`,
        // as the caller vouches, and lives as long as `shared`. `cells` holds as many cells as it
        // has parameters, `result` one, and `context` was filled in just above for this instance,
        // which is borrowed mutably, so no other call uses it. That the code itself does no harm is
        // what the caller of `instantiate` has vouched for.
        match unsafe { enter(context, code as *const u8, cells.as_ptr(), &raw mut result) } {
            0 => Ok(result),
            status => Err(self.failure(status)),
        }
    }

    /// Fills in the context for a call and returns its address.
    fn context(&mut self) -> *mut Context {
        thread_local!(static GUARD: Cell<u64> = const { Cell::new(0) });
        let here = std::ptr::from_ref(&self).addr() as u64;
        let guard = GUARD.get();
        let guard = if guard == 0 { frame::guard() } else { guard };
        GUARD.set(guard);
        let head = Context {
            saved: 0,
            unused: 0,
            stack_limit: here.saturating_sub(STACK_BYTES as u64),
            guard,
            table: self.inside.shared.table.as_ptr(),
            instance: &raw mut *self.inside,
        };
        let place = self.memory.as_mut_ptr().cast::<Context>();
        // SAFETY: `memory` has at least one `Line`, which has the size and alignment of `Context`,
        // and is borrowed mutably here.
        unsafe { place.write(head) };
        place
    }

    #[cold]
    fn failure(&mut self, told: u64) -> CallError {
        let (reason, at) = code::heard(told);
        self.spot = self.inside.shared.module.lines.spot(At::numbered(at));
        match reason {
            code::DIVIDE => CallError::Trap(TrapCode::DivideByZero),
            code::UNREACHABLE => CallError::Trap(TrapCode::Unreachable),
            code::STACK => CallError::Trap(TrapCode::StackOverflow),
            code::BAD_CALL => CallError::Trap(TrapCode::BadCall),
            code::HOST => CallError::Host(self.inside.failure.take().unwrap_or_default()),
            _ => CallError::Smashed(self.spot.take().map_or_else(String::new, |it| it.function)),
        }
    }
}

/// Runs `code(context, args, result)`. Returns 0, or what `raise` was told.
///
/// # Safety
///
/// `code` must be code with the signature above that returns or calls [`raise`] with the same
/// `context`, and whose frames need no cleaning up.
#[unsafe(naked)]
unsafe extern "sysv64" fn enter(
    context: *mut Context,
    code: *const u8,
    args: *const u64,
    result: *mut u64,
) -> u64 {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [rdi], rsp",
        "mov rax, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "call rax",
        "xor eax, eax",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Returns `code` from the call of [`enter`] that `context` belongs to.
///
/// # Safety
///
/// That call must not have returned, and only generated code may lie between.
#[unsafe(naked)]
unsafe extern "sysv64" fn raise(context: *mut Context, code: u64) -> ! {
    naked_asm!(
        "mov rsp, [rdi]",
        "mov rax, rsi",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Calls host function `number`: arguments in `cells`, the result in the first of them. Not 0 when
/// it failed.
unsafe extern "sysv64" fn host_entry(context: *mut Context, number: u64, cells: *mut u64) -> u64 {
    // SAFETY: generated code passes the context that `NativeInstance::context` filled in for the
    // running call.
    let instance = unsafe { (*context).instance };
    // SAFETY: that context names the instance's own `inside`, which the running call borrows
    // mutably and which no one else touches while generated code runs.
    let inside = unsafe { &mut *instance };
    let Inside { shared, failure, host } = inside;
    let Import { name, params } = &shared.imports[number as usize];
    let mut few = [Value::I32(0); MAX_INLINE_ARGS];
    let mut many = Vec::new();
    let args = match few.get_mut(..params.len()) {
        Some(few) => few,
        None => {
            many.resize(params.len(), Value::I32(0));
            &mut many[..]
        }
    };
    for (index, (arg, ty)) in args.iter_mut().zip(params).enumerate() {
        // SAFETY: generated code passes as many cells as the function has parameters.
        let cell = unsafe { cells.add(index) };
        // SAFETY: as above; generated code has written every one of them.
        *arg = Value::from_bits(*ty, unsafe { cell.read() });
    }
    let call = AssertUnwindSafe(|| host.call(name, args, &mut ProcessMemory));
    let result = catch_unwind(call).unwrap_or_else(|_| Err("the host function panicked".into()));
    match result {
        Ok(value) => {
            // SAFETY: there is at least one cell.
            unsafe { *cells = value };
            0
        }
        Err(why) => {
            *failure = Some(why);
            1
        }
    }
}

/// `memmove` for generated code.
unsafe extern "sysv64" fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: native programs are trusted with addresses, as `NativeCode::instantiate` demands.
    unsafe { std::ptr::copy(from, to, len) };
}

/// `memset` with 0 for generated code.
unsafe extern "sysv64" fn zero_bytes(to: *mut u8, len: usize) {
    // SAFETY: as for `copy_bytes`.
    unsafe { std::ptr::write_bytes(to, 0, len) };
}

/// All memory of the process: what a native plugin can name.
struct ProcessMemory;

impl Memory for ProcessMemory {
    fn read(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        if addr == 0 {
            return None;
        }
        let (from, len) = (addr as *const u8, usize::try_from(len).ok()?);
        // SAFETY: the address comes from a native program, which is trusted with addresses
        // (`instantiate`).
        Some(unsafe { std::slice::from_raw_parts(from, len) }.to_vec())
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        if addr == 0 {
            return false;
        }
        // SAFETY: as for `read`; `bytes` is the host's, which the program has no address of.
        unsafe { std::ptr::copy(bytes.as_ptr(), addr as *mut u8, bytes.len()) };
        true
    }
}

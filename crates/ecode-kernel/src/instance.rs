//! A plugin in the kernel: its program, its arena, its calls.

use super::{
    Control, KernelError, Shared,
    homes::HEAD,
    program::{Site, code},
    sys::{Arena, Context, Program},
};
use ecode::{
    CallError, Host, Memory, Value,
    ir::{FuncId, Spot, TrapCode, Ty},
    wasm::PAGE,
};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// Iterations of loops and calls between two looks at the clock.
const STRIP: u64 = 32_768;
/// What the verifier says is cut to its last lines.
const LOG_LINES: usize = 12;
const LOG_BYTES: usize = 1 << 20;

/// A plugin's program and memory, and the host that it may call.
pub struct KernelInstance<H = Box<dyn Host>> {
    shared: Arc<Shared>,
    program: Program,
    memory: ArenaMemory,
    control: Control,
    host: H,
    spot: Option<Spot>,
}

/// The part of the arena that is the plugin's memory.
struct ArenaMemory {
    arena: Arena,
    bytes: u64,
}

/// A program that the kernel has taken.
pub(super) struct Loaded {
    shared: Arc<Shared>,
    control: Control,
    arena: Arena,
    program: Program,
}

impl Loaded {
    /// `None` if the kernel refused the program.
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Option<Self>, KernelError> {
        match Self::load(shared, &mut [])? {
            Ok(loaded) => Ok(Some(loaded)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM) => Err(KernelError::NotPermitted),
                Some(libc::ENFILE | libc::EMFILE) => Err(KernelError::System(error)),
                _ => Ok(None),
            },
        }
    }

    /// As a last attempt: with the reason, if the kernel refuses the program again.
    pub(super) fn or_reason(shared: &Arc<Shared>) -> Result<Self, KernelError> {
        let mut log = vec![0; LOG_BYTES];
        Self::load(shared, &mut log)?.map_err(|error| {
            let text = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = text.trim_end_matches('\0').lines().collect();
            let last = lines.len().saturating_sub(LOG_LINES);
            KernelError::Refused(format!("{error}\n{}", lines[last..].join("\n")))
        })
    }

    fn load(shared: &Arc<Shared>, log: &mut [u8]) -> Result<io::Result<Self>, KernelError> {
        let control = Control::new(&shared.options);
        let arena = Arena::new(control.end).map_err(arena_error)?;
        let program = arena.load(&shared.program.insns, log);
        Ok(program.map(|program| Self { shared: Arc::clone(shared), control, arena, program }))
    }
}

impl<H: Host> KernelInstance<H> {
    pub(super) fn new(loaded: Loaded, host: H) -> Result<Self, KernelError> {
        let Loaded { shared, control, mut arena, program } = loaded;
        let bytes = shared.layout.pages * PAGE;
        arena.populate(0, bytes).map_err(KernelError::System)?;
        arena.populate(control.start, control.end).map_err(KernelError::System)?;
        let mut memory = ArenaMemory { arena, bytes };
        for (at, bytes) in &shared.data {
            // INVARIANT: the layout has room for all data.
            let _ = memory.write(u64::from(*at), bytes);
        }
        Ok(Self { shared, program, memory, control, host, spot: None })
    }

    /// Bytes of the memory that the plugin has by now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes
    }

    /// The host that the instance may call.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Calls `function`, for at most `time`.
    ///
    /// # Errors
    ///
    /// [`CallError`] says why there is no result. Do not use the instance again.
    pub fn call(
        &mut self,
        function: &str,
        args: &[Value],
        time: Duration,
    ) -> Result<Option<Value>, CallError> {
        let missing = || CallError::NoFunction(function.to_owned());
        let shared = Arc::clone(&self.shared);
        let (entry, sig) = shared.entries.get(function).ok_or_else(missing)?;
        if sig.params.len() != args.len() || !sig.params.iter().zip(args).all(|(t, a)| *t == a.ty())
        {
            return Err(missing());
        }
        let deadline = Instant::now().checked_add(time);
        self.enter(args);
        let mut context = Context {
            at: *entry as u64,
            frame: self.control.start,
            fuel: STRIP,
            memory: self.memory.bytes,
            ..Context::default()
        };
        loop {
            let run = self.memory.arena.run(&self.program, &mut context);
            run.map_err(|error| {
                CallError::Other(format!("the kernel refused to run it: {error}"))
            })?;
            match self.site(context.at) {
                Err(code::RETURNED) => {
                    return Ok(sig.ret.map(|ty| Value::from_bits(ty, context.value)));
                }
                Err(code) => return Err(failure(code)),
                Ok(Site::Trap(code, spot)) => {
                    self.ended_at(spot);
                    return Err(failure(code));
                }
                // At host calls, too: iterations before them are not in the count when the program
                // goes on.
                Ok(site) if deadline.is_some_and(|end| Instant::now() >= end) => {
                    if let Site::Tick(spot) = site {
                        self.ended_at(spot);
                    }
                    return Err(CallError::Timeout);
                }
                Ok(Site::Host(id)) => context.value = self.host_call(id, context.frame)?,
                Ok(_) => context.fuel = STRIP,
            }
        }
    }

    /// Where in the text the call ended that failed, if that is known. What is used together is
    /// looked at together, in a straight piece of code, so memory that is not the plugin's may be
    /// used a few lines further on.
    #[must_use]
    pub fn spot(&self) -> Option<&Spot> {
        self.spot.as_ref()
    }

    fn ended_at(&mut self, spot: usize) {
        self.spot = self.shared.program.spots.get(spot).cloned().flatten();
    }

    /// Makes the first frame.
    fn enter(&mut self, args: &[Value]) {
        let mut head = [0_u8; HEAD as usize];
        head[8..12].copy_from_slice(&self.shared.layout.stack_top.to_le_bytes());
        let mut frame = head.to_vec();
        args.iter().for_each(|arg| frame.extend(arg.bits().to_le_bytes()));
        // INVARIANT: a frame is shorter than the least that there is for frames.
        let _ = self.memory.arena.write(self.control.start, &frame);
    }

    /// The site of that number, or the number where it is none.
    fn site(&self, number: u64) -> Result<Site, i32> {
        let number = number as i32;
        let index = number.checked_sub(code::FIRST_SITE).and_then(|n| usize::try_from(n).ok());
        let site = index.and_then(|index| self.shared.program.sites.get(index));
        site.copied().ok_or(number)
    }

    fn host_call(&mut self, id: FuncId, frame: u64) -> Result<u64, CallError> {
        let Some((name, sig)) = self.shared.hosts.get(&id) else {
            return Err(CallError::Other("an unknown host function".into()));
        };
        let mut args = Vec::with_capacity(sig.params.len());
        let mut at = frame + HEAD as u64;
        for ty in &sig.params {
            let mut cell = [0; 8];
            if at + 8 > self.control.end || !self.memory.arena.read(at, &mut cell) {
                return Err(CallError::Trap(TrapCode::StackOverflow));
            }
            args.push(Value::from_bits(*ty, canonical(*ty, u64::from_le_bytes(cell))));
            at += 8;
        }
        let result = self.host.call(name, &args, &mut self.memory).map_err(CallError::Host)?;
        Ok(sig.ret.map_or(0, |ty| canonical(ty, result)))
    }

    /// Copies `bytes` into the plugin's memory at `addr`.
    #[must_use]
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        self.memory.write(addr, bytes)
    }

    /// Copies `len` bytes out of the plugin's memory.
    #[must_use]
    pub fn read(&mut self, addr: u64, len: u64) -> Option<Vec<u8>> {
        self.memory.read(addr, len)
    }

    /// The first address behind the plugin's own data: buffers may lie from there on.
    #[must_use]
    pub fn heap_base(&mut self) -> Option<u64> {
        Some(u64::from(self.shared.layout.heap_base))
    }

    /// Makes the memory reach to `end` at least; whether it does.
    pub fn grow_to(&mut self, end: u64) -> bool {
        let end = end.next_multiple_of(PAGE);
        if end <= self.memory.bytes {
            return true;
        }
        let fits = end <= u64::from(self.shared.options.memory.max_memory_bytes)
            && end <= self.control.start;
        let grown = fits && self.memory.arena.populate(self.memory.bytes, end).is_ok();
        if grown {
            self.memory.bytes = end;
        }
        grown
    }
}

impl ArenaMemory {
    fn has(&self, addr: u64, len: u64) -> bool {
        addr.checked_add(len).is_some_and(|end| end <= self.bytes)
    }
}

impl Memory for ArenaMemory {
    fn read(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len).ok().filter(|_| self.has(addr, len))?;
        let mut out = vec![0; len];
        self.arena.read(addr, &mut out).then_some(out)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        self.has(addr, bytes.len() as u64) && self.arena.write(addr, bytes)
    }
}

/// The bits as the program keeps them: 32 of them, unless it is a `long`.
fn canonical(ty: Ty, bits: u64) -> u64 {
    if ty == Ty::I64 { bits } else { u64::from(bits as u32) }
}

fn failure(code: i32) -> CallError {
    match code {
        code::DIVIDE => CallError::Trap(TrapCode::DivideByZero),
        code::UNREACHABLE => CallError::Trap(TrapCode::Unreachable),
        code::STACK => CallError::Trap(TrapCode::StackOverflow),
        code::BAD_CALL => CallError::Trap(TrapCode::BadCall),
        code::BOUNDS => CallError::OutOfBounds,
        code::TIME => CallError::Timeout,
        other => CallError::Other(format!("it left with the unknown reason {other}")),
    }
}

fn arena_error(error: io::Error) -> KernelError {
    match error.raw_os_error() {
        Some(libc::EPERM) => KernelError::NotPermitted,
        Some(libc::EINVAL | libc::ENOSYS) => KernelError::NoArena,
        _ => KernelError::System(error),
    }
}

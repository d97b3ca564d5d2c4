//! What crosses the boundary of a plugin: values, memory, host functions, and how calls end.

use crate::ir::{TrapCode, Ty};

/// A value that is passed to or returned from a plugin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `int` and smaller.
    I32(i32),
    /// `long`.
    I64(i64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
    /// An address in the plugin's memory.
    Ptr(u64),
}

impl Value {
    /// The value's bits; an `int` extended by sign.
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Value::I32(value) => i64::from(value) as u64,
            Value::I64(value) => value as u64,
            Value::F32(value) => u64::from(value.to_bits()),
            Value::F64(value) => value.to_bits(),
            Value::Ptr(value) => value,
        }
    }

    /// The value of type `ty` that `bits` stand for; `ty` is one that signatures have.
    #[must_use]
    pub fn from_bits(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::I32 => Value::I32(bits as i32),
            Ty::I64 | Ty::V128 => Value::I64(bits as i64),
            Ty::F32 => Value::F32(f32::from_bits(bits as u32)),
            Ty::F64 => Value::F64(f64::from_bits(bits)),
            Ty::Ptr => Value::Ptr(bits),
        }
    }

    /// Its type.
    #[must_use]
    pub fn ty(self) -> Ty {
        match self {
            Value::I32(_) => Ty::I32,
            Value::I64(_) => Ty::I64,
            Value::F32(_) => Ty::F32,
            Value::F64(_) => Ty::F64,
            Value::Ptr(_) => Ty::Ptr,
        }
    }
}

/// The memory of a plugin, as host functions see it.
pub trait Memory {
    /// `len` bytes at `addr`, or `None` where that is not the plugin's.
    fn read(&self, addr: u64, len: u64) -> Option<Vec<u8>>;

    /// Writes at `addr`; whether all of that is the plugin's.
    fn write(&mut self, addr: u64, bytes: &[u8]) -> bool;

    /// The bytes at `addr` up to a 0, at most `most`.
    fn read_text(&self, addr: u64, most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < most {
            let byte = self.read(addr.checked_add(out.len() as u64)?, 1)?[0];
            if byte == 0 {
                return Some(out);
            }
            out.push(byte);
        }
        None
    }
}

/// What a plugin can call.
pub trait Host: Send {
    /// Runs host function `name`. `args` have the types of its declaration, records and `...` as
    /// addresses. The result has the declared type; it is ignored for `void`.
    ///
    /// # Errors
    ///
    /// The text says why the plugin's call ends here.
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String>;
}

impl<H: Host + ?Sized> Host for Box<H> {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        (**self).call(name, args, memory)
    }
}

/// A host that offers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn call(&mut self, name: &str, _: &[Value], _: &mut dyn Memory) -> Result<u64, String> {
        Err(format!("the host has no function `{name}`"))
    }
}

/// Why a call into a plugin gave no result. The instance is not used again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The plugin did something that has no meaning.
    #[error("the plugin was ended: {}", trap_text(*.0))]
    Trap(TrapCode),
    /// The plugin read or wrote outside of its memory.
    #[error("the plugin was ended: it used memory that is not its own")]
    OutOfBounds,
    /// An array on the stack overflowed in the function named; found when that returned.
    #[error("the plugin was ended: an array on the stack overflowed in `{0}`")]
    Smashed(String),
    /// The plugin ran longer than it may.
    #[error("the plugin was ended: its time is used up")]
    Timeout,
    /// A host function ended the call.
    #[error("the plugin was ended: {0}")]
    Host(String),
    /// There is no such function, or it takes other arguments.
    #[error("the plugin has no function `{0}` with these parameters")]
    NoFunction(String),
    /// Anything else.
    #[error("the plugin was ended: {0}")]
    Other(String),
}

fn trap_text(code: TrapCode) -> &'static str {
    match code {
        TrapCode::DivideByZero => "it divided by zero",
        TrapCode::Unreachable => "it reached a place that it declared impossible",
        TrapCode::StackOverflow => "its stack is used up",
        TrapCode::BadCall => "it called an address that is no function of that type",
    }
}

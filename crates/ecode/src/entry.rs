//! Typed entries: a function of a plugin whose name and types are resolved once, so that a call costs no look-up
//! and no allocation.
//!
//! ```
//! # use ecode::{Address, Input, IsolatedEngine, IsolatedOptions, NoHost, compile};
//! # use std::time::Duration;
//! let compiled = compile(&Input::new("twice.e", "int twice(int n) { return 2 * n; }"))?;
//! let engine = IsolatedEngine::new(IsolatedOptions::default())?;
//! let mut plugin = engine.compile(&compiled.module)?.instantiate(Box::new(NoHost))?;
//! let twice = plugin.entry::<(i32,), i32>("twice")?;
//! assert_eq!(plugin.enter(&twice, (21,), Duration::from_millis(10))?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ir::Ty;
use wasmtime::{WasmParams, WasmResults, WasmTy};

/// An address in a plugin's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A Rust type that stands for a scalar of the language: `i32` (all integers up to `int`), `i64`, `f32`, `f64`,
/// [`Address`].
pub trait Scalar: Sealed + Copy {
    /// What it stands for.
    const TY: Ty;
    #[doc(hidden)]
    type Wasm: WasmTy + Copy;
    #[doc(hidden)]
    fn to_wasm(self) -> Self::Wasm;
    #[doc(hidden)]
    fn from_wasm(value: Self::Wasm) -> Self;
    /// As [`crate::Value::bits`].
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

macro_rules! scalar {
    ($own:ty, $ty:ident, $wasm:ty, $to_wasm:expr, $from_wasm:expr, $bits:expr, $from_bits:expr) => {
        impl Sealed for $own {}
        impl Scalar for $own {
            const TY: Ty = Ty::$ty;
            type Wasm = $wasm;
            #[inline]
            fn to_wasm(self) -> $wasm {
                $to_wasm(self)
            }
            #[inline]
            fn from_wasm(value: $wasm) -> Self {
                $from_wasm(value)
            }
            #[inline]
            fn bits(self) -> u64 {
                $bits(self)
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                $from_bits(bits)
            }
        }
    };
}

scalar!(i32, I32, i32, |v| v, |v| v, |v| i64::from(v) as u64, |b| b as i32);
scalar!(i64, I64, i64, |v| v, |v| v, |v| v as u64, |b| b as i64);
scalar!(f32, F32, f32, |v| v, |v| v, |v: f32| u64::from(v.to_bits()), |b| f32::from_bits(b as u32));
scalar!(f64, F64, f64, |v| v, |v| v, f64::to_bits, f64::from_bits);
scalar!(
    Address,
    Ptr,
    u32,
    |v: Address| v.0 as u32,
    |v| Address(u64::from(v)),
    |v: Address| v.0,
    Address
);

/// The arguments of an entry: a tuple of up to six scalars.
pub trait Args: Sealed {
    #[doc(hidden)]
    type Wasm: WasmParams;
    #[doc(hidden)]
    type Cells: AsRef<[u64]>;
    #[doc(hidden)]
    const TYPES: &'static [Ty];
    #[doc(hidden)]
    fn to_wasm(self) -> Self::Wasm;
    #[doc(hidden)]
    fn cells(self) -> Self::Cells;
}

macro_rules! args {
    ($count:literal: $($name:ident)*) => {
        impl<$($name: Scalar),*> Sealed for ($($name,)*) {}
        #[allow(non_snake_case, clippy::unused_unit)]
        impl<$($name: Scalar),*> Args for ($($name,)*) {
            type Wasm = ($($name::Wasm,)*);
            type Cells = [u64; $count];
            const TYPES: &'static [Ty] = &[$($name::TY),*];
            #[inline]
            fn to_wasm(self) -> Self::Wasm {
                let ($($name,)*) = self;
                ($($name.to_wasm(),)*)
            }
            #[inline]
            fn cells(self) -> Self::Cells {
                let ($($name,)*) = self;
                [$($name.bits()),*]
            }
        }
    };
}

args!(0: );
args!(1: A);
args!(2: A B);
args!(3: A B C);
args!(4: A B C D);
args!(5: A B C D E);
args!(6: A B C D E F);

/// The result of an entry: a scalar, or `()` for `void`.
pub trait Reply: Sealed {
    #[doc(hidden)]
    type Wasm: WasmResults;
    #[doc(hidden)]
    const TYPE: Option<Ty>;
    #[doc(hidden)]
    fn from_wasm(value: Self::Wasm) -> Self;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

impl Reply for () {
    type Wasm = ();
    const TYPE: Option<Ty> = None;
    #[inline]
    fn from_wasm((): ()) {}
    #[inline]
    fn from_bits(_: u64) {}
}

impl<S: Scalar> Reply for S {
    type Wasm = S::Wasm;
    const TYPE: Option<Ty> = Some(S::TY);
    #[inline]
    fn from_wasm(value: S::Wasm) -> S {
        S::from_wasm(value)
    }
    #[inline]
    fn from_bits(bits: u64) -> S {
        <S as Scalar>::from_bits(bits)
    }
}

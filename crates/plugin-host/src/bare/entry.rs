//! Types of functions that are entered without a look-up: Rust's, as WebAssembly has them.

use ecode::Address;
use wasmtime::{WasmParams, WasmResults};

/// Arguments of an entry: a tuple of up to six scalars.
pub trait EntryArgs {
    #[doc(hidden)]
    type Wasm: WasmParams;
    #[doc(hidden)]
    fn to_wasm(self) -> Self::Wasm;
}

/// The result of an entry: a scalar, or `()` for `void`.
pub trait EntryReply {
    #[doc(hidden)]
    type Wasm: WasmResults;
    #[doc(hidden)]
    fn from_wasm(value: Self::Wasm) -> Self;
}

mod sealed {
    /// A scalar as WebAssembly has it.
    pub trait Scalar {
        type Wasm: wasmtime::WasmTy;
        fn to_wasm(self) -> Self::Wasm;
    }
}
use sealed::Scalar;

macro_rules! scalar {
    ($own:ty, $wasm:ty, $to_wasm:expr, $from_wasm:expr) => {
        impl EntryReply for $own {
            type Wasm = $wasm;
            fn from_wasm(value: $wasm) -> Self {
                $from_wasm(value)
            }
        }
        impl Scalar for $own {
            type Wasm = $wasm;
            fn to_wasm(self) -> $wasm {
                $to_wasm(self)
            }
        }
    };
}

scalar!(i32, i32, |it| it, |it| it);
scalar!(i64, i64, |it| it, |it| it);
scalar!(f32, f32, |it| it, |it| it);
scalar!(f64, f64, |it| it, |it| it);
scalar!(Address, u32, |it: Address| it.0 as u32, |it| Address(u64::from(it)));

impl EntryReply for () {
    type Wasm = ();
    fn from_wasm((): ()) {}
}

macro_rules! args {
    ($($name:ident)*) => {
        #[allow(non_snake_case, clippy::unused_unit)]
        impl<$($name: Scalar),*> EntryArgs for ($($name,)*) {
            type Wasm = ($($name::Wasm,)*);
            fn to_wasm(self) -> Self::Wasm {
                let ($($name,)*) = self;
                ($($name.to_wasm(),)*)
            }
        }
    };
}

args!();
args!(A);
args!(A B);
args!(A B C);
args!(A B C D);
args!(A B C D E);
args!(A B C D E F);

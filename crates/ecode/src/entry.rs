//! The types of typed entries: functions of a plugin whose name and types are resolved once, so
//! that a call costs no look-up and no allocation.

use crate::ir::Ty;

/// An address in a plugin's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A Rust type that stands for a scalar of the language: `i32` (all integers up to `int`), `i64`,
/// `f32`, `f64`, [`Address`].
pub trait Scalar: Sealed + Copy {
    /// What it stands for.
    const TY: Ty;
    /// As [`crate::Value::bits`].
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

macro_rules! scalar {
    ($own:ty, $ty:ident, $bits:expr, $from_bits:expr) => {
        impl Sealed for $own {}
        impl Scalar for $own {
            const TY: Ty = Ty::$ty;
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

scalar!(i32, I32, |v| i64::from(v) as u64, |b| b as i32);
scalar!(i64, I64, |v| v as u64, |b| b as i64);
scalar!(f32, F32, |v: f32| u64::from(v.to_bits()), |b| f32::from_bits(b as u32));
scalar!(f64, F64, f64::to_bits, f64::from_bits);
scalar!(Address, Ptr, |v: Address| v.0, Address);

/// The arguments of an entry: a tuple of up to six scalars.
pub trait Args: Sealed {
    #[doc(hidden)]
    type Cells: AsRef<[u64]>;
    #[doc(hidden)]
    const TYPES: &'static [Ty];
    #[doc(hidden)]
    fn cells(self) -> Self::Cells;
}

macro_rules! args {
    ($count:literal: $($name:ident)*) => {
        impl<$($name: Scalar),*> Sealed for ($($name,)*) {}
        #[allow(non_snake_case, clippy::unused_unit)]
        impl<$($name: Scalar),*> Args for ($($name,)*) {
            type Cells = [u64; $count];
            const TYPES: &'static [Ty] = &[$($name::TY),*];
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
    const TYPE: Option<Ty>;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

impl Reply for () {
    const TYPE: Option<Ty> = None;
    #[inline]
    fn from_bits(_: u64) {}
}

impl<S: Scalar> Reply for S {
    const TYPE: Option<Ty> = Some(S::TY);
    #[inline]
    fn from_bits(bits: u64) -> S {
        <S as Scalar>::from_bits(bits)
    }
}

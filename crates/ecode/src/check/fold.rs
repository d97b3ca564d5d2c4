//! Computing at compile time what the targets would compute at run time, with the same results.

use crate::ir::{BinOp, CmpOp, ConvOp, Operand, Ty};

/// The result of `a op b` when it is known.
pub(super) fn bin(op: BinOp, ty: Ty, a: Operand, b: Operand) -> Option<Operand> {
    match (ty, a, b) {
        (Ty::I32, Operand::Int(a), Operand::Int(b)) => {
            int32(op, a as i32, b as i32).map(|v| Operand::Int(i64::from(v)))
        }
        (Ty::I64, Operand::Int(a), Operand::Int(b)) => int64(op, a, b).map(Operand::Int),
        (Ty::F32 | Ty::F64, Operand::Float(a), Operand::Float(b)) => float(op, ty, a, b),
        (Ty::I32 | Ty::I64, _, Operand::Int(b)) => identity(op, a, b),
        (Ty::I32 | Ty::I64, Operand::Int(0), _) if matches!(op, BinOp::Add | BinOp::Or) => Some(b),
        (Ty::I32 | Ty::I64, Operand::Int(1), _) if op == BinOp::Mul => Some(b),
        _ => None,
    }
}

fn identity(op: BinOp, a: Operand, b: i64) -> Option<Operand> {
    use BinOp::{Add, And, DivS, DivU, Mul, Or, Shl, ShrS, ShrU, Sub, Xor};
    match (op, b) {
        (Add | Sub | Or | Xor | Shl | ShrS | ShrU, 0) | (Mul | DivS | DivU, 1) | (And, -1) => {
            Some(a)
        }
        _ => None,
    }
}

fn int32(op: BinOp, a: i32, b: i32) -> Option<i32> {
    let (ua, ub) = (a as u32, b as u32);
    Some(match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::DivS if b != 0 => a.wrapping_div(b),
        BinOp::RemS if b != 0 => a.wrapping_rem(b),
        BinOp::DivU => ua.checked_div(ub)? as i32,
        BinOp::RemU => ua.checked_rem(ub)? as i32,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a.wrapping_shl(ub),
        BinOp::ShrS => a.wrapping_shr(ub),
        BinOp::ShrU => ua.wrapping_shr(ub) as i32,
        BinOp::DivS | BinOp::RemS => return None,
    })
}

fn int64(op: BinOp, a: i64, b: i64) -> Option<i64> {
    let (ua, ub) = (a as u64, b as u64);
    Some(match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::DivS if b != 0 => a.wrapping_div(b),
        BinOp::RemS if b != 0 => a.wrapping_rem(b),
        BinOp::DivU => ua.checked_div(ub)? as i64,
        BinOp::RemU => ua.checked_rem(ub)? as i64,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a.wrapping_shl(b as u32),
        BinOp::ShrS => a.wrapping_shr(b as u32),
        BinOp::ShrU => ua.wrapping_shr(b as u32) as i64,
        BinOp::DivS | BinOp::RemS => return None,
    })
}

fn float(op: BinOp, ty: Ty, a: u64, b: u64) -> Option<Operand> {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    // The sum, product or quotient of two singles, rounded first to double and then to single, is
    // right.
    let value = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::DivS => a / b,
        _ => return None,
    };
    // The bits of a NaN are the machine's.
    (!value.is_nan()).then(|| float_operand(value, ty))
}

/// The operand for `value` as a value of `ty`.
pub(super) fn float_operand(value: f64, ty: Ty) -> Operand {
    let value = if ty == Ty::F32 { f64::from(value as f32) } else { value };
    Operand::Float(value.to_bits())
}

/// The result of a comparison when it is known.
pub(super) fn cmp(op: CmpOp, ty: Ty, a: Operand, b: Operand) -> Option<Operand> {
    use CmpOp::{Eq, GeS, GeU, GtS, GtU, LeS, LeU, LtS, LtU, Ne};
    let truth = match (a, b) {
        (Operand::Float(a), Operand::Float(b)) => {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            match op {
                Eq => a == b,
                Ne => a != b,
                LtS | LtU => a < b,
                LeS | LeU => a <= b,
                GtS | GtU => a > b,
                GeS | GeU => a >= b,
            }
        }
        (Operand::Int(a), Operand::Int(b)) if ty != Ty::Ptr => {
            let unsigned = |v: i64| if ty == Ty::I32 { u64::from(v as u32) } else { v as u64 };
            let (ua, ub) = (unsigned(a), unsigned(b));
            match op {
                Eq => a == b,
                Ne => a != b,
                LtS => a < b,
                LtU => ua < ub,
                LeS => a <= b,
                LeU => ua <= ub,
                GtS => a > b,
                GtU => ua > ub,
                GeS => a >= b,
                GeU => ua >= ub,
            }
        }
        (Operand::Int(a), Operand::Int(b)) if matches!(op, Eq | Ne) => (a == b) == (op == Eq),
        // What exists is not at address 0.
        (Operand::Slot(..) | Operand::Global(..) | Operand::Func(_), Operand::Int(0))
            if matches!(op, Eq | Ne) =>
        {
            op == Ne
        }
        _ => return None,
    };
    Some(Operand::Int(i64::from(truth)))
}

/// The result of a conversion when it is known.
pub(super) fn conv(op: ConvOp, from: Ty, to: Ty, src: Operand) -> Option<Operand> {
    match src {
        Operand::Int(v) => int_conv(op, from, to, v),
        Operand::Float(bits) => float_conv(op, to, f64::from_bits(bits)),
        _ => None,
    }
}

fn int_conv(op: ConvOp, from: Ty, to: Ty, v: i64) -> Option<Operand> {
    let unsigned = if from == Ty::I32 { u64::from(v as u32) } else { v as u64 };
    Some(match op {
        ConvOp::Sext8 => Operand::Int(i64::from(v as i8)),
        ConvOp::Zext8 => Operand::Int(i64::from(v as u8)),
        ConvOp::Sext16 => Operand::Int(i64::from(v as i16)),
        ConvOp::Zext16 => Operand::Int(i64::from(v as u16)),
        ConvOp::Sext32 | ConvOp::Wrap => Operand::Int(i64::from(v as i32)),
        ConvOp::Zext32 => Operand::Int(i64::from(v as u32)),
        // Addresses have 32 bits on some targets and 64 on others; only what is equal on both is
        // folded.
        ConvOp::PtrToInt | ConvOp::IntToPtr if u32::try_from(v).is_ok() => Operand::Int(v),
        ConvOp::IntToFloatS if to == Ty::F32 => Operand::Float(f64::from(v as f32).to_bits()),
        ConvOp::IntToFloatS => Operand::Float((v as f64).to_bits()),
        ConvOp::IntToFloatU if to == Ty::F32 => {
            Operand::Float(f64::from(unsigned as f32).to_bits())
        }
        ConvOp::IntToFloatU => Operand::Float((unsigned as f64).to_bits()),
        _ => return None,
    })
}

fn float_conv(op: ConvOp, to: Ty, v: f64) -> Option<Operand> {
    Some(match (op, to) {
        (ConvOp::FloatToIntS, Ty::I32) => Operand::Int(i64::from(v as i32)),
        (ConvOp::FloatToIntS, _) => Operand::Int(v as i64),
        (ConvOp::FloatToIntU, Ty::I32) => Operand::Int(i64::from(v as u32 as i32)),
        (ConvOp::FloatToIntU, _) => Operand::Int(v as u64 as i64),
        (ConvOp::FloatToFloat, to) if !v.is_nan() => float_operand(v, to),
        _ => return None,
    })
}

/// `base + bytes` when it needs no code.
pub(super) fn offset(base: Operand, bytes: i64) -> Option<Operand> {
    Some(match base {
        Operand::Slot(slot, at) => Operand::Slot(slot, at.wrapping_add(bytes)),
        Operand::Global(global, at) => Operand::Global(global, at.wrapping_add(bytes)),
        Operand::Int(at) => {
            let sum = at.wrapping_add(bytes);
            // An address is one only where both widths agree.
            u32::try_from(sum).ok().map(|_| Operand::Int(sum))?
        }
        other if bytes == 0 => other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_c_leaves_undefined_is_folded_as_documented() {
        let int = |v: i64| Operand::Int(v);
        let min = i64::from(i32::MIN);
        for (op, ty, a, b, want) in [
            (BinOp::Add, Ty::I32, i64::from(i32::MAX), 1, Some(min)),
            (BinOp::DivS, Ty::I32, min, -1, Some(min)),
            (BinOp::RemS, Ty::I64, i64::MIN, -1, Some(0)),
            (BinOp::DivS, Ty::I32, 1, 0, None),
            (BinOp::Shl, Ty::I32, 1, 33, Some(2)),
            (BinOp::ShrU, Ty::I32, -1, 28, Some(15)),
            (BinOp::ShrS, Ty::I64, -8, 65, Some(-4)),
        ] {
            assert_eq!(bin(op, ty, int(a), int(b)), want.map(int), "{op:?} {a} {b}");
        }
        let nan = Operand::Float(f64::NAN.to_bits());
        assert_eq!(conv(ConvOp::FloatToIntS, Ty::F64, Ty::I32, nan), Some(int(0)));
        let huge = Operand::Float(1e30_f64.to_bits());
        assert_eq!(conv(ConvOp::FloatToIntU, Ty::F64, Ty::I32, huge), Some(int(-1)));
    }
}

//! Arithmetic on numbers that each iteration has its own of: their ranges, and how narrow lanes may
//! be. A lane holds the low bits of a number; only what is shifted right needs the others, so it
//! must be known to fit.

use super::{
    analyse::{Analysis, Value},
    plan::{Compare, Role, Widened},
    scalar::Linear,
};
use crate::ir::{BinOp, CmpOp, ConvOp, Operand, Ty};

impl Analysis {
    pub(super) fn bin(
        &mut self,
        op: BinOp,
        ty: Ty,
        a: &Operand,
        b: &Operand,
    ) -> Option<(Role, Value)> {
        let (left, right) = (self.value(a)?, self.value(b)?);
        match (left, right) {
            (Value::Linear(left), Value::Linear(right)) if matches!(ty, Ty::I32 | Ty::I64) => {
                let linear = left.bin(op, ty, right)?;
                return Some((Role::Scalar, Value::Linear(linear)));
            }
            (Value::Linear(Linear { step: 0, .. }), Value::Linear(Linear { step: 0, .. })) => {
                return Some((Role::Scalar, Value::Linear(Linear { step: 0, root: None })));
            }
            (Value::Sum(reg), Value::Lanes { .. }) | (Value::Lanes { .. }, Value::Sum(reg)) => {
                if op != BinOp::Add || !matches!(ty, Ty::I32 | Ty::I64) {
                    return None;
                }
                self.widths &= if ty == Ty::I32 { 4 } else { 8 };
                return Some((Role::Sum(reg), Value::Sum(reg)));
            }
            _ => {}
        }
        let (left, right) = (self.range(a, ty)?, self.range(b, ty)?);
        if matches!(ty, Ty::F32 | Ty::F64) {
            let (low, high) = full(ty);
            return Some((Role::Lanes, Value::Lanes { low, high }));
        }
        let (low, high) = self.int_range(op, ty, (left, a), (right, b))?;
        let role = match op {
            BinOp::ShrU => Role::ShiftRight { zeros: true },
            BinOp::ShrS => Role::ShiftRight { zeros: left.0 >= 0 },
            _ => Role::Lanes,
        };
        let (least, most) = full(ty);
        if low >= least && high <= most {
            return Some((role, Value::Lanes { low, high }));
        }
        // In a wider lane it would not wrap.
        self.widths &= if ty == Ty::I32 { 0b111 } else { 0b1111 };
        Some((role, Value::Lanes { low: least, high: most }))
    }

    /// The range of the result before it wraps.
    fn int_range(
        &mut self,
        op: BinOp,
        ty: Ty,
        (a, left): ((i128, i128), &Operand),
        (b, right): ((i128, i128), &Operand),
    ) -> Option<(i128, i128)> {
        let corners = |f: &dyn Fn(i128, i128) -> i128| {
            let all = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
            (all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0))
        };
        Some(match op {
            BinOp::Add => (a.0 + b.0, a.1 + b.1),
            BinOp::Sub => (a.0 - b.1, a.1 - b.0),
            BinOp::Mul => {
                // Bytes are multiplied by adding.
                let small = |operand: &Operand| matches!(operand, Operand::Int(1..=64));
                self.widths &= if small(left) || small(right) { !0 } else { !1 };
                corners(&|a, b| a.saturating_mul(b))
            }
            BinOp::And if b.0 >= 0 => (0, b.1),
            BinOp::And if a.0 >= 0 => (0, a.1),
            BinOp::Or | BinOp::Xor if a.0 >= 0 && b.0 >= 0 => {
                (0, ((a.1 | b.1) as u128 + 1).next_power_of_two() as i128 - 1)
            }
            BinOp::And | BinOp::Or | BinOp::Xor => full(ty),
            BinOp::Shl | BinOp::ShrS | BinOp::ShrU => self.shift(op, ty, a, right)?,
            _ => return None,
        })
    }

    fn shift(
        &mut self,
        op: BinOp,
        ty: Ty,
        a: (i128, i128),
        right: &Operand,
    ) -> Option<(i128, i128)> {
        let Operand::Int(by) = *right else { return None };
        let bits = if ty == Ty::I64 { 64 } else { 32 };
        let by = (by & (bits - 1)) as u32;
        for width in [1_u64, 2, 4, 8] {
            let own = 8 * width as u32;
            let fits = match op {
                BinOp::Shl => true,
                // What is shifted in must be what the lane's highest bits stand for.
                BinOp::ShrU if own == bits as u32 => true,
                _ if a.0 >= 0 => a.1 < 1 << own,
                BinOp::ShrS => a.0 >= -(1 << (own - 1)) && a.1 < 1 << (own - 1),
                _ => false,
            };
            if !fits || by >= own {
                self.widths &= !width;
            }
        }
        match op {
            BinOp::Shl => Some((a.0 << by, a.1 << by)),
            BinOp::ShrU if a.0 < 0 => {
                let (_, most) = full(ty);
                Some(if by == 0 { full(ty) } else { (0, (2 * most + 1) >> by) })
            }
            _ => Some((a.0 >> by, a.1 >> by)),
        }
    }

    /// What is compared must be known from the bits of its lanes.
    pub(super) fn compare(
        &mut self,
        op: CmpOp,
        ty: Ty,
        a: &Operand,
        b: &Operand,
    ) -> Option<(Role, Value)> {
        if !matches!(ty, Ty::I32 | Ty::I64) {
            return None;
        }
        let (a, b) = (self.range(a, ty)?, self.range(b, ty)?);
        let compare = Compare { op, least: a.0.min(b.0), most: a.1.max(b.1) };
        let bytes = if ty == Ty::I32 { 4 } else { 8 };
        for width in [1_u64, 2, 4, 8] {
            if !compare.fits(width, bytes) {
                self.widths &= !width;
            }
        }
        Some((Role::Compare(compare), Value::Lanes { low: 0, high: 1 }))
    }

    pub(super) fn select(
        &mut self,
        ty: Ty,
        cond: &Operand,
        a: &Operand,
        b: &Operand,
    ) -> Option<(Role, Value)> {
        let is_mask = matches!(cond, Operand::Reg(reg) if self.masks.contains(reg));
        if !is_mask || !matches!(ty, Ty::I32 | Ty::I64) {
            return None;
        }
        let (a, b) = (self.range(a, ty)?, self.range(b, ty)?);
        Some((Role::Select, Value::Lanes { low: a.0.min(b.0), high: a.1.max(b.1) }))
    }

    pub(super) fn conv(
        &mut self,
        op: ConvOp,
        from: Ty,
        to: Ty,
        src: &Operand,
    ) -> Option<(Role, Value)> {
        let is_float = |ty| matches!(ty, Ty::F32 | Ty::F64);
        let (low, high) = match self.value(src)? {
            Value::Linear(Linear { step: 0, .. }) => {
                return Some((Role::Scalar, Value::Linear(Linear { step: 0, root: None })));
            }
            Value::Linear(linear) => {
                match op {
                    ConvOp::Sext32 | ConvOp::Zext32 => {
                        let signed = op == ConvOp::Sext32;
                        self.plan.widened.push(Widened {
                            inst: self.at,
                            value: *src,
                            step: linear.step,
                            signed,
                        });
                    }
                    ConvOp::Wrap => {}
                    _ => return None,
                }
                let root = linear.root.filter(|_| op != ConvOp::Wrap);
                return Some((Role::Scalar, Value::Linear(Linear { root, ..linear })));
            }
            Value::Lanes { low, high } => (low, high),
            Value::Sum(_) => return None,
        };
        if is_float(from) || is_float(to) {
            return None;
        }
        let (least, most, bytes): (i128, i128, u64) = match op {
            ConvOp::Sext8 => (-128, 127, 1),
            ConvOp::Zext8 => (0, 255, 1),
            ConvOp::Sext16 => (-32768, 32767, 2),
            ConvOp::Zext16 => (0, 65535, 2),
            ConvOp::Sext32 | ConvOp::Wrap => (i128::from(i32::MIN), i128::from(i32::MAX), 4),
            ConvOp::Zext32 => (0, i128::from(u32::MAX), 4),
            _ => return None,
        };
        if low >= least && high <= most {
            return Some((Role::Same, Value::Lanes { low, high }));
        }
        // The lanes' low bits are right; wider lanes would need their high bits changed.
        self.widths &= 2 * bytes - 1;
        Some((Role::Same, Value::Lanes { low: least, high: most }))
    }
}

impl Compare {
    /// Whether lanes of `width` bytes can be compared instead of numbers of `bytes` bytes.
    fn fits(&self, width: u64, bytes: u64) -> bool {
        let bits = 8 * width as u32;
        if self.least < 0 && self.is_unsigned() {
            return width == bytes && bytes < 8;
        }
        self.fits_signed(width) || self.least >= 0 && self.most < 1 << bits
    }

    fn is_unsigned(&self) -> bool {
        matches!(self.op, CmpOp::LtU | CmpOp::LeU | CmpOp::GtU | CmpOp::GeU)
    }

    fn fits_signed(&self, width: u64) -> bool {
        let half = 1 << (8 * width as u32 - 1);
        self.least >= -half && self.most < half
    }

    /// The comparison of lanes of `width` bytes that gives the same.
    pub(super) fn of_lanes(&self, width: u64) -> CmpOp {
        let signed = self.fits_signed(width) && !(self.least < 0 && self.is_unsigned());
        match (self.op, signed) {
            (CmpOp::LtS | CmpOp::LtU, true) => CmpOp::LtS,
            (CmpOp::LtS | CmpOp::LtU, false) => CmpOp::LtU,
            (CmpOp::LeS | CmpOp::LeU, true) => CmpOp::LeS,
            (CmpOp::LeS | CmpOp::LeU, false) => CmpOp::LeU,
            (CmpOp::GtS | CmpOp::GtU, true) => CmpOp::GtS,
            (CmpOp::GtS | CmpOp::GtU, false) => CmpOp::GtU,
            (CmpOp::GeS | CmpOp::GeU, true) => CmpOp::GeS,
            (CmpOp::GeS | CmpOp::GeU, false) => CmpOp::GeU,
            (op, _) => op,
        }
    }
}

/// The range of a type. Those of floats mean nothing.
pub(super) fn full(ty: Ty) -> (i128, i128) {
    match ty {
        Ty::I32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    }
}

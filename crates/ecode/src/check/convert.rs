//! Conversions between types.

use super::{Checked, Checker, Val};
use crate::{
    ir::{CmpOp, ConvOp, Operand, Ty},
    span::Span,
    types::{Type, TypeId},
};

impl Checker<'_> {
    /// `value` as an operand of a condition: an `I32` that is 0 when it is false.
    pub(super) fn truth(&mut self, value: Val, span: Span) -> Checked<Operand> {
        let ty = self.types.reg(value.ty);
        if !self.types.is_scalar(value.ty) {
            let text = format!("a `{}` is neither true nor false", self.types.name(value.ty));
            return Err(self.diags.error(span, text));
        }
        match ty {
            Ty::I32 => Ok(value.op),
            Ty::F32 | Ty::F64 => Ok(self.emit_cmp(CmpOp::Ne, ty, value.op, Operand::Float(0))),
            _ => Ok(self.emit_cmp(CmpOp::Ne, ty, value.op, Operand::Int(0))),
        }
    }

    /// Converts as an assignment, an argument or a `return` does; what loses meaning is warned
    /// about.
    pub(super) fn implicit(&mut self, value: Val, to: TypeId, span: Span) -> Checked<Val> {
        let from = value.ty;
        let to = to.plain();
        let error = |checker: &mut Self| {
            let (from, to) = (checker.types.name(from), checker.types.name(to));
            Err(checker.diags.error(span, format!("`{from}` does not convert to `{to}`")))
        };
        match (self.types.get(from).clone(), self.types.get(to).clone()) {
            (Type::Record(a), Type::Record(b)) if a == b => return Ok(Val { ty: to, ..value }),
            (Type::Record(_) | Type::Void, _) | (_, Type::Record(_) | Type::Void) => {
                return error(self);
            }
            (Type::Ptr(a), Type::Ptr(b)) => self.warn_pointers(a, b, span),
            (Type::Ptr(_), Type::F32 | Type::F64) | (Type::F32 | Type::F64, Type::Ptr(_)) => {
                return error(self);
            }
            (_, Type::Ptr(_)) if value.op != Operand::Int(0) => {
                self.diags.warn(span, "an integer becomes a pointer", Some("write a cast"));
            }
            (Type::Ptr(_), Type::Int { .. }) => {
                self.diags.warn(span, "a pointer becomes an integer", Some("write a cast"));
            }
            (Type::Int { .. }, Type::Int { bits, signed }) => {
                self.warn_constant(value, bits, signed, span);
            }
            _ => {}
        }
        Ok(self.cast(value, to))
    }

    fn warn_pointers(&mut self, from: TypeId, to: TypeId, span: Span) {
        let kind = |types: &crate::types::Types, ty: TypeId| match types.get(ty) {
            Type::Int { bits, .. } => (1, u32::from(*bits)),
            _ => (0, 0),
        };
        let void = from.plain() == TypeId::VOID || to.plain() == TypeId::VOID;
        let alike = kind(&self.types, from) == kind(&self.types, to) && self.types.is_int(from);
        let functions = matches!(self.types.get(from), Type::Func(_))
            && matches!(self.types.get(to), Type::Func(_));
        if from.plain() != to.plain() && !void && !alike && !functions {
            let (from, to) = (self.types.name(from), self.types.name(to));
            let text = format!("a pointer to `{from}` becomes one to `{to}`");
            self.diags.warn(span, text, Some("write a cast"));
        } else if from.is_const() && !to.is_const() {
            self.diags.warn(span, "this pointer loses `const`", None);
        }
    }

    fn warn_constant(&mut self, value: Val, bits: u8, signed: bool, span: Span) {
        let Operand::Int(number) = value.op else { return };
        let unsigned_source = matches!(self.types.int(value.ty), Some((_, false)));
        let fits = match (bits, signed) {
            (8, _) => (-128..256).contains(&number),
            (16, _) => (-32768..65536).contains(&number),
            (32, _) => {
                i32::try_from(number).is_ok() || u32::try_from(number).is_ok() || unsigned_source
            }
            _ => true,
        };
        if !fits {
            self.diags.warn(span, format!("{number} does not fit: its high bits are lost"), None);
        }
    }

    /// Converts a scalar; every pair of scalar types has a meaning here.
    pub(super) fn cast(&mut self, value: Val, to: TypeId) -> Val {
        let to = to.plain();
        let op = self.cast_op(value, to);
        Val { op, ty: to }
    }

    fn cast_op(&mut self, value: Val, to: TypeId) -> Operand {
        let (from_reg, to_reg) = (self.types.reg(value.ty), self.types.reg(to));
        match (self.types.get(value.ty).clone(), self.types.get(to).clone()) {
            (_, Type::Bool) => self.as_bool(value, from_reg),
            (_, Type::Int { bits, signed }) => self.as_int(value, bits, signed),
            (Type::F32 | Type::F64, Type::F32 | Type::F64) if from_reg != to_reg => {
                self.emit_conv(ConvOp::FloatToFloat, from_reg, to_reg, value.op)
            }
            (Type::Bool | Type::Int { .. }, Type::F32 | Type::F64) => {
                let signed = self.types.int(value.ty).is_some_and(|int| int.1);
                let op = if signed { ConvOp::IntToFloatS } else { ConvOp::IntToFloatU };
                self.emit_conv(op, from_reg, to_reg, value.op)
            }
            (Type::Bool | Type::Int { .. }, Type::Ptr(_)) => {
                let wide = self.as_int(value, 64, true);
                self.emit_conv(ConvOp::IntToPtr, Ty::I64, Ty::Ptr, wide)
            }
            _ => value.op,
        }
    }

    fn as_bool(&mut self, value: Val, from: Ty) -> Operand {
        match from {
            _ if value.ty.plain() == TypeId::BOOL => value.op,
            Ty::F32 | Ty::F64 => self.emit_cmp(CmpOp::Ne, from, value.op, Operand::Float(0)),
            _ => self.emit_cmp(CmpOp::Ne, from, value.op, Operand::Int(0)),
        }
    }

    fn as_int(&mut self, value: Val, bits: u8, signed: bool) -> Operand {
        let reg = self.types.reg(value.ty);
        match self.types.get(value.ty) {
            Type::F32 | Type::F64 => {
                let to = if bits == 64 { Ty::I64 } else { Ty::I32 };
                let unsigned = !signed && bits >= 32;
                let op = if unsigned { ConvOp::FloatToIntU } else { ConvOp::FloatToIntS };
                let whole = self.emit_conv(op, reg, to, value.op);
                if bits < 32 { self.narrow(whole, bits, signed) } else { whole }
            }
            Type::Ptr(_) | Type::Array(..) | Type::Func(_) => {
                let wide = self.emit_conv(ConvOp::PtrToInt, Ty::Ptr, Ty::I64, value.op);
                if bits == 64 {
                    return wide;
                }
                let low = self.emit_conv(ConvOp::Wrap, Ty::I64, Ty::I32, wide);
                self.narrow(low, bits, signed)
            }
            _ => self.int_to_int(value, bits, signed),
        }
    }

    fn int_to_int(&mut self, value: Val, bits: u8, signed: bool) -> Operand {
        let (from_bits, from_signed) = self.types.int(value.ty).unwrap_or((32, true));
        if bits == 64 {
            return match (from_bits, from_signed) {
                (64, _) => value.op,
                (_, true) => self.emit_conv(ConvOp::Sext32, Ty::I32, Ty::I64, value.op),
                (_, false) => self.emit_conv(ConvOp::Zext32, Ty::I32, Ty::I64, value.op),
            };
        }
        let low = match from_bits {
            64 => self.emit_conv(ConvOp::Wrap, Ty::I64, Ty::I32, value.op),
            _ => value.op,
        };
        let fits = from_bits < bits && (!from_signed || signed)
            || from_bits == bits && from_signed == signed;
        if fits { low } else { self.narrow(low, bits, signed) }
    }

    /// An `I32` brought into the form of an integer of `bits`.
    fn narrow(&mut self, low: Operand, bits: u8, signed: bool) -> Operand {
        let op = match (bits, signed) {
            (8, true) => ConvOp::Sext8,
            (8, false) => ConvOp::Zext8,
            (16, true) => ConvOp::Sext16,
            (16, false) => ConvOp::Zext16,
            _ => return low,
        };
        self.emit_conv(op, Ty::I32, Ty::I32, low)
    }
}

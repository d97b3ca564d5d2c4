//! What is computed with numbers.

use super::inst::Emitter;
use crate::ir::{BinOp, CmpOp, ConvOp, Operand, Ty};

impl Emitter<'_, '_> {
    pub(super) fn bin(&mut self, op: BinOp, ty: Ty, a: &Operand, b: &Operand) {
        match (op, ty, b) {
            (BinOp::DivS, Ty::I32 | Ty::I64, Operand::Int(-1)) => {
                return self.bin(BinOp::Sub, ty, &Operand::Int(0), a);
            }
            // The machine traps on the one quotient that does not fit; here it wraps: by -1, the
            // opposite is divided by 1. Without a branch: at each, a compiler hands on all locals.
            (BinOp::DivS, Ty::I32 | Ty::I64, Operand::Reg(_)) => {
                self.bin(BinOp::Sub, ty, &Operand::Int(0), a);
                self.operand(a, ty);
                self.select_if_opposite(b, ty);
                self.operand(&Operand::Int(1), ty);
                self.operand(b, ty);
                self.select_if_opposite(b, ty);
                self.bin_op(op, ty);
                return;
            }
            _ => {}
        }
        self.operand(a, ty);
        self.operand(b, ty);
        self.bin_op(op, ty);
    }

    /// Of the last two values the first, if `divisor` is -1.
    fn select_if_opposite(&mut self, divisor: &Operand, ty: Ty) {
        self.operand(divisor, ty);
        self.operand(&Operand::Int(-1), ty);
        self.cmp(CmpOp::Eq, ty);
        self.code.instructions().select();
    }

    #[rustfmt::skip]
    fn bin_op(&mut self, op: BinOp, ty: Ty) {
        use BinOp::{Add, And, DivS, DivU, Mul, Or, RemS, RemU, Shl, ShrS, ShrU, Sub, Xor};
        let mut code = self.code.instructions();
        match (ty, op) {
            (Ty::I64, Add) => code.i64_add(), (Ty::I64, Sub) => code.i64_sub(),
            (Ty::I64, Mul) => code.i64_mul(), (Ty::I64, DivS) => code.i64_div_s(),
            (Ty::I64, DivU) => code.i64_div_u(), (Ty::I64, RemS) => code.i64_rem_s(),
            (Ty::I64, RemU) => code.i64_rem_u(), (Ty::I64, And) => code.i64_and(),
            (Ty::I64, Or) => code.i64_or(), (Ty::I64, Xor) => code.i64_xor(),
            (Ty::I64, Shl) => code.i64_shl(), (Ty::I64, ShrS) => code.i64_shr_s(),
            (Ty::I64, ShrU) => code.i64_shr_u(),
            (Ty::F32, Add) => code.f32_add(), (Ty::F32, Sub) => code.f32_sub(),
            (Ty::F32, Mul) => code.f32_mul(), (Ty::F32, _) => code.f32_div(),
            (Ty::F64, Add) => code.f64_add(), (Ty::F64, Sub) => code.f64_sub(),
            (Ty::F64, Mul) => code.f64_mul(), (Ty::F64, _) => code.f64_div(),
            (_, Add) => code.i32_add(), (_, Sub) => code.i32_sub(),
            (_, Mul) => code.i32_mul(), (_, DivS) => code.i32_div_s(),
            (_, DivU) => code.i32_div_u(), (_, RemS) => code.i32_rem_s(),
            (_, RemU) => code.i32_rem_u(), (_, And) => code.i32_and(),
            (_, Or) => code.i32_or(), (_, Xor) => code.i32_xor(),
            (_, Shl) => code.i32_shl(), (_, ShrS) => code.i32_shr_s(),
            (_, ShrU) => code.i32_shr_u(),
        };
    }

    #[rustfmt::skip]
    pub(super) fn cmp(&mut self, op: CmpOp, ty: Ty) {
        use CmpOp::{Eq, GeS, GeU, GtS, GtU, LeS, LeU, LtS, LtU, Ne};
        let mut code = self.code.instructions();
        match (ty, op) {
            (Ty::I64, Eq) => code.i64_eq(), (Ty::I64, Ne) => code.i64_ne(),
            (Ty::I64, LtS) => code.i64_lt_s(), (Ty::I64, LtU) => code.i64_lt_u(),
            (Ty::I64, LeS) => code.i64_le_s(), (Ty::I64, LeU) => code.i64_le_u(),
            (Ty::I64, GtS) => code.i64_gt_s(), (Ty::I64, GtU) => code.i64_gt_u(),
            (Ty::I64, GeS) => code.i64_ge_s(), (Ty::I64, GeU) => code.i64_ge_u(),
            (Ty::F32, Eq) => code.f32_eq(), (Ty::F32, Ne) => code.f32_ne(),
            (Ty::F32, LtS | LtU) => code.f32_lt(), (Ty::F32, LeS | LeU) => code.f32_le(),
            (Ty::F32, GtS | GtU) => code.f32_gt(), (Ty::F32, GeS | GeU) => code.f32_ge(),
            (Ty::F64, Eq) => code.f64_eq(), (Ty::F64, Ne) => code.f64_ne(),
            (Ty::F64, LtS | LtU) => code.f64_lt(), (Ty::F64, LeS | LeU) => code.f64_le(),
            (Ty::F64, GtS | GtU) => code.f64_gt(), (Ty::F64, GeS | GeU) => code.f64_ge(),
            (_, Eq) => code.i32_eq(), (_, Ne) => code.i32_ne(),
            (_, LtS) => code.i32_lt_s(), (_, LtU) => code.i32_lt_u(),
            (_, LeS) => code.i32_le_s(), (_, LeU) => code.i32_le_u(),
            (_, GtS) => code.i32_gt_s(), (_, GtU) => code.i32_gt_u(),
            (_, GeS) => code.i32_ge_s(), (_, GeU) => code.i32_ge_u(),
        };
    }

    #[rustfmt::skip]
    pub(super) fn conv(&mut self, op: ConvOp, from: Ty, to: Ty) {
        use ConvOp::{FloatToIntS, FloatToIntU, IntToFloatS, IntToFloatU};
        let mut code = self.code.instructions();
        match (op, from, to) {
            (ConvOp::Sext8, ..) => code.i32_extend8_s(),
            (ConvOp::Zext8, ..) => code.i32_const(0xff).i32_and(),
            (ConvOp::Sext16, ..) => code.i32_extend16_s(),
            (ConvOp::Zext16, ..) => code.i32_const(0xffff).i32_and(),
            (ConvOp::Sext32, ..) => code.i64_extend_i32_s(),
            (ConvOp::Zext32 | ConvOp::PtrToInt, ..) => code.i64_extend_i32_u(),
            (ConvOp::Wrap | ConvOp::IntToPtr, ..) => code.i32_wrap_i64(),
            (IntToFloatS, Ty::I64, Ty::F32) => code.f32_convert_i64_s(),
            (IntToFloatS, _, Ty::F32) => code.f32_convert_i32_s(),
            (IntToFloatS, Ty::I64, _) => code.f64_convert_i64_s(),
            (IntToFloatS, ..) => code.f64_convert_i32_s(),
            (IntToFloatU, Ty::I64, Ty::F32) => code.f32_convert_i64_u(),
            (IntToFloatU, _, Ty::F32) => code.f32_convert_i32_u(),
            (IntToFloatU, Ty::I64, _) => code.f64_convert_i64_u(),
            (IntToFloatU, ..) => code.f64_convert_i32_u(),
            (FloatToIntS, Ty::F32, Ty::I64) => code.i64_trunc_sat_f32_s(),
            (FloatToIntS, Ty::F32, _) => code.i32_trunc_sat_f32_s(),
            (FloatToIntS, _, Ty::I64) => code.i64_trunc_sat_f64_s(),
            (FloatToIntS, ..) => code.i32_trunc_sat_f64_s(),
            (FloatToIntU, Ty::F32, Ty::I64) => code.i64_trunc_sat_f32_u(),
            (FloatToIntU, Ty::F32, _) => code.i32_trunc_sat_f32_u(),
            (FloatToIntU, _, Ty::I64) => code.i64_trunc_sat_f64_u(),
            (FloatToIntU, ..) => code.i32_trunc_sat_f64_u(),
            (ConvOp::FloatToFloat, _, Ty::F32) => code.f32_demote_f64(),
            (ConvOp::FloatToFloat, ..) => code.f64_promote_f32(),
        };
    }
}

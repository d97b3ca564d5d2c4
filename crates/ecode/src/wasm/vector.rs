//! Steps on vectors.

use super::inst::Emitter;
use crate::ir::{BinOp, CmpOp, Lane, Operand, Ty, VecInst};

impl Emitter<'_, '_> {
    pub(super) fn vector(&mut self, inst: &VecInst) {
        match inst {
            VecInst::Splat { lane, dst, src } => {
                self.operand(src, lane.reg());
                let mut code = self.code.instructions();
                match lane {
                    Lane::I8 => code.i8x16_splat(),
                    Lane::I16 => code.i16x8_splat(),
                    Lane::I32 => code.i32x4_splat(),
                    Lane::I64 => code.i64x2_splat(),
                    Lane::F32 => code.f32x4_splat(),
                    Lane::F64 => code.f64x2_splat(),
                };
                self.set(*dst);
            }
            VecInst::Bin { op, lane, dst, a, b } => {
                self.operand(a, Ty::V128);
                self.operand(b, Ty::V128);
                self.vector_bin(*op, *lane);
                self.set(*dst);
            }
            VecInst::Cmp { op, lane, dst, a, b } => {
                self.operand(a, Ty::V128);
                self.operand(b, Ty::V128);
                self.vector_cmp(*op, *lane);
                self.set(*dst);
            }
            VecInst::Select { dst, mask, a, b } => {
                self.operand(a, Ty::V128);
                self.operand(b, Ty::V128);
                self.operand(mask, Ty::V128);
                self.code.instructions().v128_bitselect();
                self.set(*dst);
            }
            VecInst::Shift { op, lane, dst, a, by } => {
                self.operand(a, Ty::V128);
                self.operand(&Operand::Int(i64::from(*by)), Ty::I32);
                self.vector_shift(*op, *lane);
                self.set(*dst);
            }
            VecInst::Shuffle { dst, a, b, bytes } => {
                self.operand(a, Ty::V128);
                self.operand(b, Ty::V128);
                self.code.instructions().i8x16_shuffle(*bytes);
                self.set(*dst);
            }
            VecInst::Load { dst, addr, off, .. } => {
                let arg = self.address(addr, *off);
                self.code.instructions().v128_load(arg);
                self.set(*dst);
            }
            VecInst::LoadWiden { lane, from, signed, dst, addr, off, .. } => {
                let arg = self.address(addr, *off);
                let mut code = self.code.instructions();
                match (lane, from, signed) {
                    (Lane::I16, _, true) => code.v128_load8x8_s(arg),
                    (Lane::I16, _, false) => code.v128_load8x8_u(arg),
                    (Lane::I32, 1, true) => {
                        code.v128_load32_zero(arg);
                        code.i16x8_extend_low_i8x16_s().i32x4_extend_low_i16x8_s()
                    }
                    (Lane::I32, 1, false) => {
                        code.v128_load32_zero(arg);
                        code.i16x8_extend_low_i8x16_u().i32x4_extend_low_i16x8_u()
                    }
                    (Lane::I32, _, true) => code.v128_load16x4_s(arg),
                    (Lane::I32, _, false) => code.v128_load16x4_u(arg),
                    (_, _, true) => code.v128_load32x2_s(arg),
                    (_, _, false) => code.v128_load32x2_u(arg),
                };
                self.set(*dst);
            }
            VecInst::Store { bytes, addr, off, val, .. } => {
                let arg = self.address(addr, *off);
                self.operand(val, Ty::V128);
                let mut code = self.code.instructions();
                match bytes {
                    16 => code.v128_store(arg),
                    8 => code.v128_store64_lane(arg, 0),
                    _ => code.v128_store32_lane(arg, 0),
                };
            }
            VecInst::Extract { lane, index, dst, src } => {
                self.operand(src, Ty::V128);
                let mut code = self.code.instructions();
                match lane {
                    Lane::I64 => code.i64x2_extract_lane(*index),
                    _ => code.i32x4_extract_lane(*index),
                };
                self.set(*dst);
            }
        }
    }

    #[rustfmt::skip]
    fn vector_bin(&mut self, op: BinOp, lane: Lane) {
        use BinOp::{Add, And, Mul, Or, Sub, Xor};
        let mut code = self.code.instructions();
        match (lane, op) {
            (Lane::F32, Add) => code.f32x4_add(), (Lane::F32, Sub) => code.f32x4_sub(),
            (Lane::F32, Mul) => code.f32x4_mul(), (Lane::F32, _) => code.f32x4_div(),
            (Lane::F64, Add) => code.f64x2_add(), (Lane::F64, Sub) => code.f64x2_sub(),
            (Lane::F64, Mul) => code.f64x2_mul(), (Lane::F64, _) => code.f64x2_div(),
            (_, And) => code.v128_and(), (_, Or) => code.v128_or(), (_, Xor) => code.v128_xor(),
            (Lane::I8, Add) => code.i8x16_add(), (Lane::I8, _) => code.i8x16_sub(),
            (Lane::I16, Add) => code.i16x8_add(), (Lane::I16, Sub) => code.i16x8_sub(),
            (Lane::I16, _) => code.i16x8_mul(),
            (Lane::I32, Add) => code.i32x4_add(), (Lane::I32, Sub) => code.i32x4_sub(),
            (Lane::I32, _) => code.i32x4_mul(),
            (Lane::I64, Add) => code.i64x2_add(), (Lane::I64, Sub) => code.i64x2_sub(),
            (Lane::I64, _) => code.i64x2_mul(),
        };
    }

    #[rustfmt::skip]
    fn vector_cmp(&mut self, op: CmpOp, lane: Lane) {
        use CmpOp::{Eq, GeS, GeU, GtS, GtU, LeS, LeU, LtS, LtU, Ne};
        let mut code = self.code.instructions();
        match (lane, op) {
            (Lane::I8, Eq) => code.i8x16_eq(), (Lane::I8, Ne) => code.i8x16_ne(),
            (Lane::I8, LtS) => code.i8x16_lt_s(), (Lane::I8, LtU) => code.i8x16_lt_u(),
            (Lane::I8, LeS) => code.i8x16_le_s(), (Lane::I8, LeU) => code.i8x16_le_u(),
            (Lane::I8, GtS) => code.i8x16_gt_s(), (Lane::I8, GtU) => code.i8x16_gt_u(),
            (Lane::I8, GeS) => code.i8x16_ge_s(), (Lane::I8, GeU) => code.i8x16_ge_u(),
            (Lane::I16, Eq) => code.i16x8_eq(), (Lane::I16, Ne) => code.i16x8_ne(),
            (Lane::I16, LtS) => code.i16x8_lt_s(), (Lane::I16, LtU) => code.i16x8_lt_u(),
            (Lane::I16, LeS) => code.i16x8_le_s(), (Lane::I16, LeU) => code.i16x8_le_u(),
            (Lane::I16, GtS) => code.i16x8_gt_s(), (Lane::I16, GtU) => code.i16x8_gt_u(),
            (Lane::I16, GeS) => code.i16x8_ge_s(), (Lane::I16, GeU) => code.i16x8_ge_u(),
            (Lane::I64, Eq) => code.i64x2_eq(), (Lane::I64, Ne) => code.i64x2_ne(),
            (Lane::I64, LtS | LtU) => code.i64x2_lt_s(), (Lane::I64, LeS | LeU) => code.i64x2_le_s(),
            (Lane::I64, GtS | GtU) => code.i64x2_gt_s(), (Lane::I64, GeS | GeU) => code.i64x2_ge_s(),
            (_, Eq) => code.i32x4_eq(), (_, Ne) => code.i32x4_ne(),
            (_, LtS) => code.i32x4_lt_s(), (_, LtU) => code.i32x4_lt_u(),
            (_, LeS) => code.i32x4_le_s(), (_, LeU) => code.i32x4_le_u(),
            (_, GtS) => code.i32x4_gt_s(), (_, GtU) => code.i32x4_gt_u(),
            (_, GeS) => code.i32x4_ge_s(), (_, GeU) => code.i32x4_ge_u(),
        };
    }

    #[rustfmt::skip]
    fn vector_shift(&mut self, op: BinOp, lane: Lane) {
        use BinOp::{Shl, ShrS};
        let mut code = self.code.instructions();
        match (lane, op) {
            (Lane::I8, Shl) => code.i8x16_shl(), (Lane::I8, ShrS) => code.i8x16_shr_s(),
            (Lane::I8, _) => code.i8x16_shr_u(),
            (Lane::I16, Shl) => code.i16x8_shl(), (Lane::I16, ShrS) => code.i16x8_shr_s(),
            (Lane::I16, _) => code.i16x8_shr_u(),
            (Lane::I64, Shl) => code.i64x2_shl(), (Lane::I64, ShrS) => code.i64x2_shr_s(),
            (Lane::I64, _) => code.i64x2_shr_u(),
            (_, Shl) => code.i32x4_shl(), (_, ShrS) => code.i32x4_shr_s(),
            (_, _) => code.i32x4_shr_u(),
        };
    }
}

//! Steps on vectors.

use super::{flow::Flow, inst::condition, unit::flags};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use ecode::ir::{BinOp, Lane, Operand, Ty, VecInst};

fn vector_type(lane: Lane) -> Type {
    match lane {
        Lane::I8 => types::I8X16,
        Lane::I16 => types::I16X8,
        Lane::I32 => types::I32X4,
        Lane::I64 => types::I64X2,
        Lane::F32 => types::F32X4,
        Lane::F64 => types::F64X2,
    }
}

impl Flow<'_, '_> {
    pub(super) fn vector(&mut self, inst: &VecInst) {
        let (dst, value) = match inst {
            VecInst::Splat { lane, dst, src } => {
                let mut src = self.operand(src, lane.reg());
                let ty = vector_type(*lane);
                if matches!(lane, Lane::I8 | Lane::I16) {
                    src = self.b.ins().ireduce(ty.lane_type(), src);
                }
                (*dst, self.b.ins().splat(ty, src))
            }
            VecInst::Bin { op, lane, dst, a, b } => {
                let (a, b) = (self.lanes(a, *lane), self.lanes(b, *lane));
                // Of whole numbers, the operations that vectors have are the same for every width.
                let ty = match lane {
                    Lane::F32 | Lane::F64 => Ty::F64,
                    _ => Ty::I64,
                };
                (*dst, self.bin(*op, ty, a, b))
            }
            VecInst::Cmp { op, lane, dst, a, b } => {
                let (a, b) = (self.lanes(a, *lane), self.lanes(b, *lane));
                (*dst, self.b.ins().icmp(condition(*op), a, b))
            }
            VecInst::Select { dst, mask, a, b } => {
                let mask = self.lanes(mask, Lane::I8);
                let (a, b) = (self.lanes(a, Lane::I8), self.lanes(b, Lane::I8));
                (*dst, self.b.ins().bitselect(mask, a, b))
            }
            VecInst::Shift { op, lane, dst, a, by } => {
                let a = self.lanes(a, *lane);
                let by = self.b.ins().iconst(types::I32, i64::from(*by));
                let value = match op {
                    BinOp::Shl => self.b.ins().ishl(a, by),
                    BinOp::ShrS => self.b.ins().sshr(a, by),
                    _ => self.b.ins().ushr(a, by),
                };
                (*dst, value)
            }
            VecInst::Shuffle { dst, a, b, bytes } => {
                let (a, b) = (self.lanes(a, Lane::I8), self.lanes(b, Lane::I8));
                let mask = self.b.func.dfg.immediates.push(bytes.as_slice().into());
                (*dst, self.b.ins().shuffle(a, b, mask))
            }
            VecInst::Load { dst, addr, off, .. } => {
                let (base, off) = self.address(addr, *off);
                (*dst, self.b.ins().load(types::I8X16, flags(), base, off))
            }
            VecInst::LoadWiden { lane, from, signed, dst, addr, off, .. } => {
                let (base, off) = self.address(addr, *off);
                (*dst, self.load_widen(*lane, *from, *signed, base, off))
            }
            VecInst::Store { bytes, addr, off, val, .. } => {
                let (base, off) = self.address(addr, *off);
                let val = match bytes {
                    16 => self.lanes(val, Lane::I8),
                    8 => self.first_lane(val, Lane::I64),
                    _ => self.first_lane(val, Lane::I32),
                };
                self.b.ins().store(flags(), val, base, off);
                return;
            }
            VecInst::Extract { lane, index, dst, src } => {
                let src = self.lanes(src, *lane);
                let value = self.b.ins().extractlane(src, *index);
                return self.set(*dst, value);
            }
        };
        let bytes = self.cast(value, types::I8X16);
        self.set(dst, bytes);
    }

    fn cast(&mut self, value: Value, to: Type) -> Value {
        if self.b.func.dfg.value_type(value) == to {
            return value;
        }
        self.b.ins().bitcast(to, flags(), value)
    }

    fn lanes(&mut self, operand: &Operand, lane: Lane) -> Value {
        let value = self.operand(operand, Ty::V128);
        self.cast(value, vector_type(lane))
    }

    fn first_lane(&mut self, operand: &Operand, lane: Lane) -> Value {
        let value = self.lanes(operand, lane);
        self.b.ins().extractlane(value, 0)
    }

    fn load_widen(&mut self, lane: Lane, from: u64, signed: bool, base: Value, off: i32) -> Value {
        match (lane, from, signed) {
            (Lane::I16, _, true) => self.b.ins().sload8x8(flags(), base, off),
            (Lane::I16, _, false) => self.b.ins().uload8x8(flags(), base, off),
            (Lane::I32, 1, _) => {
                let four = self.b.ins().load(types::I32, flags(), base, off);
                let low = self.b.ins().scalar_to_vector(types::I32X4, four);
                let low = self.cast(low, types::I8X16);
                match signed {
                    true => {
                        let low = self.b.ins().swiden_low(low);
                        self.b.ins().swiden_low(low)
                    }
                    false => {
                        let low = self.b.ins().uwiden_low(low);
                        self.b.ins().uwiden_low(low)
                    }
                }
            }
            (Lane::I32, _, true) => self.b.ins().sload16x4(flags(), base, off),
            (Lane::I32, _, false) => self.b.ins().uload16x4(flags(), base, off),
            (_, _, true) => self.b.ins().sload32x2(flags(), base, off),
            (_, _, false) => self.b.ins().uload32x2(flags(), base, off),
        }
    }
}

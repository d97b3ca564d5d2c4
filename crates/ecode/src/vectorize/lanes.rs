//! The vector form of the loop's steps.

use super::{
    analyse::size,
    emit::{Emitter, Pass},
    plan::{Access, Role},
};
use crate::ir::{BinOp, ConvOp, Inst, Lane, MemTy, Operand, Reg, Ty, VecInst};

impl Emitter<'_> {
    /// The vector form of a step.
    pub(super) fn lanes(&mut self, inst: &Inst, role: Role, pass: &mut Pass) {
        let value = match (inst, role) {
            (Inst::Copy { src, .. } | Inst::Conv { src, .. }, Role::Same) => pass.now(src),
            (Inst::Load { .. }, Role::Access(access)) => self.load(access, pass),
            (Inst::Store { mem, val, .. }, Role::Access(access)) => {
                let val = self.vector(val, mem.reg(), pass);
                return self.store(access, val, pass);
            }
            (Inst::Bin { ty, a, b, .. }, Role::Sum(sum)) => {
                let added = if *a == Operand::Reg(sum) { b } else { a };
                let added = self.vector(added, *ty, pass);
                let lanes = self.sums.iter().find(|own| own.0 == sum).map(|own| own.1);
                let (lane, lanes) = (self.lane(*ty), lanes.unwrap_or(sum));
                let (op, a) = (BinOp::Add, Operand::Reg(lanes));
                self.code.push(Inst::Vec(VecInst::Bin { op, lane, dst: lanes, a, b: added }));
                return;
            }
            (Inst::Cmp { dst, ty, a, b, .. }, Role::Compare(compare)) => {
                let (a, b) = (self.vector(a, *ty, pass), self.vector(b, *ty, pass));
                let (op, lane) = (compare.of_lanes(self.plan.width), self.lane(*ty));
                let mask = self.reg(Ty::V128);
                self.code.push(Inst::Vec(VecInst::Cmp { op, lane, dst: mask, a, b }));
                pass.masks.insert(*dst, Operand::Reg(mask));
                let one = self.vector(&Operand::Int(1), *ty, pass);
                self.vector_bin(BinOp::And, lane, Operand::Reg(mask), one)
            }
            (Inst::Select { ty, cond: Operand::Reg(cond), a, b, .. }, Role::Select) => {
                let (a, b) = (self.vector(a, *ty, pass), self.vector(b, *ty, pass));
                // INVARIANT: the analysis lets through only what a comparison has given.
                let mask = pass.masks.get(cond).copied().unwrap_or(Operand::Reg(*cond));
                let dst = self.reg(Ty::V128);
                self.code.push(Inst::Vec(VecInst::Select { dst, mask, a, b }));
                Operand::Reg(dst)
            }
            (Inst::Bin { op: BinOp::Shl, ty, a, b, .. }, _) => {
                self.shift(BinOp::Shl, *ty, a, b, pass)
            }
            (Inst::Bin { ty, a, b, .. }, Role::ShiftRight { zeros }) => {
                let op = if zeros { BinOp::ShrU } else { BinOp::ShrS };
                self.shift(op, *ty, a, b, pass)
            }
            (Inst::Bin { op, ty, a, b, .. }, Role::Lanes) => match (op, self.lane(*ty), a, b) {
                (BinOp::Mul, Lane::I8, number, Operand::Int(by))
                | (BinOp::Mul, Lane::I8, Operand::Int(by), number) => {
                    let number = self.vector(number, *ty, pass);
                    self.multiple(number, *by)
                }
                (_, lane, ..) => {
                    let (a, b) = (self.vector(a, *ty, pass), self.vector(b, *ty, pass));
                    self.vector_bin(*op, lane, a, b)
                }
            },
            _ => return,
        };
        if let Some((reg, _)) = inst.result() {
            pass.map.insert(reg, value);
        }
    }

    fn lane(&self, ty: Ty) -> Lane {
        match (ty, self.plan.width) {
            (Ty::F32, _) => Lane::F32,
            (Ty::F64, _) => Lane::F64,
            (_, 1) => Lane::I8,
            (_, 2) => Lane::I16,
            (_, 4) => Lane::I32,
            _ => Lane::I64,
        }
    }

    fn vector_bin(&mut self, op: BinOp, lane: Lane, a: Operand, b: Operand) -> Operand {
        let dst = self.reg(Ty::V128);
        self.code.push(Inst::Vec(VecInst::Bin { op, lane, dst, a, b }));
        Operand::Reg(dst)
    }

    /// `number * by` of bytes, for a positive `by`: the machine multiplies no bytes.
    fn multiple(&mut self, number: Operand, by: i64) -> Operand {
        let (mut power, mut sum) = (number, None);
        for bit in 0..=by.ilog2() {
            if by >> bit & 1 != 0 {
                sum = Some(match sum {
                    Some(sum) => self.vector_bin(BinOp::Add, Lane::I8, sum, power),
                    None => power,
                });
            }
            if by >> (bit + 1) != 0 {
                power = self.vector_bin(BinOp::Add, Lane::I8, power, power);
            }
        }
        sum.unwrap_or(number)
    }

    fn shift(&mut self, op: BinOp, ty: Ty, a: &Operand, b: &Operand, pass: &Pass) -> Operand {
        let (lane, a) = (self.lane(ty), self.vector(a, ty, pass));
        let mask = if ty == Ty::I64 { 63 } else { 31 };
        // INVARIANT: the analysis lets constants through only.
        let by = if let Operand::Int(by) = b { (by & mask) as u32 } else { 0 };
        let dst = self.reg(Ty::V128);
        self.code.push(Inst::Vec(VecInst::Shift { op, lane, dst, a, by }));
        Operand::Reg(dst)
    }

    /// An operand of type `ty` as a vector.
    fn vector(&mut self, operand: &Operand, ty: Ty, pass: &Pass) -> Operand {
        let mut src = pass.now(operand);
        if let Operand::Reg(reg) = src
            && self.body.regs[reg.0 as usize] == Ty::V128
        {
            return src;
        }
        let lane = self.lane(ty);
        if !matches!(src, Operand::Int(_)) {
            src = match (ty, lane.reg()) {
                (Ty::I32, Ty::I64) => self.conv(ConvOp::Sext32, Ty::I32, Ty::I64, src),
                (Ty::I64, Ty::I32) => self.conv(ConvOp::Wrap, Ty::I64, Ty::I32, src),
                _ => src,
            };
        }
        let dst = self.reg(Ty::V128);
        self.code.push(Inst::Vec(VecInst::Splat { lane, dst, src }));
        Operand::Reg(dst)
    }

    fn load(&mut self, index: usize, pass: &mut Pass) -> Operand {
        let access = self.plan.accesses[index];
        let bytes = size(access.mem);
        if access.step != bytes {
            return self.load_apart(index, pass);
        }
        let (addr, off, at) = (pass.addresses[index], access.off, self.insts[access.inst].at());
        let dst = self.reg(Ty::V128);
        let lane = self.lane(access.mem.reg());
        let from = bytes as u64;
        let signed = !matches!(access.mem, MemTy::U8 | MemTy::U16);
        self.code.push(Inst::Vec(match from == self.plan.width {
            true => VecInst::Load { dst, addr, off, at },
            false => VecInst::LoadWiden { lane, from, signed, dst, addr, off, at },
        }));
        Operand::Reg(dst)
    }

    /// Cells with others between them: all are read, once for all accesses to them, and those
    /// wanted are picked.
    fn load_apart(&mut self, index: usize, pass: &mut Pass) -> Operand {
        let access = self.plan.accesses[index];
        let (Some(root), bytes) = (access.root, size(access.mem)) else {
            return Operand::Int(0);
        };
        let alike = |other: &Access| {
            let same = other.root.is_some_and(|its| its.is_beside(root));
            same && !other.is_store && other.step == access.step
        };
        let group = self.plan.accesses.iter().position(alike);
        let group = group.unwrap_or(index);
        let offsets =
            self.plan.accesses.iter().filter(|other| alike(other)).filter_map(|other| other.root);
        let first = offsets.map(|root| root.off).min().unwrap_or(root.off);
        if !pass.groups.iter().any(|known| known.0 == group) {
            let start = access.off + (first - root.off);
            let mut all = Vec::new();
            for part in 0..access.step / bytes {
                let dst = self.reg(Ty::V128);
                let (addr, off) = (pass.addresses[index], start + 16 * part);
                let at = self.insts[access.inst].at();
                self.code.push(Inst::Vec(VecInst::Load { dst, addr, off, at }));
                all.push(Operand::Reg(dst));
            }
            pass.groups.push((group, first, all));
        }
        let known = pass.groups.iter().find(|known| known.0 == group);
        let all = known.map_or_else(Vec::new, |known| known.2.clone());
        let wanted: Vec<i64> =
            (0..16).map(|at| (root.off - first) + at / bytes * access.step + at % bytes).collect();
        self.pick(&all, &wanted)
    }

    /// The bytes that `wanted` numbers, of the vectors in `all`.
    fn pick(&mut self, all: &[Operand], wanted: &[i64]) -> Operand {
        let mut picked = all[0];
        for (part, next) in all.iter().enumerate().skip(1) {
            let start = 16 * part as i64;
            let bytes = std::array::from_fn(|at| match wanted[at] {
                byte if (start..start + 16).contains(&byte) => (16 + byte - start) as u8,
                // Before the first step the bytes lie where they were read.
                byte if part == 1 && byte < 16 => byte as u8,
                _ => at as u8,
            });
            let dst = self.reg(Ty::V128);
            self.code.push(Inst::Vec(VecInst::Shuffle { dst, a: picked, b: *next, bytes }));
            picked = Operand::Reg(dst);
        }
        picked
    }

    fn store(&mut self, index: usize, val: Operand, pass: &Pass) {
        let access = self.plan.accesses[index];
        let (bytes, width) = (size(access.mem) as u64, self.plan.width);
        let mut val = val;
        if bytes < width {
            let pick = |at: usize| (at as u64 / bytes * width + at as u64 % bytes) % 16;
            let dst = self.reg(Ty::V128);
            let bytes = std::array::from_fn(|at| pick(at) as u8);
            self.code.push(Inst::Vec(VecInst::Shuffle { dst, a: val, b: val, bytes }));
            val = Operand::Reg(dst);
        }
        let (addr, off) = (pass.addresses[index], access.off);
        let (bytes, at) = (bytes * self.lanes as u64, self.insts[access.inst].at());
        self.code.push(Inst::Vec(VecInst::Store { bytes, addr, off, val, at }));
    }

    pub(super) fn add_up(&mut self, sum: Reg, lanes: Reg) {
        let ty = self.body.regs[sum.0 as usize];
        let lane = self.lane(ty);
        for index in 0..self.lanes as u8 {
            let dst = self.reg(ty);
            let src = Operand::Reg(lanes);
            self.code.push(Inst::Vec(VecInst::Extract { lane, index, dst, src }));
            let next = self.bin(BinOp::Add, ty, Operand::Reg(sum), Operand::Reg(dst));
            self.code.push(Inst::Copy { ty, dst: sum, src: next });
        }
    }
}

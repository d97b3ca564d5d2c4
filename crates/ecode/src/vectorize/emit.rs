//! The blocks of a vector loop, or of one that is unrolled.

use super::{
    analyse::{distance, size},
    fixed,
    plan::{Access, Kind, Plan, Role},
};
use crate::ir::{
    At, BinOp, Block, BlockId, Body, CmpOp, ConvOp, Inst, Lane, Operand, Reg, Term, Ty, VecInst,
};
use std::collections::HashMap;

/// Vectors between two looks of the deadline's counter.
const STRIP: i64 = 512;

/// Puts the loop of `plan`, whose steps are `insts`, before that with the head `id`, to which
/// `latch` leads back.
pub(super) fn emit(body: &mut Body, id: BlockId, latch: BlockId, insts: &[Inst], plan: &Plan) {
    let iterations = if id == latch { fixed::iterations(body, id, plan) } else { None };
    let lanes = plan.iterations();
    let mut out = Emitter { body, insts, plan, lanes, sums: Vec::new(), code: Vec::new() };
    for sum in &plan.sums {
        let lanes = out.reg(Ty::V128);
        out.sums.push((*sum, lanes));
    }
    let outer = match iterations {
        Some(iterations) => out.spelled_out(iterations),
        None => out.outer(id),
    };
    for (index, block) in body.blocks.iter_mut().enumerate() {
        let own = index == latch.0 as usize || index >= outer.0 as usize;
        if !own {
            block.term.retarget(|to| if to == id { outer } else { to });
        }
    }
    if id == BlockId(0) {
        // The entry stays the first block.
        let first = body.blocks.len() as u32;
        let entry = Block { insts: Vec::new(), term: Term::Jump(outer) };
        let old = std::mem::replace(&mut body.blocks[0], entry);
        body.blocks.push(old);
        for block in &mut body.blocks[1..] {
            block.term.retarget(|to| if to == id { BlockId(first) } else { to });
        }
    }
}

/// Values of one pass over the loop's steps.
pub(super) struct Pass {
    /// What the registers that the loop assigns are now.
    pub(super) map: HashMap<Reg, Operand>,
    /// By access: its address.
    pub(super) addresses: Vec<Operand>,
    /// What comparisons gave: all bits of a lane.
    pub(super) masks: HashMap<Reg, Operand>,
    widened: Vec<Operand>,
    test: (Operand, Operand),
    /// Vectors that hold what lies between cells, by the access that was met first.
    pub(super) groups: Vec<(usize, i64, Vec<Operand>)>,
}

pub(super) struct Emitter<'b> {
    pub(super) body: &'b mut Body,
    pub(super) insts: &'b [Inst],
    pub(super) plan: &'b Plan,
    /// Iterations of the old loop in one of the new: lanes of a vector.
    pub(super) lanes: i64,
    /// Running sums, and the vectors that they are added up in.
    pub(super) sums: Vec<(Reg, Reg)>,
    pub(super) code: Vec<Inst>,
}

impl Emitter<'_> {
    pub(super) fn reg(&mut self, ty: Ty) -> Reg {
        self.body.regs.push(ty);
        Reg(self.body.regs.len() as u32 - 1)
    }

    pub(super) fn bin(&mut self, op: BinOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.reg(ty);
        self.code.push(Inst::Bin { op, ty, dst, a, b, at: At::NOWHERE });
        Operand::Reg(dst)
    }

    fn cmp(&mut self, op: CmpOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.reg(Ty::I32);
        self.code.push(Inst::Cmp { op, ty, dst, a, b });
        Operand::Reg(dst)
    }

    pub(super) fn conv(&mut self, op: ConvOp, from: Ty, to: Ty, src: Operand) -> Operand {
        let dst = self.reg(to);
        self.code.push(Inst::Conv { op, from, to, dst, src });
        Operand::Reg(dst)
    }

    /// Ends a block that is begun by what was emitted since the last one.
    fn block(&mut self, term: Term) -> BlockId {
        let insts = std::mem::take(&mut self.code);
        self.body.blocks.push(Block { insts, term });
        BlockId(self.body.blocks.len() as u32 - 1)
    }

    /// All blocks; returns the first.
    fn outer(&mut self, scalar: BlockId) -> BlockId {
        let first = self.body.blocks.len() as u32;
        let at = |place: u32| BlockId(first + place);
        let (count, cap, check, spend, vector, after) = (at(1), at(2), at(3), at(4), at(5), at(6));
        let branch = |cond, then, other| Term::Branch { cond, then, other };

        let pass = self.pass(false);
        let (goes_on, iterations) = self.iterations(&pass);
        let outer = self.block(branch(goes_on, count, scalar));

        let left = self.reg(Ty::I64);
        let shift = Operand::Int(i64::from(self.lanes.trailing_zeros()));
        let whole = self.bin(BinOp::ShrU, Ty::I64, iterations, shift);
        self.code.push(Inst::Copy { ty: Ty::I64, dst: left, src: whole });
        let many = self.cmp(CmpOp::GtU, Ty::I64, whole, Operand::Int(STRIP));
        self.block(branch(many, cap, check));

        self.code.push(Inst::Copy { ty: Ty::I64, dst: left, src: Operand::Int(STRIP) });
        self.block(Term::Jump(check));

        let fits = self.check(&pass, Operand::Reg(left));
        self.block(branch(fits, spend, scalar));

        // Unrolled iterations take the time of as many iterations, those at once that of one.
        let spent = match self.plan.kind {
            Kind::Vectors => Operand::Reg(left),
            Kind::Unrolled(_) => {
                self.bin(BinOp::Mul, Ty::I64, Operand::Reg(left), Operand::Int(self.lanes))
            }
        };
        let fuel = self.conv(ConvOp::Wrap, Ty::I64, Ty::I32, spent);
        self.code.push(Inst::Spend { fuel });
        for (_, lanes) in self.sums.clone() {
            let splat = VecInst::Splat { lane: Lane::I32, dst: lanes, src: Operand::Int(0) };
            self.code.push(Inst::Vec(splat));
        }
        self.block(Term::Jump(vector));

        self.code.push(Inst::Spent);
        self.iteration();
        let next = self.bin(BinOp::Sub, Ty::I64, Operand::Reg(left), Operand::Int(1));
        self.code.push(Inst::Copy { ty: Ty::I64, dst: left, src: next });
        let more = self.cmp(CmpOp::Ne, Ty::I64, Operand::Reg(left), Operand::Int(0));
        self.block(branch(more, vector, after));

        for (sum, lanes) in self.sums.clone() {
            self.add_up(sum, lanes);
        }
        self.block(Term::Jump(outer));
        outer
    }

    /// The loop's scalar steps for the first of the next iterations; with `vectors`, all of them.
    fn pass(&mut self, vectors: bool) -> Pass {
        let nowhere = Operand::Int(0);
        let mut pass = Pass {
            map: HashMap::new(),
            masks: HashMap::new(),
            addresses: vec![nowhere; self.plan.accesses.len()],
            widened: vec![nowhere; self.plan.widened.len()],
            test: (nowhere, nowhere),
            groups: Vec::new(),
        };
        for (at, inst) in self.insts.iter().enumerate() {
            self.note(at, &mut pass);
            let role = self.plan.roles[at];
            if role == Role::Scalar {
                self.scalar(inst, &mut pass);
            } else if vectors {
                self.lanes(inst, role, &mut pass);
            }
        }
        pass
    }

    /// Takes note of the operands, as they are now, that other blocks need.
    fn note(&self, at: usize, pass: &mut Pass) {
        let plan = self.plan;
        for (index, access) in plan.accesses.iter().enumerate().filter(|(_, a)| a.inst == at) {
            pass.addresses[index] = pass.now(&access.addr);
        }
        for (index, widened) in plan.widened.iter().enumerate().filter(|(_, w)| w.inst == at) {
            pass.widened[index] = pass.now(&widened.value);
        }
        if plan.test.inst == at {
            pass.test = (pass.now(&plan.test.value), pass.now(&plan.test.bound));
        }
    }

    fn scalar(&mut self, inst: &Inst, pass: &mut Pass) {
        let mut inst = inst.clone();
        inst.operands_mut(&mut |operand| *operand = pass.now(operand));
        let Some((old, _)) = inst.result() else { return };
        let new = self.reg(self.body.regs[old.0 as usize]);
        inst.set_result(new);
        pass.map.insert(old, Operand::Reg(new));
        self.code.push(inst);
    }

    /// Whether the loop goes on after this iteration, and after how many iterations at least it
    /// still does.
    fn iterations(&mut self, pass: &Pass) -> (Operand, Operand) {
        use CmpOp::{GeS, GtS, GtU, LeS, LtS, LtU};
        let test = self.plan.test;
        let (value, bound) = pass.test;
        let signed = matches!(test.op, LtS | LeS | GtS | GeS);
        let (from, to) = (self.wide(value, test.ty, signed), self.wide(bound, test.ty, signed));
        let up = test.step > 0;
        let op = match test.op {
            CmpOp::Ne if up => LtU,
            CmpOp::Ne => GtU,
            op => op,
        };
        let goes_on = self.cmp(op, Ty::I64, from, to);
        let (less, more) = if up { (from, to) } else { (to, from) };
        let mut left = self.bin(BinOp::Sub, Ty::I64, more, less);
        if matches!(test.op, LtS | LtU | GtS | GtU) {
            left = self.bin(BinOp::Sub, Ty::I64, left, Operand::Int(1));
        }
        if test.step.unsigned_abs() > 1 {
            let step = Operand::Int(test.step.wrapping_abs());
            left = self.bin(BinOp::DivU, Ty::I64, left, step);
        }
        if test.op != CmpOp::Ne {
            left = self.bin(BinOp::Add, Ty::I64, left, Operand::Int(1));
        }
        (goes_on, left)
    }

    /// `value` with 64 bits.
    fn wide(&mut self, value: Operand, ty: Ty, signed: bool) -> Operand {
        match ty {
            Ty::I32 if signed => self.conv(ConvOp::Sext32, Ty::I32, Ty::I64, value),
            Ty::I32 => self.conv(ConvOp::Zext32, Ty::I32, Ty::I64, value),
            Ty::Ptr => self.conv(ConvOp::PtrToInt, Ty::Ptr, Ty::I64, value),
            _ => value,
        }
    }

    /// Whether `vectors` (1 or more) iterations can be done by vectors.
    fn check(&mut self, pass: &Pass, vectors: Operand) -> Operand {
        let mut fits = self.cmp(CmpOp::Ne, Ty::I64, vectors, Operand::Int(0));
        let iterations = self.bin(BinOp::Mul, Ty::I64, vectors, Operand::Int(self.lanes));
        for (widened, value) in self.plan.widened.iter().zip(&pass.widened) {
            let from = self.wide(*value, Ty::I32, widened.signed);
            let by = self.bin(BinOp::Mul, Ty::I64, iterations, Operand::Int(widened.step));
            let end = self.bin(BinOp::Add, Ty::I64, from, by);
            let (least, most) = match widened.signed {
                true => (i64::from(i32::MIN), i64::from(i32::MAX)),
                false => (0, i64::from(u32::MAX)),
            };
            let below = self.cmp(CmpOp::LeS, Ty::I64, end, Operand::Int(most));
            let above = self.cmp(CmpOp::GeS, Ty::I64, end, Operand::Int(least));
            let both = self.bin(BinOp::And, Ty::I32, below, above);
            fits = self.bin(BinOp::And, Ty::I32, fits, both);
        }
        let accesses = &self.plan.accesses;
        for (index, store) in accesses.iter().enumerate().filter(|(_, access)| access.is_store) {
            for (other_index, other) in accesses.iter().enumerate() {
                let twice = other.is_store && other_index <= index;
                if twice || distance(store, other).is_some() {
                    continue;
                }
                let (own, its) = (pass.addresses[index], pass.addresses[other_index]);
                let before = other_index < index && !other.is_store && other.step == store.step;
                let disjoint = self.disjoint((store, own), (other, its), iterations, before);
                fits = self.bin(BinOp::And, Ty::I32, fits, disjoint);
            }
        }
        fits
    }

    /// Whether what `store` writes in `iterations` iterations and what `other` uses in them do not
    /// overlap, or only so that it does not matter.
    fn disjoint(
        &mut self,
        (store, own): (&Access, Operand),
        (other, its): (&Access, Operand),
        iterations: Operand,
        load_comes_first: bool,
    ) -> Operand {
        let (own, own_bytes) = self.range(store, own, iterations);
        let (its, its_bytes) = self.range(other, its, iterations);
        let ahead = self.bin(BinOp::Sub, Ty::I64, its, own);
        let behind = self.bin(BinOp::Sub, Ty::I64, own, its);
        let first = match load_comes_first {
            // Iterations only read what later ones write.
            true => self.cmp(CmpOp::GeU, Ty::I64, its, own),
            false => self.cmp(CmpOp::GeU, Ty::I64, ahead, own_bytes),
        };
        let second = self.cmp(CmpOp::GeU, Ty::I64, behind, its_bytes);
        let op = if load_comes_first { BinOp::Or } else { BinOp::And };
        self.bin(op, Ty::I32, first, second)
    }

    /// Where an access begins, and how many bytes it spans.
    fn range(&mut self, access: &Access, addr: Operand, iterations: Operand) -> (Operand, Operand) {
        let addr = self.wide(addr, Ty::Ptr, false);
        let start = self.bin(BinOp::Add, Ty::I64, addr, Operand::Int(access.off));
        let steps = self.bin(BinOp::Mul, Ty::I64, iterations, Operand::Int(access.step));
        let bytes = self.bin(BinOp::Add, Ty::I64, steps, Operand::Int(size(access.mem)));
        (start, bytes)
    }

    /// One iteration of the vector loop.
    pub(super) fn iteration(&mut self) {
        match &self.plan.kind {
            Kind::Vectors => drop(self.pass(true)),
            Kind::Unrolled(unrolled) => self.unrolled(unrolled),
        }
        for (reg, step) in &self.plan.inductions {
            let (ty, by) = (self.body.regs[reg.0 as usize], step.wrapping_mul(self.lanes));
            let next = match ty {
                Ty::Ptr => {
                    let dst = self.reg(Ty::Ptr);
                    let (base, index) = (Operand::Reg(*reg), Operand::Int(by));
                    self.code.push(Inst::PtrAdd { dst, base, index, index_ty: Ty::I64, scale: 1 });
                    Operand::Reg(dst)
                }
                _ => self.bin(BinOp::Add, ty, Operand::Reg(*reg), Operand::Int(by)),
            };
            self.code.push(Inst::Copy { ty, dst: *reg, src: next });
        }
    }
}

impl Pass {
    pub(super) fn now(&self, operand: &Operand) -> Operand {
        match operand {
            Operand::Reg(reg) => self.map.get(reg).copied().unwrap_or(*operand),
            other => *other,
        }
    }
}

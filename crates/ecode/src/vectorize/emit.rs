//! The blocks of a vector loop.

use super::{
    STRIP,
    analyse::{Access, Plan, Role, distance, size},
};
use crate::ir::{
    BinOp, Block, BlockId, Body, CmpOp, ConvOp, Inst, Lane, MemTy, Operand, Reg, Term, Ty, VecInst,
};
use std::collections::HashMap;

/// Puts a vector loop before the loop at `id`.
pub(super) fn emit(body: &mut Body, id: BlockId, plan: &Plan) {
    let insts = body.blocks[id.0 as usize].insts.clone();
    let lanes = 16 / plan.width as i64;
    let mut out = Emitter { body, insts: &insts, plan, lanes, sums: Vec::new(), code: Vec::new() };
    for sum in &plan.sums {
        let lanes = out.reg(Ty::V128);
        out.sums.push((*sum, lanes));
    }
    let outer = out.outer(id);
    for (index, block) in body.blocks.iter_mut().enumerate() {
        let own = index == id.0 as usize || index >= outer.0 as usize;
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

/// Values of one walk over the loop's steps.
struct Walk {
    /// What the registers that the loop assigns are now.
    map: HashMap<Reg, Operand>,
    /// By access: its address.
    addresses: Vec<Operand>,
    widened: Vec<Operand>,
    test: (Operand, Operand),
    /// Vectors that hold what lies between cells, by the access that was met first.
    groups: Vec<(usize, i64, Vec<Operand>)>,
}

struct Emitter<'b> {
    body: &'b mut Body,
    insts: &'b [Inst],
    plan: &'b Plan,
    /// Lanes of a vector.
    lanes: i64,
    /// Running sums, and the vectors that they are added up in.
    sums: Vec<(Reg, Reg)>,
    code: Vec<Inst>,
}

impl Emitter<'_> {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.body.regs.push(ty);
        Reg(self.body.regs.len() as u32 - 1)
    }

    fn bin(&mut self, op: BinOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.reg(ty);
        self.code.push(Inst::Bin { op, ty, dst, a, b });
        Operand::Reg(dst)
    }

    fn cmp(&mut self, op: CmpOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.reg(Ty::I32);
        self.code.push(Inst::Cmp { op, ty, dst, a, b });
        Operand::Reg(dst)
    }

    fn conv(&mut self, op: ConvOp, from: Ty, to: Ty, src: Operand) -> Operand {
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

        let walk = self.walk(false);
        let (goes_on, turns) = self.turns(&walk);
        let outer = self.block(branch(goes_on, count, scalar));

        let left = self.reg(Ty::I64);
        let shift = Operand::Int(i64::from(self.lanes.trailing_zeros()));
        let whole = self.bin(BinOp::ShrU, Ty::I64, turns, shift);
        self.code.push(Inst::Copy { ty: Ty::I64, dst: left, src: whole });
        let many = self.cmp(CmpOp::GtU, Ty::I64, whole, Operand::Int(STRIP));
        self.block(branch(many, cap, check));

        self.code.push(Inst::Copy { ty: Ty::I64, dst: left, src: Operand::Int(STRIP) });
        self.block(Term::Jump(check));

        let fits = self.check(&walk, Operand::Reg(left));
        self.block(branch(fits, spend, scalar));

        let turns = self.conv(ConvOp::Wrap, Ty::I64, Ty::I32, Operand::Reg(left));
        self.code.push(Inst::Spend { turns });
        for (_, lanes) in self.sums.clone() {
            let splat = VecInst::Splat { lane: Lane::I32, dst: lanes, src: Operand::Int(0) };
            self.code.push(Inst::Vec(splat));
        }
        self.block(Term::Jump(vector));

        self.code.push(Inst::Spent);
        self.turn();
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

    /// The loop's scalar steps for the first of the next turns; with `vectors`, all of them.
    fn walk(&mut self, vectors: bool) -> Walk {
        let nowhere = Operand::Int(0);
        let mut walk = Walk {
            map: HashMap::new(),
            addresses: vec![nowhere; self.plan.accesses.len()],
            widened: vec![nowhere; self.plan.widened.len()],
            test: (nowhere, nowhere),
            groups: Vec::new(),
        };
        for (at, inst) in self.insts.iter().enumerate() {
            self.note(at, &mut walk);
            let role = self.plan.roles[at];
            if role == Role::Scalar {
                self.scalar(inst, &mut walk);
            } else if vectors {
                self.lanes(inst, role, &mut walk);
            }
        }
        walk
    }

    /// Takes note of the operands, as they are now, that other blocks need.
    fn note(&self, at: usize, walk: &mut Walk) {
        let plan = self.plan;
        for (index, access) in plan.accesses.iter().enumerate().filter(|(_, a)| a.inst == at) {
            walk.addresses[index] = walk.now(&access.addr);
        }
        for (index, widened) in plan.widened.iter().enumerate().filter(|(_, w)| w.inst == at) {
            walk.widened[index] = walk.now(&widened.value);
        }
        if plan.test.inst == at {
            walk.test = (walk.now(&plan.test.value), walk.now(&plan.test.bound));
        }
    }

    fn scalar(&mut self, inst: &Inst, walk: &mut Walk) {
        let mut inst = inst.clone();
        inst.operands_mut(&mut |operand| *operand = walk.now(operand));
        let Some((old, _)) = inst.result() else { return };
        let new = self.reg(self.body.regs[old.0 as usize]);
        inst.set_result(new);
        walk.map.insert(old, Operand::Reg(new));
        self.code.push(inst);
    }

    /// Whether the loop goes on after this turn, and after how many turns at least it still does.
    fn turns(&mut self, walk: &Walk) -> (Operand, Operand) {
        let test = self.plan.test;
        let (value, bound) = walk.test;
        let signed = matches!(test.op, CmpOp::LtS | CmpOp::LeS);
        let (from, to) = (self.wide(value, test.ty, signed), self.wide(bound, test.ty, signed));
        let op = if test.op == CmpOp::Ne { CmpOp::LtU } else { test.op };
        let goes_on = self.cmp(op, Ty::I64, from, to);
        let mut left = self.bin(BinOp::Sub, Ty::I64, to, from);
        if matches!(test.op, CmpOp::LtS | CmpOp::LtU) {
            left = self.bin(BinOp::Sub, Ty::I64, left, Operand::Int(1));
        }
        if test.step > 1 {
            left = self.bin(BinOp::DivU, Ty::I64, left, Operand::Int(test.step));
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

    /// Whether `vectors` (1 or more) turns can be done by vectors.
    fn check(&mut self, walk: &Walk, vectors: Operand) -> Operand {
        let mut fits = self.cmp(CmpOp::Ne, Ty::I64, vectors, Operand::Int(0));
        let turns = self.bin(BinOp::Mul, Ty::I64, vectors, Operand::Int(self.lanes));
        for (widened, value) in self.plan.widened.iter().zip(&walk.widened) {
            let from = self.wide(*value, Ty::I32, widened.signed);
            let by = self.bin(BinOp::Mul, Ty::I64, turns, Operand::Int(widened.step));
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
                let (own, its) = (walk.addresses[index], walk.addresses[other_index]);
                let before = other_index < index && !other.is_store && other.step == store.step;
                let apart = self.apart((store, own), (other, its), turns, before);
                fits = self.bin(BinOp::And, Ty::I32, fits, apart);
            }
        }
        fits
    }

    /// Whether what `store` writes in `turns` turns and what `other` uses in them do not overlap, or only so that
    /// it does not matter.
    fn apart(
        &mut self,
        (store, own): (&Access, Operand),
        (other, its): (&Access, Operand),
        turns: Operand,
        load_comes_first: bool,
    ) -> Operand {
        let (own, own_bytes) = self.range(store, own, turns);
        let (its, its_bytes) = self.range(other, its, turns);
        let ahead = self.bin(BinOp::Sub, Ty::I64, its, own);
        let behind = self.bin(BinOp::Sub, Ty::I64, own, its);
        let first = match load_comes_first {
            // Turns only read what later ones write.
            true => self.cmp(CmpOp::GeU, Ty::I64, its, own),
            false => self.cmp(CmpOp::GeU, Ty::I64, ahead, own_bytes),
        };
        let second = self.cmp(CmpOp::GeU, Ty::I64, behind, its_bytes);
        let op = if load_comes_first { BinOp::Or } else { BinOp::And };
        self.bin(op, Ty::I32, first, second)
    }

    /// Where an access begins, and how many bytes it spans.
    fn range(&mut self, access: &Access, addr: Operand, turns: Operand) -> (Operand, Operand) {
        let addr = self.wide(addr, Ty::Ptr, false);
        let start = self.bin(BinOp::Add, Ty::I64, addr, Operand::Int(access.off));
        let steps = self.bin(BinOp::Mul, Ty::I64, turns, Operand::Int(access.step));
        let bytes = self.bin(BinOp::Add, Ty::I64, steps, Operand::Int(size(access.mem)));
        (start, bytes)
    }

    /// One turn of the vector loop.
    fn turn(&mut self) {
        self.walk(true);
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

    /// The vector form of a step.
    fn lanes(&mut self, inst: &Inst, role: Role, walk: &mut Walk) {
        let value = match (inst, role) {
            (Inst::Copy { src, .. } | Inst::Conv { src, .. }, Role::Same) => walk.now(src),
            (Inst::Load { .. }, Role::Access(access)) => self.load(access, walk),
            (Inst::Store { mem, val, .. }, Role::Access(access)) => {
                let val = self.vector(val, mem.reg(), walk);
                return self.store(access, val, walk);
            }
            (Inst::Bin { ty, a, b, .. }, Role::Sum(sum)) => {
                let added = if *a == Operand::Reg(sum) { b } else { a };
                let added = self.vector(added, *ty, walk);
                let lanes = self.sums.iter().find(|own| own.0 == sum).map(|own| own.1);
                let (lane, lanes) = (self.lane(*ty), lanes.unwrap_or(sum));
                let (op, a) = (BinOp::Add, Operand::Reg(lanes));
                self.code.push(Inst::Vec(VecInst::Bin { op, lane, dst: lanes, a, b: added }));
                return;
            }
            (Inst::Bin { op: BinOp::Shl, ty, a, b, .. }, _) => {
                self.shift(BinOp::Shl, *ty, a, b, walk)
            }
            (Inst::Bin { ty, a, b, .. }, Role::ShiftRight { zeros }) => {
                let op = if zeros { BinOp::ShrU } else { BinOp::ShrS };
                self.shift(op, *ty, a, b, walk)
            }
            (Inst::Bin { op, ty, a, b, .. }, Role::Lanes) => match (op, self.lane(*ty), a, b) {
                (BinOp::Mul, Lane::I8, number, Operand::Int(by))
                | (BinOp::Mul, Lane::I8, Operand::Int(by), number) => {
                    let number = self.vector(number, *ty, walk);
                    self.multiple(number, *by)
                }
                (_, lane, ..) => {
                    let (a, b) = (self.vector(a, *ty, walk), self.vector(b, *ty, walk));
                    self.vector_bin(*op, lane, a, b)
                }
            },
            _ => return,
        };
        if let Some((reg, _)) = inst.result() {
            walk.map.insert(reg, value);
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

    fn shift(&mut self, op: BinOp, ty: Ty, a: &Operand, b: &Operand, walk: &Walk) -> Operand {
        let (lane, a) = (self.lane(ty), self.vector(a, ty, walk));
        let mask = if ty == Ty::I64 { 63 } else { 31 };
        // INVARIANT: the analysis lets constants through only.
        let by = if let Operand::Int(by) = b { (by & mask) as u32 } else { 0 };
        let dst = self.reg(Ty::V128);
        self.code.push(Inst::Vec(VecInst::Shift { op, lane, dst, a, by }));
        Operand::Reg(dst)
    }

    /// An operand of type `ty` as a vector.
    fn vector(&mut self, operand: &Operand, ty: Ty, walk: &Walk) -> Operand {
        let mut src = walk.now(operand);
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

    fn load(&mut self, index: usize, walk: &mut Walk) -> Operand {
        let access = self.plan.accesses[index];
        let bytes = size(access.mem);
        if access.step != bytes {
            return self.load_apart(index, walk);
        }
        let (addr, off, dst) = (walk.addresses[index], access.off, self.reg(Ty::V128));
        let lane = self.lane(access.mem.reg());
        let from = bytes as u64;
        let signed = !matches!(access.mem, MemTy::U8 | MemTy::U16);
        self.code.push(Inst::Vec(match from == self.plan.width {
            true => VecInst::Load { dst, addr, off },
            false => VecInst::LoadWiden { lane, from, signed, dst, addr, off },
        }));
        Operand::Reg(dst)
    }

    /// Cells with others between them: all are read, once for all accesses to them, and those wanted are picked.
    fn load_apart(&mut self, index: usize, walk: &mut Walk) -> Operand {
        let access = self.plan.accesses[index];
        let (Some(root), bytes) = (access.root, size(access.mem)) else {
            return Operand::Int(0);
        };
        let alike = |other: &Access| {
            let same = other.root.is_some_and(|its| its.base == root.base);
            same && !other.is_store && other.step == access.step
        };
        let group = self.plan.accesses.iter().position(alike);
        let group = group.unwrap_or(index);
        let offsets =
            self.plan.accesses.iter().filter(|other| alike(other)).filter_map(|other| other.root);
        let first = offsets.map(|root| root.off).min().unwrap_or(root.off);
        if !walk.groups.iter().any(|known| known.0 == group) {
            let start = access.off + (first - root.off);
            let mut all = Vec::new();
            for part in 0..access.step / bytes {
                let dst = self.reg(Ty::V128);
                let (addr, off) = (walk.addresses[index], start + 16 * part);
                self.code.push(Inst::Vec(VecInst::Load { dst, addr, off }));
                all.push(Operand::Reg(dst));
            }
            walk.groups.push((group, first, all));
        }
        let known = walk.groups.iter().find(|known| known.0 == group);
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

    fn store(&mut self, index: usize, val: Operand, walk: &Walk) {
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
        let (addr, off) = (walk.addresses[index], access.off);
        let bytes = bytes * self.lanes as u64;
        self.code.push(Inst::Vec(VecInst::Store { bytes, addr, off, val }));
    }

    fn add_up(&mut self, sum: Reg, lanes: Reg) {
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

impl Walk {
    fn now(&self, operand: &Operand) -> Operand {
        match operand {
            Operand::Reg(reg) => self.map.get(reg).copied().unwrap_or(*operand),
            other => *other,
        }
    }
}

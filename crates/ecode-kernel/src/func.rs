//! One function: entry, control flow, calls, return.

use super::{
    KernelError,
    asm::{Alu, Asm, Cond, Label, Mreg, R0, R1, R10, Size, Src, Width},
    graph::slots,
    homes::{HEAD, Homes, headers},
    program::{Bounds, Call, FRAME, Labels, Unit, cell, code, toward, trap_code},
};
use ecode::ir::{
    At, Block, BlockId, Body, Callee, FuncId, Inst, Live, Operand, Reg, RegSet, Term, Ty,
};
use std::collections::HashMap;

/// Cells at the head of a frame.
const RETURN: i16 = 0;
pub(super) const SLOTS: i16 = 8;
/// Distances beyond this are added to the address.
pub(super) const MAX_OFFSET: i64 = 16 << 10;

pub(super) struct Flow<'u, 'm> {
    pub(super) unit: &'u mut Unit<'m>,
    pub(super) body: &'m Body,
    pub(super) homes: Homes,
    /// Offsets of slots, and bytes of them all.
    pub(super) slots: Vec<u64>,
    pub(super) slot_bytes: u64,
    /// The register whose address, ready for loads, is in `R2`.
    pub(super) in_r2: Option<Reg>,
    /// Registers that were compared with the end of memory in this block, and how far beyond them.
    pub(super) checked: HashMap<Reg, i64>,
    id: FuncId,
    live: Live,
    labels: Vec<Labels>,
    /// Registers that are live over each call, by block and place in it.
    over_calls: HashMap<(usize, usize), Vec<Reg>>,
    /// Loops that leave for a look at the clock: header, where from.
    ticks: Vec<(usize, Label)>,
    /// The same at entries and returns: where from, where back to.
    iterations: Vec<(Label, Label)>,
}

pub(super) fn emit(unit: &mut Unit<'_>, id: FuncId) -> Result<(), KernelError> {
    let body = unit.funcs[&id].body;
    let live = Live::new(body);
    let params = unit.module.sig_of(id).params.len();
    let too_large = || KernelError::TooLarge(unit.module.funcs[id.0 as usize].name.clone());
    let homes = Homes::new(body, params, &live).ok_or_else(too_large)?;
    let labels = body.blocks.iter().map(|_| Labels::new(&mut unit.asm)).collect();
    let (slots, slot_bytes) = slots(body);
    let (in_r2, checked) = (None, HashMap::new());
    let (ticks, iterations) = (Vec::new(), Vec::new());
    let over_calls = over_calls(body, &live);
    let mut flow = Flow {
        unit,
        body,
        homes,
        slots,
        slot_bytes,
        in_r2,
        checked,
        id,
        live,
        labels,
        over_calls,
        ticks,
        iterations,
    };
    (flow.unit.inside, flow.unit.at) = (Some(id), At::default());
    flow.prologue(params);
    flow.blocks();
    flow.out_of_line();
    flow.unit.inside = None;
    Ok(())
}

fn over_calls(body: &Body, live: &Live) -> HashMap<(usize, usize), Vec<Reg>> {
    let mut found = HashMap::new();
    for (index, block) in body.blocks.iter().enumerate() {
        if !block.insts.iter().any(|inst| matches!(inst, Inst::Call { .. })) {
            continue;
        }
        for (step, inst, after) in live.backwards(body, index) {
            if let Inst::Call { dst, .. } = inst {
                let regs = after.iter().filter(|reg| Some(*reg) != *dst).collect();
                found.insert((index, step), regs);
            }
        }
    }
    found
}

impl Flow<'_, '_> {
    pub(super) fn asm(&mut self) -> &mut Asm {
        &mut self.unit.asm
    }

    fn prologue(&mut self, params: usize) {
        let (entry, recursive, several) = {
            let own = &self.unit.funcs[&self.id];
            (own.entry, own.is_recursive, own.sites.len() > 1)
        };
        self.asm().place(entry);
        if recursive || several {
            self.iteration();
        }
        let end = self.unit.control_end - i32::from(self.homes.frame_bytes);
        let spent = self.unit.trap(code::STACK);
        self.asm().mov(Width::W32, R0, Src::Reg(FRAME));
        self.asm().jump_if(Cond::GT, Width::W64, R0, Src::Imm(end), spent);
        if self.slot_bytes > 0 {
            let bytes = self.slot_bytes as i32;
            // So low that distances are added below 0, no variable lies.
            let low = self.unit.layout.stack_end as i32 + MAX_OFFSET as i32;
            self.asm().load(Size::B4, R0, FRAME, SLOTS);
            self.asm().jump_if(Cond::LT, Width::W64, R0, Src::Imm(bytes + low), spent);
            self.asm().alu(Alu::SUB, Width::W32, R0, Src::Imm(bytes));
            self.asm().store(Size::B4, FRAME, SLOTS, Src::Reg(R0));
        }
        let first = self.live.at_start[0].clone();
        for reg in first.iter() {
            if (reg.0 as usize) < params {
                self.restore(reg);
            } else {
                let ty = self.body.regs[reg.0 as usize];
                self.set(reg, ty, &Operand::Int(0));
            }
        }
    }

    /// Counts an iteration where nothing but `R0` is live in machine registers.
    fn iteration(&mut self) {
        let (spent, again) = (self.asm().label(), self.asm().label());
        self.asm().place(again);
        self.unit.count_iteration(spent);
        self.iterations.push((spent, again));
    }

    fn blocks(&mut self) {
        let headers = headers(self.body);
        for (index, block) in self.body.blocks.iter().enumerate() {
            let Labels { entry, again } = self.labels[index];
            self.asm().place(entry);
            if headers.binary_search(&index).is_ok() {
                if self.unit.bounds == Bounds::Iteration {
                    self.asm().place(again);
                }
                self.forget_bounds(index);
                let spent = self.asm().label();
                if self.unit.bounds == Bounds::Enter {
                    self.asm().place(again);
                }
                self.unit.count_iteration(spent);
                self.ticks.push((index, spent));
            }
            self.block(index, block);
        }
    }

    /// Takes from the verifier what it believes about the values that enter a loop: it would follow
    /// the loop again for every iteration that they tell apart.
    fn forget_bounds(&mut self, header: usize) {
        self.asm().load(Size::B8, R0, R10, cell::ZERO);
        for (mreg, ty) in self.in_mregs(&self.live.at_start[header]) {
            self.asm().alu(Alu::ADD, width(ty), mreg, Src::Reg(R0));
        }
    }

    fn in_mregs(&self, set: &RegSet) -> Vec<(Mreg, Ty)> {
        let held = set.iter().filter_map(|reg| Some((self.homes.mreg(reg)?, self.ty(reg))));
        held.collect()
    }

    fn block(&mut self, index: usize, block: &Block) {
        self.forget_addresses();
        let fused = self.fused(index, block);
        let count = block.insts.len() - usize::from(fused.is_some());
        for (step, inst) in block.insts[..count].iter().enumerate() {
            self.unit.at = inst.at();
            match inst {
                Inst::Call { dst, callee, args, .. } => {
                    self.call((index, step), *dst, callee, args);
                }
                _ => self.inst(inst, &block.insts[step..]),
            }
        }
        match (&block.term, fused) {
            (Term::Branch { then, other, .. }, Some(Inst::Cmp { op, ty, a, b, .. })) => {
                if then.0 as usize == index + 1 {
                    let other = toward(&self.labels, index, *other);
                    self.jump_unless(*op, *ty, a, b, other);
                } else {
                    let then = toward(&self.labels, index, *then);
                    self.jump_if(*op, *ty, a, b, then);
                    self.jump(index, *other);
                }
            }
            (term, _) => self.term(index, term),
        }
    }

    /// The comparison before a branch, if nothing but the branch uses it.
    fn fused<'b>(&self, index: usize, block: &'b Block) -> Option<&'b Inst> {
        let Term::Branch { cond: Operand::Reg(reg), .. } = block.term else { return None };
        let last = block.insts.last()?;
        let is_it = matches!(last, Inst::Cmp { dst, .. } if *dst == reg);
        (is_it && !self.live.at_end[index].contains(reg)).then_some(last)
    }

    fn jump(&mut self, from: usize, to: BlockId) {
        if to.0 as usize != from + 1 {
            let label = toward(&self.labels, from, to);
            self.asm().jump(label);
        }
    }

    fn term(&mut self, index: usize, term: &Term) {
        match term {
            Term::Jump(to) => self.jump(index, *to),
            Term::Branch { cond, then, other } => {
                let then = toward(&self.labels, index, *then);
                let cond = self.operand(cond, Ty::I32, R0);
                self.asm().jump_if(Cond::NE, Width::W32, cond, Src::Imm(0), then);
                self.jump(index, *other);
            }
            Term::Switch { ty, value, cases, default } => {
                let value = self.operand(value, *ty, R0);
                let mut cases: Vec<(i64, Label)> = cases
                    .iter()
                    .map(|(case, to)| (*case, toward(&self.labels, index, *to)))
                    .collect();
                cases.sort_unstable_by_key(|case| case.0);
                let default = toward(&self.labels, index, *default);
                self.switch(*ty, value, &cases, default);
            }
            Term::Return(value) => self.return_(value.as_ref()),
            Term::Trap(why) => {
                let label = self.unit.trap(trap_code(*why));
                self.asm().jump(label);
            }
        }
    }

    /// Halves `cases`, which are in rising order, until one is left.
    fn switch(&mut self, ty: Ty, value: Mreg, cases: &[(i64, Label)], default: Label) {
        let (low, high) = cases.split_at(cases.len() / 2);
        let Some((case, label)) = high.first() else { return self.asm().jump(default) };
        let case = self.constant(*case, ty, R1);
        if low.is_empty() {
            self.asm().jump_if(Cond::EQ, width(ty), value, case, *label);
            return self.asm().jump(default);
        }
        let upper = self.asm().label();
        self.asm().jump_if(Cond::SGE, width(ty), value, case, upper);
        self.switch(ty, value, low, default);
        self.asm().place(upper);
        self.switch(ty, value, high, default);
    }

    fn return_(&mut self, value: Option<&Operand>) {
        if let (Some(value), Some(ty)) = (value, self.unit.module.sig_of(self.id).ret) {
            self.unknown(R0, ty, value);
        } else {
            self.asm().mov(Width::W64, R0, Src::Imm(0));
        }
        let own = &self.unit.funcs[&self.id];
        let (sites, recursive) = (own.sites.clone(), own.is_recursive);
        if recursive {
            // Returns of a function that has called itself are a loop of their own.
            self.iteration();
        }
        if sites.len() > 1 {
            self.asm().load(Size::B4, R1, FRAME, RETURN);
        }
        self.unit.dispatch(R1, &sites);
    }

    fn call(&mut self, at: (usize, usize), dst: Option<Reg>, callee: &Callee, args: &[Operand]) {
        let call = self.unit.calls[&(self.id, at.0, at.1)].clone();
        let sig = match callee {
            Callee::Direct(id) => self.unit.module.sig_of(*id),
            Callee::Indirect(_, sig) => &self.unit.module.sigs[sig.0 as usize],
        };
        let over = self.over_calls.remove(&at).unwrap_or_default();
        over.iter().for_each(|reg| self.save(*reg));
        let frame = self.homes.frame_bytes;
        for (index, (arg, ty)) in args.iter().zip(&sig.params).enumerate() {
            let cell = frame.saturating_add(HEAD).saturating_add(8 * index as i16);
            self.put(cell, *ty, arg);
        }
        self.asm().load(Size::B4, R0, FRAME, SLOTS);
        self.asm().store(Size::B4, FRAME, frame + SLOTS, Src::Reg(R0));
        if let Callee::Indirect(target, _) = callee {
            self.unknown(R1, Ty::Ptr, target);
        }
        self.asm().alu(Alu::ADD, Width::W64, FRAME, Src::Imm(i32::from(frame)));
        self.enter(callee, &call);
        self.asm().place(call.behind);
        self.asm().alu(Alu::SUB, Width::W64, FRAME, Src::Imm(i32::from(frame)));
        over.iter().for_each(|reg| self.restore(*reg));
        if let Some(dst) = dst {
            self.set_mreg(dst, R0);
        }
        self.forget_addresses();
    }

    /// Goes to the function; one by address in `R1` is looked for among those of its signature.
    fn enter(&mut self, callee: &Callee, call: &Call) {
        for (target, site) in &call.ways {
            let next = self.asm().label();
            if let Callee::Indirect(..) = callee {
                let address = self.unit.address(&Operand::Func(*target)) as i32;
                self.asm().jump_if(Cond::NE, Width::W64, R1, Src::Imm(address), next);
            }
            match self.unit.funcs.get(target).map(|own| own.entry) {
                Some(entry) => {
                    self.asm().store(Size::B4, FRAME, RETURN, Src::Imm(*site));
                    self.asm().jump(entry);
                }
                None => {
                    self.asm().mov(Width::W64, R0, Src::Imm(0));
                    self.unit.leave(*site);
                }
            }
            self.asm().place(next);
        }
        if let Callee::Indirect(..) = callee {
            let bad = self.unit.trap(code::BAD_CALL);
            self.asm().jump(bad);
        }
    }

    /// Ways that are rarely taken.
    fn out_of_line(&mut self) {
        for (spent, again) in std::mem::take(&mut self.iterations) {
            self.asm().place(spent);
            self.unit.at = At::default();
            self.unit.tick(again);
        }
        for (header, spent) in std::mem::take(&mut self.ticks) {
            let live = self.live.at_start[header].clone();
            self.asm().place(spent);
            live.iter().for_each(|reg| self.save(reg));
            self.asm().mov(Width::W64, R0, Src::Imm(0));
            let back = self.asm().label();
            self.unit.at = self.body.at_from(BlockId(header as u32), 0);
            self.unit.tick(back);
            self.asm().place(back);
            live.iter().for_each(|reg| self.restore(reg));
            let again = self.labels[header].again;
            self.asm().jump(again);
        }
    }

    /// To the cell, if it is kept in a machine register.
    fn save(&mut self, reg: Reg) {
        if let Some(mreg) = self.homes.mreg(reg) {
            let (cell, size) = (self.homes.cell(reg), size(self.ty(reg)));
            self.asm().store(size, FRAME, cell, Src::Reg(mreg));
        }
    }

    fn restore(&mut self, reg: Reg) {
        if let Some(mreg) = self.homes.mreg(reg) {
            let (cell, size) = (self.homes.cell(reg), size(self.ty(reg)));
            self.asm().load(size, mreg, FRAME, cell);
        }
    }

    pub(super) fn ty(&self, reg: Reg) -> Ty {
        self.body.regs[reg.0 as usize]
    }

    /// `R2` holds no address, and no register is known to be within bounds.
    pub(super) fn forget_addresses(&mut self) {
        self.in_r2 = None;
        self.checked.clear();
    }
}

pub(super) fn width(ty: Ty) -> Width {
    if ty == Ty::I64 { Width::W64 } else { Width::W32 }
}

pub(super) fn size(ty: Ty) -> Size {
    if ty == Ty::I64 { Size::B8 } else { Size::B4 }
}

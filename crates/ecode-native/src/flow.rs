//! One function: registers, control flow, guards.

use super::{
    code, context,
    frame::Frame,
    unit::{Shared, flags, machine_type},
};
use cranelift_codegen::ir::{
    Block as Label, FuncRef, InstBuilder, StackSlot, StackSlotData, StackSlotKind,
    TrapCode as Mark, Value, condcodes::IntCC, types,
};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use ecode::ir::{At, Block, BlockId, Body, Callee, FuncId, Inst, Operand, Reg, Term, TrapCode, Ty};
use std::collections::HashMap;

/// How a register is held.
#[derive(Clone, Copy)]
enum Held {
    /// Assigned once and used only below that, in the same block.
    Value(Option<Value>),
    Variable(Variable),
}

pub(super) struct Flow<'a, 'm> {
    pub(super) shared: &'a Shared<'m>,
    pub(super) jit: &'a mut JITModule,
    pub(super) b: FunctionBuilder<'a>,
    pub(super) body: &'a Body,
    /// The instance's context, as it was passed.
    context: Value,
    pub(super) frame: Frame,
    pub(super) stack: Option<StackSlot>,
    regs: Vec<Held>,
    labels: Vec<Label>,
    refs: HashMap<cranelift_module::FuncId, FuncRef>,
    /// Where each kind of failure is raised, for each line.
    raises: HashMap<(i64, u32), (Label, At)>,
    id: FuncId,
    /// Where the step comes from that is generated.
    pub(super) at: At,
}

pub(super) fn function<'a>(
    shared: &'a Shared<'_>,
    jit: &'a mut JITModule,
    mut b: FunctionBuilder<'a>,
    id: FuncId,
    body: &'a Body,
    frame: Frame,
) {
    let params = shared.module.sig_of(id).params.len();
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let stack = (frame.size > 0).then(|| {
        let shift = frame.align.trailing_zeros() as u8;
        b.create_sized_stack_slot(StackSlotData::new(
            StackSlotKind::ExplicitSlot,
            frame.size,
            shift,
        ))
    });
    let hold = |(ty, local): (&Ty, bool)| match local {
        true => Held::Value(None),
        false => Held::Variable(b.declare_var(machine_type(*ty))),
    };
    let regs = body.regs.iter().zip(local(body, params)).map(hold).collect();
    let labels = body.blocks.iter().map(|_| b.create_block()).collect();
    let values = b.block_params(entry).to_vec();
    let (refs, raises) = (HashMap::new(), HashMap::new());
    let (context, at) = (values[0], At::default());
    let mut flow =
        Flow { shared, jit, b, body, context, frame, stack, regs, labels, refs, raises, id, at };
    flow.prologue(&values[1..]);
    for (index, block) in body.blocks.iter().enumerate() {
        flow.b.switch_to_block(flow.labels[index]);
        block.insts.iter().for_each(|inst| flow.inst(inst));
        flow.term(&block.term);
    }
    flow.finish();
}

/// Calls `raise`, which does not return.
pub(super) fn raise(
    b: &mut FunctionBuilder<'_>,
    jit: &mut JITModule,
    raise: cranelift_module::FuncId,
    context: Value,
    code: i64,
) {
    let target = jit.declare_func_in_func(raise, b.func);
    let code = b.ins().iconst(types::I64, code);
    b.ins().call(target, &[context, code]);
    b.ins().trap(Mark::STACK_OVERFLOW);
}

/// By register: whether it is assigned once and used only below that, in the same block.
pub(super) fn local(body: &Body, params: usize) -> Vec<bool> {
    const NEVER: u32 = u32::MAX;
    let mut home = vec![NEVER; body.regs.len()];
    let mut local = vec![true; body.regs.len()];
    local[..params].fill(false);
    for (index, Block { insts, term }) in body.blocks.iter().enumerate() {
        let index = index as u32;
        let mut used = |operand: &Operand, home: &[u32]| {
            if let Operand::Reg(reg) = operand {
                local[reg.0 as usize] &= home[reg.0 as usize] == index;
            }
        };
        let mut twice = Vec::new();
        for inst in insts {
            inst.operands(&mut |operand| used(operand, &home));
            if let Some((reg, _)) = inst.result() {
                if home[reg.0 as usize] != NEVER {
                    twice.push(reg);
                }
                home[reg.0 as usize] = index;
            }
        }
        term.operands(&mut |operand| used(operand, &home));
        twice.iter().for_each(|reg| local[reg.0 as usize] = false);
    }
    local
}

impl Flow<'_, '_> {
    /// The instance's context.
    pub(super) fn context(&mut self) -> Value {
        let home = self.frame.homes.as_ref().map(|homes| homes.context);
        home.and_then(|at| self.load_home(at)).unwrap_or(self.context)
    }

    fn load_home(&mut self, at: i32) -> Option<Value> {
        let place = self.b.ins().stack_addr(types::I64, self.stack?, at);
        Some(self.b.ins().load(types::I64, flags(), place, 0))
    }

    fn prologue(&mut self, params: &[Value]) {
        if self.calls_own() {
            let limit = self.b.ins().load(types::I64, flags(), self.context, context::STACK_LIMIT);
            let here = self.b.ins().get_stack_pointer(types::I64);
            let spent = self.b.ins().icmp(IntCC::UnsignedLessThan, here, limit);
            self.raise_if(spent, code::STACK);
        }
        if let (Some(slot), Some(homes)) = (self.stack, &self.frame.homes) {
            let place = self.b.ins().stack_addr(types::I64, slot, homes.context);
            self.b.ins().store(flags(), self.context, place, 0);
        }
        if let (Some(slot), Some(at)) = (self.stack, self.frame.guard) {
            let guard = self.b.ins().load(types::I64, flags(), self.context, context::GUARD);
            let place = self.b.ins().stack_addr(types::I64, slot, at);
            self.b.ins().store(flags(), guard, place, 0);
        }
        for (index, param) in params.iter().enumerate() {
            self.set(Reg(index as u32), *param);
        }
        for index in params.len()..self.regs.len() {
            if let Held::Variable(_) = self.regs[index] {
                let zero = self.zero(self.body.regs[index]);
                self.set(Reg(index as u32), zero);
            }
        }
        let first = self.labels[0];
        self.b.ins().jump(first, &[]);
    }

    fn calls_own(&self) -> bool {
        self.body.blocks.iter().flat_map(|b| &b.insts).any(|inst| match inst {
            Inst::Call { callee: Callee::Direct(id), .. } => {
                self.shared.module.funcs[id.0 as usize].body.is_some()
            }
            Inst::Call { .. } => true,
            _ => false,
        }) || self.frame.size > 1024
    }

    fn zero(&mut self, ty: Ty) -> Value {
        match ty {
            Ty::F32 => self.b.ins().f32const(0.0),
            Ty::F64 => self.b.ins().f64const(0.0),
            Ty::V128 => {
                let zero = self.b.ins().iconst(types::I8, 0);
                self.b.ins().splat(types::I8X16, zero)
            }
            _ => self.b.ins().iconst(machine_type(ty), 0),
        }
    }

    fn home(&self, reg: Reg) -> Option<i32> {
        self.frame.homes.as_ref()?.pointers.get(&reg).copied()
    }

    pub(super) fn set(&mut self, reg: Reg, value: Value) {
        if let (Some(at), Some(slot)) = (self.home(reg), self.stack) {
            let place = self.b.ins().stack_addr(types::I64, slot, at);
            self.b.ins().store(flags(), value, place, 0);
            return;
        }
        match &mut self.regs[reg.0 as usize] {
            Held::Value(held) => *held = Some(value),
            Held::Variable(variable) => self.b.def_var(*variable, value),
        }
    }

    pub(super) fn get(&mut self, reg: Reg) -> Value {
        if let Some(value) = self.home(reg).and_then(|at| self.load_home(at)) {
            return value;
        }
        match self.regs[reg.0 as usize] {
            Held::Value(Some(value)) => value,
            Held::Value(None) => self.zero(self.body.regs[reg.0 as usize]),
            Held::Variable(variable) => self.b.use_var(variable),
        }
    }

    pub(super) fn function_ref(&mut self, id: cranelift_module::FuncId) -> FuncRef {
        if let Some(known) = self.refs.get(&id) {
            return *known;
        }
        let new = self.jit.declare_func_in_func(id, self.b.func);
        self.refs.insert(id, new);
        new
    }

    /// Leaves the call for `reason` when `condition` holds.
    pub(super) fn raise_if(&mut self, condition: Value, reason: i64) {
        let target = self.raise_label(reason);
        let next = self.b.create_block();
        self.b.ins().brif(condition, target, &[], next, &[]);
        self.b.switch_to_block(next);
    }

    fn raise_label(&mut self, reason: i64) -> Label {
        let at = self.shared.module.at(self.id, self.at);
        let key = (reason, self.shared.module.lines.line(at).unwrap_or(0));
        if let Some((label, _)) = self.raises.get(&key) {
            return *label;
        }
        let label = self.b.create_block();
        self.b.set_cold_block(label);
        self.raises.insert(key, (label, at));
        label
    }

    fn label(&self, id: BlockId) -> Label {
        self.labels[id.0 as usize]
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Jump(to) => {
                let to = self.label(*to);
                self.b.ins().jump(to, &[]);
            }
            Term::Branch { cond, then, other } => {
                let cond = self.operand(cond, Ty::I32);
                let (then, other) = (self.label(*then), self.label(*other));
                self.b.ins().brif(cond, then, &[], other, &[]);
            }
            Term::Switch { ty, value, cases, default } => {
                let value = self.operand(value, *ty);
                let mut switch = Switch::new();
                for (case, to) in cases {
                    let key = match ty {
                        Ty::I64 => u128::from(*case as u64),
                        _ => u128::from(*case as u32),
                    };
                    switch.set_entry(key, self.label(*to));
                }
                let default = self.label(*default);
                switch.emit(&mut self.b, value, default);
            }
            Term::Return(value) => self.return_(value.as_ref()),
            Term::Trap(why) => {
                let code = match why {
                    TrapCode::DivideByZero => code::DIVIDE,
                    TrapCode::Unreachable => code::UNREACHABLE,
                    TrapCode::StackOverflow => code::STACK,
                    TrapCode::BadCall => code::BAD_CALL,
                };
                let to = self.raise_label(code);
                self.b.ins().jump(to, &[]);
            }
        }
    }

    fn return_(&mut self, value: Option<&Operand>) {
        let ret = self.shared.module.sig_of(self.id).ret;
        let value = match (value, ret) {
            (Some(value), Some(ty)) => Some(self.operand(value, ty)),
            _ => None,
        };
        if let (Some(slot), Some(at)) = (self.stack, self.frame.guard) {
            let place = self.b.ins().stack_addr(types::I64, slot, at);
            let found = self.b.ins().load(types::I64, flags(), place, 0);
            let context = self.context();
            let guard = self.b.ins().load(types::I64, flags(), context, context::GUARD);
            let smashed = self.b.ins().icmp(IntCC::NotEqual, found, guard);
            // The same for all returns.
            self.at = At::default();
            self.raise_if(smashed, code::SMASHED);
        }
        self.b.ins().return_(value.as_slice());
    }

    fn finish(mut self) {
        let mut raises: Vec<_> = self.raises.drain().collect();
        raises.sort_unstable_by_key(|raise| raise.0);
        for ((reason, _), (label, at)) in raises {
            self.b.switch_to_block(label);
            let context = self.context();
            let told = code::told(reason, at.number());
            raise(&mut self.b, self.jit, self.shared.raise, context, told);
        }
        self.b.seal_all_blocks();
        self.b.finalize(self.jit.target_config());
    }
}

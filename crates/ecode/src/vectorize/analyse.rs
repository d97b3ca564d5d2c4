//! Whether a loop can become one over vectors, and how: what each of its steps computes over the
//! iterations.

use super::{
    plan::{Access, Kind, Plan, Role, Test, Widened},
    ranges::full,
    scalar::{Linear, Root, steps, sum},
};
use crate::ir::{Block, BlockId, CmpOp, Inst, MemTy, Operand, Reg, Term, Ty};
use std::collections::{HashMap, HashSet};

/// Pairs of accesses whose overlap is tested when the loop runs; it is not to cost more than it
/// gains.
const MAX_TESTS: usize = 16;

/// What a register holds, over the iterations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Changes by `Linear::step`, perhaps 0.
    Linear(Linear),
    /// Its own number in each iteration; the mathematical range of an integer.
    Lanes { low: i128, high: i128 },
    /// The running sum in a register.
    Sum(Reg),
}

pub(super) struct Analysis {
    values: HashMap<Reg, Value>,
    pub(super) plan: Plan,
    /// Widths (bytes of a lane) that are still possible; each is a bit.
    pub(super) widths: u64,
    tests: HashMap<Reg, Test>,
    /// What comparisons of each iteration's own numbers gave.
    pub(super) masks: HashSet<Reg>,
    /// All registers that the loop assigns.
    assigned: HashSet<Reg>,
    /// The step that is looked at.
    pub(super) at: usize,
}

/// How `block`, which follows itself as block `id`, can be done by vectors.
pub(super) fn plan(block: &Block, id: BlockId) -> Option<Plan> {
    let (inductions, sums) = steps(&block.insts)?;
    let values = inductions.iter().map(|(reg, step)| {
        (*reg, Value::Linear(Linear { step: *step, root: Some(Root::of(*reg)) }))
    });
    let values = values.chain(sums.iter().map(|reg| (*reg, Value::Sum(*reg)))).collect();
    let nowhere = Operand::Int(0);
    let test = Test {
        inst: 0,
        op: CmpOp::Eq,
        ty: Ty::I32,
        value: nowhere,
        bound: nowhere,
        step: 0,
        root: None,
    };
    let plan = Plan {
        roles: Vec::new(),
        accesses: Vec::new(),
        test,
        widened: Vec::new(),
        inductions,
        sums,
        width: 0,
        kind: Kind::Vectors,
    };
    let assigned = block.insts.iter().filter_map(|inst| inst.result()).map(|result| result.0);
    let (assigned, tests, masks) = (assigned.collect(), HashMap::new(), HashSet::new());
    let mut analysis = Analysis { values, plan, widths: 0b1111, tests, masks, assigned, at: 0 };
    for (at, inst) in block.insts.iter().enumerate() {
        analysis.at = at;
        let role = analysis.step(inst)?;
        analysis.plan.roles.push(role);
    }
    let Term::Branch { cond: Operand::Reg(cond), then, .. } = block.term else { return None };
    let test = analysis.tests.get(&cond)?;
    analysis.plan.test = Test { op: goes_on(test.op, then == id)?, ..*test };
    analysis.finish()
}

/// The comparison under which the loop goes on, if it is of a kind that counts up.
fn goes_on(op: CmpOp, when_true: bool) -> Option<CmpOp> {
    use CmpOp::{LeS, LeU, LtS, LtU, Ne};
    let op = if when_true { op } else { op.negated() };
    matches!(op, LtS | LtU | LeS | LeU | Ne).then_some(op)
}

impl Analysis {
    fn finish(mut self) -> Option<Plan> {
        let sums = self.plan.roles.iter().filter(|role| matches!(role, Role::Sum(_))).count();
        let useful = self.plan.accesses.iter().any(|access| access.step != 0);
        if self.plan.test.step < 1 || sums != self.plan.sums.len() || !useful {
            return None;
        }
        self.plan.width = [1, 2, 4, 8].into_iter().find(|width| self.widths & width != 0)?;
        self.groups_fit()?;
        self.overlaps_can_be_told()?;
        Some(self.plan)
    }

    /// Cells that do not lie next to each other are read together with what lies between them; that
    /// must be of the lanes' width.
    fn groups_fit(&self) -> Option<()> {
        for access in &self.plan.accesses {
            let size = size(access.mem);
            let apart = access.step != 0 && access.step != size;
            let spread = access.step / size;
            let fits = !access.is_store
                && access.step % size == 0
                && (2..=4).contains(&spread)
                && size as u64 == self.plan.width
                && access.root.is_some();
            let together = |other: &Access| match (access.root, other.root) {
                (Some(own), Some(its)) if own.is_beside(its) && access.step == other.step => {
                    own.off.abs_diff(its.off) + size as u64 <= access.step as u64
                }
                _ => true,
            };
            if apart && !(fits && self.plan.accesses.iter().all(together)) {
                return None;
            }
        }
        Some(())
    }

    /// Within an iteration of vectors, loads come before the stores of earlier scalar iterations.
    /// Where the distance is known, it must not matter; else it is tested when the loop runs.
    fn overlaps_can_be_told(&self) -> Option<()> {
        let accesses = &self.plan.accesses;
        let mut tests = 0;
        for (index, store) in accesses.iter().enumerate().filter(|(_, access)| access.is_store) {
            for (other_index, other) in accesses.iter().enumerate() {
                let known = distance(store, other);
                if index == other_index {
                    continue;
                }
                if known.is_none() {
                    tests += 1;
                    if tests > MAX_TESTS {
                        return None;
                    }
                    continue;
                }
                let later = known.is_some_and(|distance| distance >= 0);
                if other.is_store || !later || other_index > index {
                    return None;
                }
            }
        }
        Some(())
    }

    pub(super) fn value(&self, operand: &Operand) -> Option<Value> {
        match operand {
            Operand::Reg(reg) => match self.values.get(reg) {
                Some(value) => Some(*value),
                None if self.assigned.contains(reg) => None,
                None => Some(Value::Linear(Linear { step: 0, root: Some(Root::of(*reg)) })),
            },
            _ => Some(Value::Linear(Linear { step: 0, root: Root::constant(operand) })),
        }
    }

    fn uniform(&self, operand: &Operand) -> Option<()> {
        matches!(self.value(operand)?, Value::Linear(Linear { step: 0, .. })).then_some(())
    }

    /// The range of an operand of lanes: one that has its own number in each iteration, or does not
    /// change.
    pub(super) fn range(&self, operand: &Operand, ty: Ty) -> Option<(i128, i128)> {
        match (self.value(operand)?, operand) {
            (Value::Lanes { low, high }, _) => Some((low, high)),
            (Value::Linear(Linear { step: 0, .. }), Operand::Int(number)) => {
                let number = i128::from(*number);
                Some((number, number))
            }
            (Value::Linear(Linear { step: 0, .. }), _) => Some(full(ty)),
            _ => None,
        }
    }

    fn step(&mut self, inst: &Inst) -> Option<Role> {
        let (role, value) = match inst {
            Inst::Copy { src, .. } => match self.value(src)? {
                Value::Linear(linear) => (Role::Scalar, Value::Linear(linear)),
                value @ Value::Lanes { .. } => (Role::Same, value),
                value @ Value::Sum(_) => (Role::Skip, value),
            },
            Inst::Bin { op, ty, a, b, .. } => self.bin(*op, *ty, a, b)?,
            Inst::Conv { op, from, to, src, .. } => self.conv(*op, *from, *to, src)?,
            Inst::PtrAdd { base, index, index_ty, scale, .. } => {
                self.ptr_add(base, index, *index_ty, *scale)?
            }
            Inst::Cmp { op, ty, dst, a, b } => {
                self.masks.remove(dst);
                if self.test(*op, *ty, *dst, a, b).is_some() {
                    return Some(Role::Skip);
                }
                let compared = self.compare(*op, *ty, a, b)?;
                self.masks.insert(*dst);
                compared
            }
            Inst::Select { ty, cond, a, b, .. } => self.select(*ty, cond, a, b)?,
            Inst::Load { mem, addr, off, .. } => self.load(*mem, addr, *off)?,
            Inst::Store { mem, addr, off, val, .. } => return self.store(*mem, addr, *off, val),
            Inst::PtrSub { a, b, .. } => {
                self.uniform(a)?;
                self.uniform(b)?;
                (Role::Scalar, Value::Linear(Linear { step: 0, root: None }))
            }
            _ => return None,
        };
        let (reg, _) = inst.result()?;
        if !matches!(role, Role::Compare(_)) {
            self.masks.remove(&reg);
        }
        self.values.insert(reg, value);
        Some(role)
    }

    fn ptr_add(
        &mut self,
        base: &Operand,
        index: &Operand,
        index_ty: Ty,
        scale: i64,
    ) -> Option<(Role, Value)> {
        let (Value::Linear(from), Value::Linear(by)) = (self.value(base)?, self.value(index)?)
        else {
            return None;
        };
        if index_ty == Ty::I32 && by.step != 0 {
            self.plan.widened.push(Widened {
                inst: self.at,
                value: *index,
                step: by.step,
                signed: true,
            });
        }
        let step = from.step.checked_add(by.step.checked_mul(scale)?)?;
        let root = by.root.and_then(|root| root.times(scale));
        let root = sum(from, Linear { step: by.step, root });
        Some((Role::Scalar, Value::Linear(Linear { step, root })))
    }

    fn test(&mut self, op: CmpOp, ty: Ty, dst: Reg, a: &Operand, b: &Operand) -> Option<()> {
        if !matches!(ty, Ty::I32 | Ty::I64 | Ty::Ptr) {
            return None;
        }
        let (Value::Linear(left), Value::Linear(right)) = (self.value(a)?, self.value(b)?) else {
            return None;
        };
        let test = match (left.step, right.step) {
            (step, 0) => {
                Test { inst: self.at, op, ty, value: *a, bound: *b, step, root: left.root }
            }
            (0, step) => {
                let op = op.swapped();
                Test { inst: self.at, op, ty, value: *b, bound: *a, step, root: right.root }
            }
            _ => return None,
        };
        self.tests.insert(dst, test);
        Some(())
    }

    fn access(&mut self, access: Access) -> Option<usize> {
        // Lanes are as wide as the cells, or the cells are widened.
        self.widths &= match access.mem {
            MemTy::I8 | MemTy::U8 => 0b0111,
            MemTy::I16 | MemTy::U16 => 0b0110,
            MemTy::I32 => 0b1100,
            MemTy::F32 => 0b0100,
            MemTy::I64 | MemTy::F64 => 0b1000,
            MemTy::Ptr => return None,
        };
        if access.step < 0 || access.step > 64 {
            return None;
        }
        self.plan.accesses.push(access);
        Some(self.plan.accesses.len() - 1)
    }

    fn load(&mut self, mem: MemTy, addr: &Operand, off: i64) -> Option<(Role, Value)> {
        let Value::Linear(Linear { step, root }) = self.value(addr)? else { return None };
        let root = root.map(|root| root.plus(off));
        if step == 0 {
            let inst = self.at;
            let access = Access { inst, is_store: false, mem, addr: *addr, off, step, root };
            self.plan.accesses.push(access);
            return Some((Role::Scalar, Value::Linear(Linear { step, root: None })));
        }
        let access = self.access(Access {
            inst: self.at,
            is_store: false,
            mem,
            addr: *addr,
            off,
            step,
            root,
        })?;
        let (low, high) = match mem {
            MemTy::I8 => (-128, 127),
            MemTy::U8 => (0, 255),
            MemTy::I16 => (-32768, 32767),
            MemTy::U16 => (0, 65535),
            mem => full(mem.reg()),
        };
        Some((Role::Access(access), Value::Lanes { low, high }))
    }

    fn store(&mut self, mem: MemTy, addr: &Operand, off: i64, val: &Operand) -> Option<Role> {
        let Value::Linear(Linear { step, root }) = self.value(addr)? else { return None };
        self.range(val, mem.reg())?;
        if step != size(mem) {
            return None;
        }
        let root = root.map(|root| root.plus(off));
        self.access(Access { inst: self.at, is_store: true, mem, addr: *addr, off, step, root })
            .map(Role::Access)
    }
}

/// Bytes from the store to the other access, where that is the same in every iteration and known.
pub(super) fn distance(store: &Access, other: &Access) -> Option<i64> {
    let (own, its) = (store.root?, other.root?);
    (own.is_beside(its) && store.step == other.step).then(|| its.off.wrapping_sub(own.off))
}

pub(super) fn size(mem: MemTy) -> i64 {
    match mem {
        MemTy::I8 | MemTy::U8 => 1,
        MemTy::I16 | MemTy::U16 => 2,
        MemTy::I32 | MemTy::F32 => 4,
        MemTy::I64 | MemTy::F64 | MemTy::Ptr => 8,
    }
}

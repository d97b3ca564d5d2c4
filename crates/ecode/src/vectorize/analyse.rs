//! Whether a loop can become one over vectors, and how: what each of its steps computes over the turns.

use super::scalar::{Linear, Root, steps};
use crate::ir::{BinOp, BlockId, Body, CmpOp, ConvOp, Inst, MemTy, Operand, Reg, Term, Ty};
use std::collections::{HashMap, HashSet};

/// Pairs of accesses whose overlap is tested when the loop runs; it is not to cost more than it gains.
const MAX_TESTS: usize = 16;

/// What a step of the loop is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// A number of the first of the turns that a vector turn stands for: computed as before.
    Scalar,
    /// Reads or writes one cell a turn: access number.
    Access(usize),
    /// Computes one number a turn.
    Lanes,
    /// The same, by a shift to the right that fills up with zeros or with the sign.
    ShiftRight { zeros: bool },
    /// Conversion between integers that changes nothing in lanes of this width.
    Same,
    /// Adds one number a turn to the register.
    Sum(Reg),
    /// Of no concern to vectors.
    Skip,
}

/// A cell read or written in every turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The step of the loop that it is.
    pub(super) inst: usize,
    pub(super) is_store: bool,
    pub(super) mem: MemTy,
    pub(super) addr: Operand,
    pub(super) off: i64,
    /// Bytes from turn to turn; 0 for a number that does not change.
    pub(super) step: i64,
    pub(super) root: Option<Root>,
}

/// The comparison that ends the loop: it goes on while `op` holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// The step of the loop that it is.
    pub(super) inst: usize,
    pub(super) op: CmpOp,
    pub(super) ty: Ty,
    pub(super) value: Operand,
    pub(super) bound: Operand,
    pub(super) step: i64,
}

/// A 32-bit number that must not wrap in the turns of a strip, because it is used as a wider one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widened {
    /// The step of the loop that uses it.
    pub(super) inst: usize,
    pub(super) value: Operand,
    pub(super) step: i64,
    pub(super) signed: bool,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    pub(super) accesses: Vec<Access>,
    pub(super) test: Test,
    pub(super) widened: Vec<Widened>,
    /// Variables and what each turn adds to them.
    pub(super) inductions: Vec<(Reg, i64)>,
    pub(super) sums: Vec<Reg>,
    /// Bytes of a lane.
    pub(super) width: u64,
}

/// What a register holds, over the turns.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// Changes by `Linear::step`, perhaps 0.
    Linear(Linear),
    /// Its own number in each turn; the mathematical range of an integer.
    Lanes { low: i128, high: i128 },
    /// The running sum in a register.
    Sum(Reg),
}

struct Analysis {
    values: HashMap<Reg, Value>,
    plan: Plan,
    /// Widths (bytes of a lane) that are still possible; each is a bit.
    widths: u64,
    tests: HashMap<Reg, Test>,
    /// All registers that the loop assigns.
    assigned: HashSet<Reg>,
    /// The step that is looked at.
    at: usize,
}

/// How block `id`, which may follow itself, can be done by vectors.
pub(super) fn plan(body: &Body, id: BlockId) -> Option<Plan> {
    let block = &body.blocks[id.0 as usize];
    let (inductions, sums) = steps(body, id)?;
    let values = inductions.iter().map(|(reg, step)| {
        (*reg, Value::Linear(Linear { step: *step, root: Some(Root::of(*reg)) }))
    });
    let values = values.chain(sums.iter().map(|reg| (*reg, Value::Sum(*reg)))).collect();
    let nowhere = Operand::Int(0);
    let test =
        Test { inst: 0, op: CmpOp::Eq, ty: Ty::I32, value: nowhere, bound: nowhere, step: 0 };
    let plan = Plan {
        roles: Vec::new(),
        accesses: Vec::new(),
        test,
        widened: Vec::new(),
        inductions,
        sums,
        width: 0,
    };
    let assigned = block.insts.iter().filter_map(|inst| inst.result()).map(|result| result.0);
    let (assigned, tests) = (assigned.collect(), HashMap::new());
    let mut analysis = Analysis { values, plan, widths: 0b1111, tests, assigned, at: 0 };
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
    use CmpOp::{Eq, GeS, GeU, GtS, GtU, LeS, LeU, LtS, LtU, Ne};
    let op = match (op, when_true) {
        (op, true) => op,
        (Eq, false) => Ne,
        (GtS, false) => LeS,
        (GtU, false) => LeU,
        (GeS, false) => LtS,
        (GeU, false) => LtU,
        (_, false) => return None,
    };
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

    /// Cells that do not lie next to each other are read together with what lies between them; that must be of the
    /// lanes' width.
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
                (Some(own), Some(its)) if own.base == its.base && access.step == other.step => {
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

    /// Within a turn of vectors, loads come before the stores of earlier scalar turns. Where the distance is known,
    /// it must not matter; else it is tested when the loop runs.
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

    fn value(&self, operand: &Operand) -> Option<Value> {
        match operand {
            Operand::Reg(reg) => match self.values.get(reg) {
                Some(value) => Some(*value),
                None if self.assigned.contains(reg) => None,
                None => Some(Value::Linear(Linear { step: 0, root: Some(Root::of(*reg)) })),
            },
            _ => Some(Value::Linear(Linear { step: 0, root: None })),
        }
    }

    fn uniform(&self, operand: &Operand) -> Option<()> {
        matches!(self.value(operand)?, Value::Linear(Linear { step: 0, .. })).then_some(())
    }

    /// The range of an operand of lanes: one that has its own number in each turn, or does not change.
    fn range(&self, operand: &Operand, ty: Ty) -> Option<(i128, i128)> {
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
                self.test(*op, *ty, *dst, a, b)?;
                return Some(Role::Skip);
            }
            Inst::Load { mem, addr, off, .. } => self.load(*mem, addr, *off)?,
            Inst::Store { mem, addr, off, val } => return self.store(*mem, addr, *off, val),
            Inst::PtrSub { a, b, .. } => {
                self.uniform(a)?;
                self.uniform(b)?;
                (Role::Scalar, Value::Linear(Linear { step: 0, root: None }))
            }
            _ => return None,
        };
        let (reg, _) = inst.result()?;
        self.values.insert(reg, value);
        Some(role)
    }

    fn bin(&mut self, op: BinOp, ty: Ty, a: &Operand, b: &Operand) -> Option<(Role, Value)> {
        let (left, right) = (self.value(a)?, self.value(b)?);
        match (left, right) {
            (Value::Linear(left), Value::Linear(right)) if matches!(ty, Ty::I32 | Ty::I64) => {
                let linear = left.bin(op, right, b)?;
                return Some((Role::Scalar, Value::Linear(linear)));
            }
            (Value::Linear(Linear { step: 0, .. }), Value::Linear(Linear { step: 0, .. })) => {
                return Some((Role::Scalar, Value::Linear(Linear { step: 0, root: None })));
            }
            (Value::Sum(reg), Value::Lanes { .. }) | (Value::Lanes { .. }, Value::Sum(reg)) => {
                if op != BinOp::Add || !matches!(ty, Ty::I32 | Ty::I64) {
                    return None;
                }
                self.widths &= if ty == Ty::I32 { 4 } else { 8 };
                return Some((Role::Sum(reg), Value::Sum(reg)));
            }
            _ => {}
        }
        let (left, right) = (self.range(a, ty)?, self.range(b, ty)?);
        if matches!(ty, Ty::F32 | Ty::F64) {
            let (low, high) = full(ty);
            return Some((Role::Lanes, Value::Lanes { low, high }));
        }
        let (low, high) = self.int_range(op, ty, (left, a), (right, b))?;
        let role = match op {
            BinOp::ShrU => Role::ShiftRight { zeros: true },
            BinOp::ShrS => Role::ShiftRight { zeros: left.0 >= 0 },
            _ => Role::Lanes,
        };
        let (least, most) = full(ty);
        if low >= least && high <= most {
            return Some((role, Value::Lanes { low, high }));
        }
        // In a wider lane it would not wrap.
        self.widths &= if ty == Ty::I32 { 0b111 } else { 0b1111 };
        Some((role, Value::Lanes { low: least, high: most }))
    }

    /// The range of the result before it wraps.
    fn int_range(
        &mut self,
        op: BinOp,
        ty: Ty,
        (a, left): ((i128, i128), &Operand),
        (b, right): ((i128, i128), &Operand),
    ) -> Option<(i128, i128)> {
        let corners = |f: &dyn Fn(i128, i128) -> i128| {
            let all = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
            (all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0))
        };
        Some(match op {
            BinOp::Add => (a.0 + b.0, a.1 + b.1),
            BinOp::Sub => (a.0 - b.1, a.1 - b.0),
            BinOp::Mul => {
                // Bytes are multiplied by adding.
                let small = |operand: &Operand| matches!(operand, Operand::Int(1..=64));
                self.widths &= if small(left) || small(right) { !0 } else { !1 };
                corners(&|a, b| a.saturating_mul(b))
            }
            BinOp::And if b.0 >= 0 => (0, b.1),
            BinOp::And if a.0 >= 0 => (0, a.1),
            BinOp::Or | BinOp::Xor if a.0 >= 0 && b.0 >= 0 => {
                (0, ((a.1 | b.1) as u128 + 1).next_power_of_two() as i128 - 1)
            }
            BinOp::And | BinOp::Or | BinOp::Xor => full(ty),
            BinOp::Shl | BinOp::ShrS | BinOp::ShrU => self.shift(op, ty, a, right)?,
            _ => return None,
        })
    }

    fn shift(
        &mut self,
        op: BinOp,
        ty: Ty,
        a: (i128, i128),
        right: &Operand,
    ) -> Option<(i128, i128)> {
        let Operand::Int(by) = *right else { return None };
        let bits = if ty == Ty::I64 { 64 } else { 32 };
        let by = (by & (bits - 1)) as u32;
        for width in [1_u64, 2, 4, 8] {
            let own = 8 * width as u32;
            let fits = match op {
                BinOp::Shl => true,
                // What is shifted in must be what the lane's highest bits stand for.
                BinOp::ShrU if own == bits as u32 => true,
                _ if a.0 >= 0 => a.1 < 1 << own,
                BinOp::ShrS => a.0 >= -(1 << (own - 1)) && a.1 < 1 << (own - 1),
                _ => false,
            };
            if !fits || by >= own {
                self.widths &= !width;
            }
        }
        match op {
            BinOp::Shl => Some((a.0 << by, a.1 << by)),
            BinOp::ShrU if a.0 < 0 => {
                let (_, most) = full(ty);
                Some(if by == 0 { full(ty) } else { (0, (2 * most + 1) >> by) })
            }
            _ => Some((a.0 >> by, a.1 >> by)),
        }
    }

    fn conv(&mut self, op: ConvOp, from: Ty, to: Ty, src: &Operand) -> Option<(Role, Value)> {
        let is_float = |ty| matches!(ty, Ty::F32 | Ty::F64);
        let (low, high) = match self.value(src)? {
            Value::Linear(Linear { step: 0, .. }) => {
                return Some((Role::Scalar, Value::Linear(Linear { step: 0, root: None })));
            }
            Value::Linear(linear) => {
                match op {
                    ConvOp::Sext32 | ConvOp::Zext32 => {
                        let signed = op == ConvOp::Sext32;
                        self.plan.widened.push(Widened {
                            inst: self.at,
                            value: *src,
                            step: linear.step,
                            signed,
                        });
                    }
                    ConvOp::Wrap => {}
                    _ => return None,
                }
                let root = linear.root.filter(|_| op == ConvOp::Sext32);
                return Some((Role::Scalar, Value::Linear(Linear { root, ..linear })));
            }
            Value::Lanes { low, high } => (low, high),
            Value::Sum(_) => return None,
        };
        if is_float(from) || is_float(to) {
            return None;
        }
        let (least, most, bytes): (i128, i128, u64) = match op {
            ConvOp::Sext8 => (-128, 127, 1),
            ConvOp::Zext8 => (0, 255, 1),
            ConvOp::Sext16 => (-32768, 32767, 2),
            ConvOp::Zext16 => (0, 65535, 2),
            ConvOp::Sext32 | ConvOp::Wrap => (i128::from(i32::MIN), i128::from(i32::MAX), 4),
            ConvOp::Zext32 => (0, i128::from(u32::MAX), 4),
            _ => return None,
        };
        if low >= least && high <= most {
            return Some((Role::Same, Value::Lanes { low, high }));
        }
        // The lanes' low bits are right; wider lanes would need their high bits changed.
        self.widths &= 2 * bytes - 1;
        Some((Role::Same, Value::Lanes { low: least, high: most }))
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
        let root = Root::sum(from, by, base, index, scale);
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
            (step, 0) => Test { inst: self.at, op, ty, value: *a, bound: *b, step },
            (0, step) => Test { inst: self.at, op: swapped(op), ty, value: *b, bound: *a, step },
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

/// Bytes from the store to the other access, where that is the same in every turn and known.
pub(super) fn distance(store: &Access, other: &Access) -> Option<i64> {
    let (own, its) = (store.root?, other.root?);
    (own.base == its.base && store.step == other.step).then(|| its.off.wrapping_sub(own.off))
}

pub(super) fn size(mem: MemTy) -> i64 {
    match mem {
        MemTy::I8 | MemTy::U8 => 1,
        MemTy::I16 | MemTy::U16 => 2,
        MemTy::I32 | MemTy::F32 => 4,
        MemTy::I64 | MemTy::F64 | MemTy::Ptr => 8,
    }
}

fn full(ty: Ty) -> (i128, i128) {
    match ty {
        Ty::I32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    }
}

fn swapped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::LtS => CmpOp::GtS,
        CmpOp::LtU => CmpOp::GtU,
        CmpOp::LeS => CmpOp::GeS,
        CmpOp::LeU => CmpOp::GeU,
        CmpOp::GtS => CmpOp::LtS,
        CmpOp::GtU => CmpOp::LtU,
        CmpOp::GeS => CmpOp::LeS,
        CmpOp::GeU => CmpOp::LeU,
        same => same,
    }
}

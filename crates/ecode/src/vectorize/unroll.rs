//! Loops of few steps are unrolled: one test and one addition for all of them, and what lies at a
//! constant distance from iteration to iteration is found by constant offsets.

use super::{
    emit::Emitter,
    fixed,
    plan::{Kind, Plan, Role, Step, Test, Unrolled, Widened},
    scalar::{Carried, Linear, Root, carried, sum},
};
use crate::ir::{BinOp, BlockId, Body, CmpOp, ConvOp, Inst, Operand, Reg, Term, Ty};
use std::collections::{HashMap, HashSet};

/// Steps of an iteration, those apart that grow by a constant.
const MAX_OWN: usize = 24;
/// Steps of all unrolled iterations. More do not fit where decoded instructions are kept, with the
/// code around.
const MAX_UNROLLED: usize = 48;
/// Unrolled iterations at most.
const MAX_ITERATIONS: usize = 8;
/// Steps of a loop that is spelled out from its first iteration to its last.
const MAX_SPELLED_OUT: usize = 96;
/// A loop of a known number of iterations that takes this many passes at most is left as it is.
const MIN_PASSES: i64 = 2;
/// Offsets that go into loads and stores. They do not wrap, as addresses do.
const MAX_OFFSET: u64 = 1 << 16;

/// How the loop of block `id` can be unrolled. Where it takes few iterations, and does not lie in
/// another loop (`is_inner`), it is not worth the room.
pub(super) fn plan(body: &Body, id: BlockId, is_inner: bool) -> Option<Plan> {
    let block = &body.blocks[id.0 as usize];
    let mut analysis = Analysis::new(&block.insts)?;
    for (at, inst) in block.insts.iter().enumerate() {
        analysis.step(at, inst)?;
    }
    let Analysis { steps, tests, inductions, carried, widened, .. } = analysis;
    let Term::Branch { cond: Operand::Reg(cond), then, .. } = block.term else { return None };
    let test = *tests.get(&cond)?;
    let op = if then == id { test.op } else { test.op.negated() };
    let role = |step: &Step| if let Step::Line(_) = step { Role::Scalar } else { Role::Skip };
    let roles = steps.iter().map(role).collect();
    let own = steps.iter().filter(|step| **step == Step::Own).count();
    let unrolled = Unrolled { iterations: iterations(own)?, steps, carried };
    let mut plan = Plan {
        roles,
        accesses: Vec::new(),
        test: Test { op: counts(op, test.step)?, ..test },
        widened,
        inductions,
        sums: Vec::new(),
        width: 0,
        kind: Kind::Unrolled(unrolled),
    };
    if let Some(all) = fixed::count(body, id, &plan)
        && let Kind::Unrolled(unrolled) = &mut plan.kind
    {
        if !is_inner {
            return None;
        }
        if all > 2 && all as usize * own <= MAX_SPELLED_OUT {
            unrolled.iterations = all;
            let is_all_there = fixed::is_all_there(body, id, &plan);
            if let Kind::Unrolled(unrolled) = &mut plan.kind {
                unrolled.iterations -= i64::from(!is_all_there);
            }
        } else if all <= MIN_PASSES * unrolled.iterations {
            return None;
        }
    }
    Some(plan)
}

/// How many iterations of so many steps are unrolled.
fn iterations(own: usize) -> Option<i64> {
    let fits = (1..=MAX_OWN).contains(&own);
    let iterations =
        [MAX_ITERATIONS, 4, 2].into_iter().find(|iterations| iterations * own <= MAX_UNROLLED)?;
    fits.then_some(iterations as i64)
}

/// The comparison, if what changes by `step` may meet its end.
fn counts(op: CmpOp, step: i64) -> Option<CmpOp> {
    use CmpOp::{GeS, GeU, GtS, GtU, LeS, LeU, LtS, LtU, Ne};
    let up = matches!(op, LtS | LtU | LeS | LeU | Ne) && step > 0;
    let down = matches!(op, GtS | GtU | GeS | GeU | Ne) && step < 0;
    (up || down).then_some(op)
}

struct Analysis {
    /// What is known to change by a constant.
    values: HashMap<Reg, Linear>,
    assigned: HashSet<Reg>,
    /// Registers that steps use.
    used: HashSet<Reg>,
    steps: Vec<Step>,
    tests: HashMap<Reg, Test>,
    inductions: Vec<(Reg, i64)>,
    carried: Vec<Reg>,
    widened: Vec<Widened>,
}

impl Analysis {
    fn new(insts: &[Inst]) -> Option<Self> {
        let Carried { regs, uses } = carried(insts);
        let (mut inductions, mut carried) = (Vec::new(), Vec::new());
        for (reg, after) in regs {
            match after {
                Some((own, step)) if own == reg => inductions.push((reg, step)),
                _ => carried.push(reg),
            }
        }
        let value =
            |(reg, step): &(Reg, i64)| (*reg, Linear { step: *step, root: Some(Root::of(*reg)) });
        let values = inductions.iter().map(value).collect();
        let assigned = insts.iter().filter_map(|inst| Some(inst.result()?.0)).collect();
        let used = uses.into_keys().collect();
        let (steps, tests, widened) = (Vec::new(), HashMap::new(), Vec::new());
        let some = !inductions.is_empty();
        some.then_some(Self { values, assigned, used, steps, tests, inductions, carried, widened })
    }

    fn value(&self, operand: &Operand) -> Option<Linear> {
        match operand {
            Operand::Reg(reg) => match self.values.get(reg) {
                Some(linear) => Some(*linear),
                None if self.assigned.contains(reg) => None,
                None => Some(Linear { step: 0, root: Some(Root::of(*reg)) }),
            },
            _ => Some(Linear { step: 0, root: Root::constant(operand) }),
        }
    }

    /// Takes notice of a step; `None` if it is of a kind that is not taken in rows.
    fn step(&mut self, at: usize, inst: &Inst) -> Option<()> {
        let linear = match inst {
            Inst::Copy { src, .. } => self.value(src),
            Inst::Bin { op, ty: ty @ (Ty::I32 | Ty::I64), a, b, .. } => {
                let sides = self.value(a).zip(self.value(b));
                sides.and_then(|(a, b)| a.bin(*op, *ty, b))
            }
            Inst::Conv { op, src, .. } => self.conv(at, *op, src),
            Inst::PtrAdd { base, index, index_ty, scale, .. } => {
                let sides = self.value(base).zip(self.value(index));
                sides.and_then(|(base, by)| {
                    if *index_ty == Ty::I32 {
                        self.widen(at, *index, by.step, true);
                    }
                    let root = by.root.and_then(|root| root.times(*scale));
                    let root = sum(base, Linear { step: by.step, root });
                    let step = base.step.checked_add(by.step.checked_mul(*scale)?)?;
                    Some(Linear { step, root })
                })
            }
            Inst::Cmp { op, ty, dst, a, b } => {
                self.test(at, *op, *ty, *dst, a, b);
                None
            }
            Inst::Bin { .. }
            | Inst::Neg { .. }
            | Inst::PtrSub { .. }
            | Inst::Load { .. }
            | Inst::Store { .. }
            | Inst::Select { .. } => None,
            _ => return None,
        };
        if let Some((reg, _)) = inst.result() {
            match linear {
                Some(linear) => drop(self.values.insert(reg, linear)),
                None => drop(self.values.remove(&reg)),
            }
            if !matches!(inst, Inst::Cmp { .. }) {
                self.tests.remove(&reg);
            }
        }
        self.steps.push(match (linear, inst) {
            (Some(linear), _) => Step::Line(linear.step),
            (None, Inst::Cmp { dst, .. }) if !self.used.contains(dst) => Step::Test,
            _ => Step::Own,
        });
        Some(())
    }

    fn conv(&mut self, at: usize, op: ConvOp, src: &Operand) -> Option<Linear> {
        let linear = self.value(src)?;
        match op {
            ConvOp::Sext32 | ConvOp::Zext32 => {
                self.widen(at, *src, linear.step, op == ConvOp::Sext32);
                Some(linear)
            }
            ConvOp::Wrap => Some(Linear { root: None, ..linear }),
            _ if linear.step == 0 => Some(Linear { step: 0, root: None }),
            _ => None,
        }
    }

    fn widen(&mut self, inst: usize, value: Operand, step: i64, signed: bool) {
        if step != 0 {
            self.widened.push(Widened { inst, value, step, signed });
        }
    }

    fn test(&mut self, inst: usize, op: CmpOp, ty: Ty, dst: Reg, a: &Operand, b: &Operand) {
        let sides = self.value(a).zip(self.value(b));
        let test = match sides.filter(|_| matches!(ty, Ty::I32 | Ty::I64 | Ty::Ptr)) {
            Some((Linear { step, root }, Linear { step: 0, .. })) => {
                Some(Test { inst, op, ty, value: *a, bound: *b, step, root })
            }
            Some((Linear { step: 0, .. }, Linear { step, root })) => {
                Some(Test { inst, op: op.swapped(), ty, value: *b, bound: *a, step, root })
            }
            _ => None,
        };
        match test {
            Some(test) => drop(self.tests.insert(dst, test)),
            None => drop(self.tests.remove(&dst)),
        }
    }
}

/// Lets a load or store take what is to be added to its address as offset; returns what remains of
/// the address.
fn fold(inst: &mut Inst, now: &HashMap<Reg, Now>) -> Option<Operand> {
    let (Inst::Load { addr, off, .. } | Inst::Store { addr, off, .. }) = inst else { return None };
    let Operand::Reg(reg) = addr else { return None };
    let known = now.get(reg).filter(|known| known.more.unsigned_abs() <= MAX_OFFSET)?;
    *off = off.wrapping_add(known.more);
    Some(known.operand)
}

/// What a register is: an operand, and what is to be added to it.
#[derive(Clone, Copy)]
struct Now {
    operand: Operand,
    more: i64,
}

impl Emitter<'_> {
    /// The iterations of one pass.
    pub(super) fn unrolled(&mut self, unrolled: &Unrolled) {
        let (insts, inductions) = (self.insts, &self.plan.inductions);
        // By step: what its result is in the first iteration.
        let mut first = vec![None; insts.len()];
        let mut now: HashMap<Reg, Now> = HashMap::new();
        for iteration in 0..unrolled.iterations {
            for (reg, step) in inductions {
                let more = step.wrapping_mul(iteration);
                now.insert(*reg, Now { operand: Operand::Reg(*reg), more });
            }
            for (at, inst) in insts.iter().enumerate() {
                let change = match unrolled.steps[at] {
                    Step::Line(change) => change,
                    Step::Own => {
                        self.again(inst, &mut now);
                        continue;
                    }
                    Step::Test => continue,
                };
                let Some((dst, _)) = inst.result() else { continue };
                let operand = *first[at].get_or_insert_with(|| self.copy(inst, &now));
                now.insert(dst, Now { operand, more: change.wrapping_mul(iteration) });
            }
        }
        self.hand_over(unrolled, &now);
    }

    /// A step of the first iteration, where nothing is to be added to anything; returns its result.
    fn copy(&mut self, inst: &Inst, now: &HashMap<Reg, Now>) -> Operand {
        let operand = |operand: &Operand| match operand {
            Operand::Reg(reg) => now.get(reg).map_or(*operand, |now| now.operand),
            other => *other,
        };
        if let Inst::Copy { src, .. } = inst {
            return operand(src);
        }
        let mut inst = inst.clone();
        inst.operands_mut(&mut |own| *own = operand(own));
        Operand::Reg(self.fresh(inst))
    }

    /// Emits a step whose result goes to a new register.
    fn fresh(&mut self, mut inst: Inst) -> Reg {
        // INVARIANT: only steps with results come here.
        let old = inst.result().map_or(Reg(0), |(reg, _)| reg);
        let new = self.reg(self.body.regs[old.0 as usize]);
        inst.set_result(new);
        self.code.push(inst);
        new
    }

    /// A step of any iteration.
    fn again(&mut self, inst: &Inst, now: &mut HashMap<Reg, Now>) {
        if let Inst::Copy { dst, src: Operand::Reg(src), .. } = inst {
            let src = now.get(src).copied().unwrap_or(Now { operand: Operand::Reg(*src), more: 0 });
            now.insert(*dst, src);
            return;
        }
        let mut inst = inst.clone();
        let mut operands = Vec::new();
        inst.operands(&mut |operand| operands.push(*operand));
        // The address is the first operand.
        let folded = fold(&mut inst, now);
        for (index, operand) in operands.iter_mut().enumerate() {
            *operand = match folded.filter(|_| index == 0) {
                Some(base) => base,
                None => self.current(*operand, now),
            };
        }
        let mut operands = operands.into_iter();
        inst.operands_mut(&mut |operand| *operand = operands.next().unwrap_or(*operand));
        match inst.result() {
            Some((old, _)) => {
                let operand = Operand::Reg(self.fresh(inst));
                now.insert(old, Now { operand, more: 0 });
            }
            None => self.code.push(inst),
        }
    }

    /// What an operand of the loop's step is in this iteration.
    fn current(&mut self, operand: Operand, now: &HashMap<Reg, Now>) -> Operand {
        let Operand::Reg(reg) = operand else { return operand };
        match now.get(&reg) {
            Some(Now { operand, more: 0 }) => *operand,
            Some(Now { operand, more }) => self.plus(reg, *operand, *more),
            None => operand,
        }
    }

    /// `operand + more`, of the type that register `like` has.
    fn plus(&mut self, like: Reg, operand: Operand, more: i64) -> Operand {
        let (ty, more) = (self.body.regs[like.0 as usize], Operand::Int(more));
        if ty != Ty::Ptr {
            return self.bin(BinOp::Add, ty, operand, more);
        }
        let dst = self.reg(Ty::Ptr);
        let (index_ty, scale) = (Ty::I64, 1);
        self.code.push(Inst::PtrAdd { dst, base: operand, index: more, index_ty, scale });
        Operand::Reg(dst)
    }

    /// What the next pass takes over. It may be an old value of what is assigned here, so that goes
    /// into registers of its own first.
    fn hand_over(&mut self, unrolled: &Unrolled, now: &HashMap<Reg, Now>) {
        let mut values = Vec::new();
        for reg in &unrolled.carried {
            let ty = self.body.regs[reg.0 as usize];
            let Some(Now { operand, more }) = now.get(reg).copied() else { continue };
            let mut src = if more == 0 { operand } else { self.plus(*reg, operand, more) };
            if unrolled.carried.iter().any(|other| src == Operand::Reg(*other)) {
                let dst = self.reg(ty);
                self.code.push(Inst::Copy { ty, dst, src });
                src = Operand::Reg(dst);
            }
            values.push((*reg, ty, src));
        }
        for (dst, ty, src) in values {
            self.code.push(Inst::Copy { ty, dst, src });
        }
    }
}

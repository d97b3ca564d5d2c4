//! Where a bounded loop is to end so that it takes no more iterations than the counter has.

use super::{
    bounded::Plan,
    counting::{self, Counting, tick},
};
use crate::ir::{At, BinOp, CmpOp, ConvOp, Inst, Operand, Reg, Ty};
use std::collections::HashMap;

/// What the loop and its ends work with.
pub(super) struct Ends {
    /// Where the loop ends as written.
    pub(super) bound: Operand,
    /// Where it ends now.
    pub(super) last: Operand,
    pub(super) left: Left,
    /// What is compared with the bound behind the loop.
    pub(super) behind: Operand,
}

/// How the counter is known when the loop is left.
pub(super) enum Left {
    /// It counts the iterations up to `last`, which the loop meets exactly: what is not taken is
    /// given back.
    Last(Operand),
    /// It is what the variable has left up to here.
    Limit(Operand),
}

/// Numbers by which a variable is kept from wrapping.
struct Edge {
    /// Up to here an iteration does not wrap.
    edge: Operand,
    /// The other end of all numbers.
    opposite: Operand,
}

/// Steps in the block around a loop.
pub(super) struct Code<'c, 'b> {
    counting: &'c mut Counting<'b>,
    plan: &'c Plan,
    /// Iterations to the left by this are what the variable may change by.
    shift: i64,
    pub(super) insts: Vec<Inst>,
}

impl<'c, 'b> Code<'c, 'b> {
    pub(super) fn new(counting: &'c mut Counting<'b>, plan: &'c Plan, weight: i64) -> Self {
        let growth = i64::from(plan.growth.least_change().ilog2());
        let shift = growth - i64::from((weight as u64).next_power_of_two().ilog2());
        Self { counting, plan, shift, insts: Vec::new() }
    }

    /// What lies around the loop.
    pub(super) fn ends(&mut self) -> Ends {
        self.insts.push(tick(self.counting.fuel));
        let bound = self.bound();
        if self.plan.is_exact() {
            return self.exact(bound);
        }
        let limit = self.limit();
        let last = self.nearest(bound, limit);
        Ends { bound, last, left: Left::Limit(limit), behind: Operand::Reg(self.plan.var) }
    }

    fn bin(&mut self, op: BinOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.counting.reg(ty);
        self.insts.push(Inst::Bin { op, ty, dst, a, b, at: At::NOWHERE });
        Operand::Reg(dst)
    }

    fn conv(&mut self, op: ConvOp, from: Ty, to: Ty, src: Operand) -> Operand {
        let dst = self.counting.reg(to);
        self.insts.push(Inst::Conv { op, from, to, dst, src });
        Operand::Reg(dst)
    }

    fn cmp(&mut self, op: CmpOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        let dst = self.counting.reg(Ty::I32);
        self.insts.push(Inst::Cmp { op, ty, dst, a, b });
        Operand::Reg(dst)
    }

    fn select(&mut self, ty: Ty, cond: Operand, a: Operand, b: Operand) -> Operand {
        let dst = self.counting.reg(ty);
        self.insts.push(Inst::Select { ty, dst, cond, a, b });
        Operand::Reg(dst)
    }

    /// `a` or `b`: the one for which `a op b` holds.
    fn choose(&mut self, op: CmpOp, a: Operand, b: Operand) -> Operand {
        let cond = self.cmp(op, self.plan.ty, a, b);
        self.select(self.plan.ty, cond, a, b)
    }

    /// The type of distances between values of the variable.
    fn wide(&self) -> Ty {
        if self.plan.ty == Ty::Ptr { Ty::I64 } else { self.plan.ty }
    }

    /// `from - to`
    fn distance(&mut self, from: Operand, to: Operand) -> Operand {
        if self.plan.ty != Ty::Ptr {
            return self.bin(BinOp::Sub, self.plan.ty, from, to);
        }
        let dst = self.counting.reg(Ty::I64);
        self.insts.push(Inst::PtrSub { dst, a: from, b: to });
        Operand::Reg(dst)
    }

    /// The variable, `by` further in its direction.
    fn ahead(&mut self, by: Operand) -> Operand {
        let (var, up) = (Operand::Reg(self.plan.var), self.plan.growth.is_up());
        if self.plan.ty != Ty::Ptr {
            return self.bin(if up { BinOp::Add } else { BinOp::Sub }, self.plan.ty, var, by);
        }
        let dst = self.counting.reg(Ty::Ptr);
        let scale = if up { 1 } else { -1 };
        self.insts.push(Inst::PtrAdd { dst, base: var, index: by, index_ty: Ty::I64, scale });
        Operand::Reg(dst)
    }

    /// The bound, which the loop may compute in every iteration, in a register of its own.
    fn bound(&mut self) -> Operand {
        let mut places: HashMap<Reg, Operand> = HashMap::new();
        let now = |places: &HashMap<Reg, Operand>, operand: &Operand| match operand {
            Operand::Reg(reg) => places.get(reg).copied().unwrap_or(*operand),
            other => *other,
        };
        for step in &self.plan.before {
            let mut step = step.clone();
            step.operands_mut(&mut |operand| *operand = now(&places, operand));
            let Some((old, _)) = step.result() else { continue };
            let new = self.counting.reg(self.counting.body.regs[old.0 as usize]);
            step.set_result(new);
            places.insert(old, Operand::Reg(new));
            self.insts.push(step);
        }
        now(&places, &self.plan.bound)
    }

    /// What the counter allows the variable to change by, 1 or more.
    fn allowed(&mut self) -> Operand {
        let mut allowed = Operand::Reg(self.counting.fuel);
        if self.shift != 0 {
            let op = if self.shift > 0 { BinOp::Shl } else { BinOp::ShrS };
            allowed = self.bin(op, Ty::I32, allowed, Operand::Int(self.shift.abs()));
        }
        if self.shift < 0 {
            allowed = self.bin(BinOp::Or, Ty::I32, allowed, Operand::Int(1));
        }
        match self.wide() {
            Ty::I64 => self.conv(ConvOp::Sext32, Ty::I32, Ty::I64, allowed),
            _ => allowed,
        }
    }

    /// A distance as iterations.
    fn iterations(&mut self, distance: Operand) -> Operand {
        let mut iterations = distance;
        if self.wide() == Ty::I64 {
            iterations = self.conv(ConvOp::Wrap, Ty::I64, Ty::I32, iterations);
        }
        let op = if self.shift > 0 { BinOp::ShrS } else { BinOp::Shl };
        match self.shift {
            0 => iterations,
            by => self.bin(op, Ty::I32, iterations, Operand::Int(by.abs())),
        }
    }

    /// For a variable that meets each number between: it takes as many iterations as lie before the
    /// bound, or as there are; they are counted here.
    fn exact(&mut self, bound: Operand) -> Ends {
        let (plan, wide, var) = (self.plan, self.wide(), Operand::Reg(self.plan.var));
        let (from, to) = if plan.growth.is_up() { (bound, var) } else { (var, bound) };
        let ahead = self.distance(from, to);
        let allowed = self.allowed();
        let take = if plan.op == CmpOp::Ne {
            // Tested behind the first iteration: 0 is the way around all numbers.
            let others = self.bin(BinOp::Sub, wide, ahead, Operand::Int(1));
            let near = self.cmp(CmpOp::LtU, wide, others, allowed);
            self.select(wide, near, ahead, allowed)
        } else {
            let near = self.cmp(CmpOp::LtU, wide, ahead, allowed);
            // Where there is nothing behind the bound, the loop never ends, and so where it ends
            // does not matter.
            let all = match plan.takes_bound() {
                true => self.bin(BinOp::Add, wide, ahead, Operand::Int(1)),
                false => ahead,
            };
            let take = self.select(wide, near, all, allowed);
            // Behind the bound there is the first iteration, and only if it is tested behind that.
            let goes_on = self.cmp(plan.op, plan.ty, var, bound);
            let first = Operand::Int(i64::from(plan.tested_after));
            self.select(wide, goes_on, take, first)
        };
        let last = self.ahead(take);
        let iterations = self.iterations(take);
        self.insts.push(counting::take(self.counting.fuel, iterations));
        Ends { bound, last, left: Left::Last(last), behind: last }
    }

    /// Where the counter ends.
    fn limit(&mut self) -> Operand {
        let allowed = self.allowed();
        self.ahead(allowed)
    }

    /// The nearest of where the loop must end.
    fn nearest(&mut self, bound: Operand, limit: Operand) -> Operand {
        use CmpOp::{GeU, GtS, GtU, LeU, LtS, LtU};
        let (plan, ty, var) = (self.plan, self.plan.ty, Operand::Reg(self.plan.var));
        let (unsigned, up) = (matches!(plan.op, LtU | LeU | GtU | GeU), plan.growth.is_up());
        let (nearer, further) = match (unsigned, up) {
            (true, true) => (LtU, GtU),
            (true, false) => (GtU, LtU),
            (false, true) => (LtS, GtS),
            (false, false) => (GtS, LtS),
        };
        let mut last = limit;
        if unsigned && !up {
            // Below 0 there is nothing.
            let wraps = self.cmp(GtU, ty, limit, var);
            last = self.select(ty, wraps, Operand::Int(0), limit);
        }
        let Edge { edge, opposite } = self.edge(unsigned, up);
        last = self.choose(nearer, last, edge);
        last = self.choose(nearer, last, bound);
        // An iteration from there may wrap, and then be far from all of these: it is the only one.
        let beyond = self.cmp(further, ty, var, edge);
        self.select(ty, beyond, opposite, last)
    }

    /// Up to where the variable may go so that it does not wrap.
    fn edge(&self, unsigned: bool, up: bool) -> Edge {
        let wide = self.plan.ty == Ty::I64;
        let (least, most): (i128, i128) = match (unsigned, wide) {
            (true, true) => (0, u64::MAX.into()),
            (true, false) => (0, u32::MAX.into()),
            (false, true) => (i64::MIN.into(), i64::MAX.into()),
            (false, false) => (i32::MIN.into(), i32::MAX.into()),
        };
        let room = i128::from(self.plan.growth.most_change()) + 1;
        let (edge, opposite) = if up { (most - room, least) } else { (least + room, most) };
        let operand = |number: i128| match self.plan.ty {
            Ty::I64 => Operand::Int(number as i64),
            Ty::Ptr => Operand::Int((number as u32).into()),
            _ => Operand::Int((number as i32).into()),
        };
        Edge { edge: operand(edge), opposite: operand(opposite) }
    }

    /// Brings the counter up to date where the loop is left.
    pub(super) fn leaving(&mut self, left: &Left) -> Vec<Inst> {
        let (var, up) = (Operand::Reg(self.plan.var), self.plan.growth.is_up());
        let (Left::Last(end) | Left::Limit(end)) = *left;
        let (from, to) = if up { (end, var) } else { (var, end) };
        let distance = self.distance(from, to);
        let src = self.iterations(distance);
        let dst = self.counting.fuel;
        self.insts.push(match left {
            Left::Limit(_) => Inst::Copy { ty: Ty::I32, dst, src },
            Left::Last(_) => {
                let (a, at) = (Operand::Reg(dst), At::NOWHERE);
                Inst::Bin { op: BinOp::Add, ty: Ty::I32, dst, a, b: src, at }
            }
        });
        std::mem::take(&mut self.insts)
    }
}

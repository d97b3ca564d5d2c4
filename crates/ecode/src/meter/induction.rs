//! Induction-variable elimination: pointers that step through arrays, instead of being computed
//! from an index in every iteration.
//!
//! ```text
//!  for (i = 0; i < n; i++) s += a[i];      p = &a[0]; last = &a[…];
//!                                          do s += *p++; while (p != last); i = …;
//! ```
//!
//! An address of 32 bits can meet its end too early, or never, where the index does not. Here it
//! cannot: a loop that ends by the counter takes no more iterations than a strip has, and so its
//! pointers step less than once around memory.

use super::{
    bounded::Plan,
    counting::Counting,
    line::{Line, Trace},
};
use crate::ir::{BlockId, CmpOp, Inst, Loop, Operand, Reg, Term, Ty, VecInst};
use std::collections::{HashMap, HashSet};

/// Pointers for which there are registers.
const MAX_POINTERS: usize = 4;
/// Bytes that a pointer moves in an iteration; times the iterations of the longest strip, less than
/// its 32 bits.
const MAX_MOVE: u64 = 1 << 10;
/// Offsets that go into loads and stores: nothing lies below this address, so that the rest is none
/// below 0.
const MAX_OFFSET: i64 = 1 << 10;

/// A step that computes an address from the variable.
#[derive(Clone, Debug)]
struct Site {
    block: BlockId,
    at: usize,
    dst: Reg,
    line: Line,
}

/// Addresses that differ by constants only, and the pointer that they become.
#[derive(Clone, Debug)]
struct Pointer {
    line: Line,
    sites: Vec<Site>,
}

/// How the induction variable of a loop is eliminated.
#[derive(Debug)]
pub(super) struct Elimination {
    pointers: Vec<Pointer>,
    /// The steps that compute addresses, and the variable.
    steps: HashSet<(BlockId, usize)>,
}

impl Counting<'_> {
    /// How the loop's variable can be eliminated: it is used for addresses only, and the loop has
    /// only one end, which it meets exactly and at the end of an iteration.
    pub(super) fn elimination(&self, own: &Loop, plan: &Plan) -> Option<Elimination> {
        let (block, at) = (plan.growth.block, plan.growth.at);
        let is_simple = plan.is_exact() && !plan.takes_bound() && plan.ends_iterations(own.head);
        let only_end = own.blocks().all(|id| {
            let ways = self.body.blocks[id.0 as usize].term.successors();
            let stays = |to: &BlockId| own.contains(*to) && (*to == own.head || *to > id);
            id == plan.test && ways.len() == 2 || ways.iter().all(stays)
        });
        if !is_simple || !only_end || !matches!(plan.ty, Ty::I32 | Ty::I64) {
            return None;
        }
        let trace = |block, site| Trace::of(self, own, plan, (block, site));
        let (_, steps) = trace(block, at)?;
        let steps = steps.into_iter().chain([(block, at)]).collect();
        let mut eliminated = Elimination { pointers: Vec::new(), steps };
        for id in own.blocks() {
            for (at, inst) in self.body.blocks[id.0 as usize].insts.iter().enumerate() {
                let Inst::PtrAdd { dst, .. } = *inst else { continue };
                if let Some((mut line, steps)) = trace(id, at) {
                    eliminated.steps.extend(steps);
                    let is_after = match id == block {
                        true => at > plan.growth.at,
                        false => self.dominators.dominates(block, id),
                    };
                    if is_after {
                        // Behind the change the variable is one step ahead.
                        let by = line.by.wrapping_mul(plan.growth.least);
                        line.off = line.off.wrapping_add(by);
                    }
                    eliminated.point(Site { block: id, at, dst, line });
                }
            }
        }
        // An address that others follow from is a step to them.
        let steps = &eliminated.steps;
        eliminated.pointers.iter_mut().for_each(|pointer| {
            pointer.sites.retain(|site| !steps.contains(&(site.block, site.at)));
        });
        eliminated.pointers.retain(|pointer| !pointer.sites.is_empty());
        let moves = |pointer: &Pointer| (1..=MAX_MOVE).contains(&pointer.line.by.unsigned_abs());
        let fits = (1..=MAX_POINTERS).contains(&eliminated.pointers.len())
            && eliminated.pointers.iter().all(moves)
            && self.is_used_for_nothing_else(own, plan, &eliminated);
        fits.then_some(eliminated)
    }

    fn is_used_for_nothing_else(&self, own: &Loop, plan: &Plan, eliminated: &Elimination) -> bool {
        let step = |(block, at): &(BlockId, usize)| {
            let inst = &self.body.blocks[block.0 as usize].insts[*at];
            inst.result().map(|(reg, _)| reg)
        };
        let follows = eliminated.steps.iter().filter_map(step).filter(|reg| *reg != plan.var);
        let follows: HashSet<Reg> = follows.collect();
        let sites: HashSet<(BlockId, usize)> = (eliminated.pointers.iter())
            .flat_map(|pointer| &pointer.sites)
            .map(|site| (site.block, site.at))
            .collect();
        let uses = |id: BlockId, operand: &Operand| match operand {
            Operand::Reg(reg) => follows.contains(reg) || *reg == plan.var && own.contains(id),
            _ => false,
        };
        (0..self.body.blocks.len()).all(|index| {
            let (id, block) = (BlockId(index as u32), &self.body.blocks[index]);
            let mut free = true;
            block.term.operands(&mut |operand| free &= !uses(id, operand));
            block.insts.iter().enumerate().all(|(at, inst)| {
                let mut used = false;
                inst.operands(&mut |operand| used |= uses(id, operand));
                let is_test = id == plan.test && at == plan.at;
                !used
                    || is_test
                    || sites.contains(&(id, at))
                    || eliminated.steps.contains(&(id, at))
            }) && free
        })
    }

    /// Lets the pointers of a loop of fixed iterations step, to the constant that its variable
    /// meets.
    pub(super) fn eliminate_fixed(&mut self, own: &Loop, plan: &Plan) {
        let Some(eliminated) = self.elimination(own, plan) else { return };
        let (before, test) = self.go(own, plan, &eliminated, plan.bound);
        let around = BlockId(self.body.blocks.len() as u32);
        self.enter_by(own, around);
        self.block(before, Term::Jump(own.head));
        let last = Inst::Copy { ty: plan.ty, dst: plan.var, src: plan.bound };
        let other = self.block(vec![last], Term::Jump(plan.leaves));
        let goes_on = self.reg(Ty::I32);
        let end = &mut self.body.blocks[plan.test.0 as usize];
        end.insts.push(test(goes_on));
        end.term = Term::Branch { cond: Operand::Reg(goes_on), then: own.head, other };
    }

    /// Lets the pointers step: returns what comes before the loop, and the test by which it goes on
    /// to `last`.
    pub(super) fn go(
        &mut self,
        own: &Loop,
        plan: &Plan,
        eliminated: &Elimination,
        last: Operand,
    ) -> (Vec<Inst>, impl FnOnce(Reg) -> Inst + use<>) {
        let (mut before, mut moves, mut walkers) = (Vec::new(), Vec::new(), Vec::new());
        for Pointer { line, sites } in &eliminated.pointers {
            let walker = self.reg(Ty::Ptr);
            let by = line.by.wrapping_mul(plan.growth.least);
            let start = Line { off: line.off.wrapping_sub(by), ..line.clone() };
            self.place(&start, plan.ty, Operand::Reg(plan.var), walker, &mut before);
            moves.push(ptr_add(walker, Operand::Reg(walker), Operand::Int(by)));
            for site in sites {
                let off = Operand::Int(site.line.off.wrapping_sub(line.off));
                let insts = &mut self.body.blocks[site.block.0 as usize].insts;
                insts[site.at] = ptr_add(site.dst, Operand::Reg(walker), off);
            }
            walkers.push((walker, start));
        }
        // The sum of a constant would be added up in every iteration.
        let tested = walkers.iter().find(|(_, line)| matches!(line.base, Operand::Reg(_)));
        let (walker, line) = tested.unwrap_or(&walkers[0]);
        let end = self.reg(Ty::Ptr);
        self.place(line, plan.ty, last, end, &mut before);
        let (a, b) = (Operand::Reg(*walker), Operand::Reg(end));
        self.replace(own, eliminated, moves);
        (before, move |dst| Inst::Cmp { op: CmpOp::Ne, ty: Ty::Ptr, dst, a, b })
    }

    /// Computes the line at `var`.
    fn place(&mut self, line: &Line, ty: Ty, var: Operand, dst: Reg, out: &mut Vec<Inst>) {
        let base = match line.base {
            Operand::Slot(slot, _) => Operand::Slot(slot, line.off),
            Operand::Global(global, _) => Operand::Global(global, line.off),
            other => other,
        };
        let off = if base == line.base { line.off } else { 0 };
        out.push(ptr_add(dst, base, Operand::Int(off)));
        let terms = line
            .terms
            .iter()
            .map(|(reg, by)| (Operand::Reg(*reg), self.body.regs[reg.0 as usize], *by));
        for (index, index_ty, scale) in terms.chain([(var, ty, line.by)]) {
            out.push(Inst::PtrAdd { dst, base: Operand::Reg(dst), index, index_ty, scale });
        }
    }

    /// Takes the steps away, and lets the pointers move where each iteration starts: a sum of 32
    /// bits that the iteration itself computes is known to have no more.
    fn replace(&mut self, own: &Loop, eliminated: &Elimination, mut moves: Vec<Inst>) {
        let walkers: Vec<Reg> = moves.iter().filter_map(Inst::result).map(|own| own.0).collect();
        for id in own.blocks() {
            let mut at = 0;
            let insts = &mut self.body.blocks[id.0 as usize].insts;
            insts.retain(|_| {
                at += 1;
                !eliminated.steps.contains(&(id, at - 1))
            });
            if id == own.head {
                insts.splice(0..0, moves.drain(..));
            }
            offsets(insts, &walkers);
        }
    }
}

fn ptr_add(dst: Reg, base: Operand, index: Operand) -> Inst {
    Inst::PtrAdd { dst, base, index, index_ty: Ty::I64, scale: 1 }
}

/// Lets loads and stores take what is added to one of the `walkers` as their offset.
fn offsets(insts: &mut [Inst], walkers: &[Reg]) {
    // What is a walker plus a constant, up to here.
    let mut known: HashMap<Reg, (Reg, i64)> = HashMap::new();
    for inst in insts {
        if let Inst::Load { addr, off, .. }
        | Inst::Store { addr, off, .. }
        | Inst::Vec(
            VecInst::Load { addr, off, .. }
            | VecInst::LoadWiden { addr, off, .. }
            | VecInst::Store { addr, off, .. },
        ) = inst
            && let Operand::Reg(reg) = addr
            && let Some((walker, more)) = known.get(reg)
        {
            (*addr, *off) = (Operand::Reg(*walker), off.wrapping_add(*more));
        }
        let Some((dst, _)) = inst.result() else { continue };
        known.retain(|reg, (walker, _)| *reg != dst && *walker != dst);
        if let Inst::PtrAdd { base: Operand::Reg(walker), index: Operand::Int(off), .. } = inst
            && walkers.contains(walker)
            && (0..MAX_OFFSET).contains(off)
            && dst != *walker
        {
            known.insert(dst, (*walker, *off));
        }
    }
}

impl Elimination {
    /// Takes a site to the others that differ from it by a constant.
    fn point(&mut self, site: Site) {
        let same = |pointer: &&mut Pointer| {
            let (a, b) = (&pointer.line, &site.line);
            (a.base, a.by, &a.terms) == (b.base, b.by, &b.terms)
        };
        match self.pointers.iter_mut().find(same) {
            Some(pointer) => {
                pointer.line.off = pointer.line.off.min(site.line.off);
                pointer.sites.push(site);
            }
            None => self.pointers.push(Pointer { line: site.line.clone(), sites: vec![site] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Input, compile};

    fn eliminates(text: &str) -> bool {
        let text =
            format!("static char a[256]; long proc(long n) {{ long h = 0; {text} return h; }}");
        let module = compile(&Input::new("test.e", &text)).unwrap().module;
        module.with_counters().to_string().contains("Ne.Ptr")
    }

    #[test]
    fn pointers_walk_where_the_variable_is_used_for_addresses_only() {
        for (text, want) in [
            ("for (long i = 0; i < n; i++) h ^= a[i];", true),
            ("for (long i = n; i > 0; i--) h ^= a[2 * i + 1] + a[n - i];", true),
            ("for (int i = 0; i < 100; i++) h ^= a[i];", true),
            ("long i; for (i = 0; i < n; i++) h ^= a[i]; h += i;", true),
            ("for (long i = 0; i < n; i++) h ^= a[i] + i;", false),
            ("for (long i = 0; i < n; i++) h ^= a[i & 15];", false),
            ("for (long i = 0; i <= n; i++) h ^= a[i];", false),
            ("for (long i = 0; i < n; i += 2) h ^= a[i];", false),
            ("for (long i = 0; i < n; i++) if ((h ^= a[i]) == 3) break;", false),
            ("for (long i = 0; i < n; i++) h ^= a[3000 * i];", false),
            ("for (int i = 0; i < 3; i++) h ^= a[i];", false),
        ] {
            assert_eq!(eliminates(text), want, "{text}");
        }
    }
}

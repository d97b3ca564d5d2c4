//! Loops of a few iterations whose number is known: their vectors follow one another, without
//! tests.

use super::{
    analyse::distance,
    emit::Emitter,
    plan::{Kind, Plan},
};
use crate::ir::{Block, BlockId, Body, CmpOp, Inst, Lane, Live, Operand, Reg, Term, VecInst};

/// Vectors that are spelled out.
const MAX_VECTORS: i64 = 8;
/// Beyond these numbers something might wrap.
const SMALL: i64 = 1 << 20;

/// How many vector iterations the loop takes, and where it goes then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iterations {
    vectors: i64,
    next: BlockId,
}

/// The loop's iterations, if they are known and nothing must be tested when it runs.
pub(super) fn iterations(body: &Body, id: BlockId, plan: &Plan) -> Option<Iterations> {
    let accesses = &plan.accesses;
    let stores = accesses.iter().enumerate().filter(|(_, access)| access.is_store);
    let is_known = |(index, store)| {
        let known = |(other, access)| other == index || distance(store, access).is_some();
        accesses.iter().enumerate().all(known)
    };
    let count = count(body, id, plan).filter(|_| stores.into_iter().all(is_known))?;
    let lanes = plan.iterations();
    let exit = exit(body, id)?;
    let all = count % lanes == 0 && is_all_there(body, id, plan);
    let (vectors, next) = if all { (count / lanes, exit) } else { ((count - 1) / lanes, id) };
    (1..=MAX_VECTORS).contains(&vectors).then_some(Iterations { vectors, next })
}

/// How many iterations it takes.
pub(super) fn count(body: &Body, id: BlockId, plan: &Plan) -> Option<i64> {
    let (test, Operand::Int(bound)) = (plan.test, plan.test.bound) else { return None };
    let root = test.root?;
    let start = start(body, id, root.as_register()?)?;
    let small = |number: i64| (-SMALL..SMALL).contains(&number);
    if !small(start)
        || !small(root.off)
        || !small(bound)
        || matches!(test.op, CmpOp::LtU | CmpOp::LeU) && (start < 0 || bound < 0)
        // Below 0 there are large numbers.
        || matches!(test.op, CmpOp::GtU | CmpOp::GeU)
    {
        return None;
    }
    let goes_on = |iteration: &i64| {
        let value = start + root.off + test.step * iteration;
        match test.op {
            CmpOp::LtS | CmpOp::LtU => value < bound,
            CmpOp::LeS | CmpOp::LeU => value <= bound,
            CmpOp::GtS => value > bound,
            CmpOp::GeS => value >= bound,
            _ => value != bound,
        }
    };
    let most = (MAX_VECTORS + 1) * 16;
    (0..most).find(|iteration| !goes_on(iteration)).map(|iteration| iteration + 1)
}

/// What the register is where the loop is entered.
fn start(body: &Body, id: BlockId, reg: Reg) -> Option<i64> {
    let preds = body.predecessors();
    let mut ways = preds[id.0 as usize].iter().filter(|pred| **pred != id);
    let before = ways.next().filter(|_| ways.next().is_none())?;
    let insts = &body.blocks[before.0 as usize].insts;
    match insts.iter().rfind(|inst| inst.result().is_some_and(|(own, _)| own == reg))? {
        Inst::Copy { src: Operand::Int(start), .. } => Some(*start),
        _ => None,
    }
}

fn exit(body: &Body, id: BlockId) -> Option<BlockId> {
    body.blocks[id.0 as usize].term.successors().into_iter().find(|to| *to != id)
}

/// Whether the new iterations leave everything behind that is used there.
pub(super) fn is_all_there(body: &Body, id: BlockId, plan: &Plan) -> bool {
    let Some(exit) = exit(body, id) else { return false };
    let live = Live::new(body);
    let results = body.blocks[id.0 as usize].insts.iter().filter_map(|inst| inst.result());
    let mut used =
        results.map(|(reg, _)| reg).filter(|reg| live.at_start[exit.0 as usize].contains(*reg));
    let carried = match &plan.kind {
        Kind::Vectors => &plan.sums,
        Kind::Unrolled(unrolled) => &unrolled.carried,
    };
    used.all(|reg| carried.contains(&reg) || plan.inductions.iter().any(|(own, _)| *own == reg))
}

impl Emitter<'_> {
    /// The vectors of all iterations; returns their block.
    pub(super) fn spelled_out(&mut self, iterations: Iterations) -> BlockId {
        for (_, lanes) in self.sums.clone() {
            let splat = VecInst::Splat { lane: Lane::I32, dst: lanes, src: Operand::Int(0) };
            self.code.push(Inst::Vec(splat));
        }
        for _ in 0..iterations.vectors {
            self.iteration();
        }
        for (sum, lanes) in self.sums.clone() {
            self.add_up(sum, lanes);
        }
        let insts = std::mem::take(&mut self.code);
        self.body.blocks.push(Block { insts, term: Term::Jump(iterations.next) });
        BlockId(self.body.blocks.len() as u32 - 1)
    }
}

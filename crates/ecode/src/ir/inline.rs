//! Small functions are written out where they are called.
//!
//! Only functions without loops, calls and a frame: they take no time that is counted, and no array
//! of theirs comes to lie with the caller's, behind its guard.

use super::{Block, BlockId, Body, Callee, FuncId, Inst, Live, Module, Operand, Reg, Term, Ty};

/// Steps of a function that is written out.
const MAX_STEPS: usize = 16;
/// Blocks of it.
const MAX_BLOCKS: usize = 12;
/// Steps that a function may grow by, and all together: code takes time to be made.
const MAX_GROWTH: usize = 400;
const MAX_ALL_GROWTH: usize = 10_000;

/// A function that can be written out.
#[derive(Clone)]
struct Small {
    body: Body,
    params: usize,
    /// Registers that may be used before they are assigned: they start as zero.
    zeroed: Vec<Reg>,
}

impl Module {
    /// Writes small functions out where others call them. They stay, for calls by address and from
    /// without.
    pub(crate) fn inline(&mut self) {
        // A function that is called is known before most of its callers.
        let mut small: Vec<Option<Small>> = vec![None; self.funcs.len()];
        let mut room = MAX_ALL_GROWTH;
        for index in 0..self.funcs.len() {
            let params = self.sigs[self.funcs[index].sig.0 as usize].params.len();
            let Some(body) = &mut self.funcs[index].body else { continue };
            let grown = if body.is_large() { 0 } else { body.inline(&small, room) };
            if grown > 0 {
                body.prune();
                room -= grown;
            }
            small[index] = Small::of(body, params);
        }
    }
}

impl Small {
    fn of(body: &Body, params: usize) -> Option<Self> {
        let steps = || body.blocks.iter().flat_map(|block| &block.insts);
        let is_plain = |inst: &Inst| {
            !matches!(inst, Inst::Call { .. } | Inst::MemCopy { .. } | Inst::MemZero { .. })
        };
        let forward = |(index, block): (usize, &Block)| {
            block.term.successors().iter().all(|to| to.0 as usize > index)
        };
        let fits = body.slots.is_empty()
            && body.blocks.len() <= MAX_BLOCKS
            && steps().count() <= MAX_STEPS
            && steps().all(is_plain)
            && body.blocks.iter().enumerate().all(forward);
        fits.then(|| {
            let live = Live::new(body);
            let zeroed = live.at_start[0].iter().filter(|reg| reg.0 as usize >= params);
            Self { body: body.clone(), params, zeroed: zeroed.collect() }
        })
    }

    fn steps(&self) -> usize {
        let insts: usize = self.body.blocks.iter().map(|block| block.insts.len()).sum();
        1 + insts + self.params + self.zeroed.len()
    }
}

impl Body {
    /// Writes out what there is `room` for; how many steps that are.
    fn inline(&mut self, small: &[Option<Small>], room: usize) -> usize {
        let (mut grown, mut index) = (0, 0);
        let room = MAX_GROWTH.min(room);
        while index < self.blocks.len() {
            let found = self.blocks[index].insts.iter().enumerate().find_map(|(at, inst)| {
                let Inst::Call { callee: Callee::Direct(FuncId(id)), .. } = inst else {
                    return None;
                };
                let small = small[*id as usize].as_ref()?;
                (grown + small.steps() <= room).then_some((at, small))
            });
            if let Some((at, small)) = found {
                // What follows the call goes on in a later block.
                self.write_out(index, at, small);
                grown += small.steps();
            }
            index += 1;
        }
        grown
    }

    /// Puts the function in the place of the call that is step `at` of block `index`.
    fn write_out(&mut self, index: usize, at: usize, small: &Small) {
        let (first_reg, first_block) = (self.regs.len() as u32, self.blocks.len() as u32);
        let own = |reg: Reg| Reg(first_reg + reg.0);
        let place = |id: BlockId| BlockId(first_block + id.0);
        let behind = place(BlockId(small.body.blocks.len() as u32));
        self.regs.extend(&small.body.regs);
        let block = &mut self.blocks[index];
        let rest = block.insts.split_off(at + 1);
        let call = block.insts.pop();
        let Some(Inst::Call { dst, args, .. }) = call else { return };
        let ty = |reg: Reg| small.body.regs[reg.0 as usize];
        let copy = |reg: Reg, src| Inst::Copy { ty: ty(reg), dst: own(reg), src };
        let params = (0..small.params as u32).map(Reg).zip(args);
        block.insts.extend(params.map(|(reg, arg)| copy(reg, arg)));
        let zeroed = small.zeroed.iter().map(|reg| copy(*reg, zero(ty(*reg))));
        block.insts.extend(zeroed);
        let term = std::mem::replace(&mut block.term, Term::Jump(place(BlockId(0))));
        let mut rename = |operand: &mut Operand| {
            if let Operand::Reg(reg) = operand {
                *reg = own(*reg);
            }
        };
        for Block { insts, term } in &small.body.blocks {
            let (mut insts, mut term) = (insts.clone(), term.clone());
            for inst in &mut insts {
                inst.operands_mut(&mut rename);
                if let Some((reg, _)) = inst.result() {
                    inst.set_result(own(reg));
                }
            }
            term.operands_mut(&mut rename);
            term.retarget(place);
            if let Term::Return(value) = term {
                if let Some((dst, src)) = dst.zip(value) {
                    insts.push(Inst::Copy { ty: self.regs[dst.0 as usize], dst, src });
                }
                term = Term::Jump(behind);
            }
            self.blocks.push(Block { insts, term });
        }
        self.blocks.push(Block { insts: rest, term });
    }
}

fn zero(ty: Ty) -> Operand {
    if matches!(ty, Ty::F32 | Ty::F64) { Operand::Float(0) } else { Operand::Int(0) }
}

#[cfg(test)]
mod tests {
    use crate::{Input, compile};

    fn calls(text: &str) -> usize {
        let mut module = compile(&Input::new("test.e", text)).unwrap().module;
        module.inline();
        module.verify().unwrap();
        module.to_string().matches("call ").count()
    }

    #[test]
    fn functions_are_written_out_if_they_are_small_and_have_neither_loops_nor_calls_nor_arrays() {
        for (text, want) in [
            (
                "static int f(int a) { return a < 3 ? a : 3; } int proc(int a) { return f(a) + f(a + 1); }",
                0,
            ),
            (
                "static int f(int a) { return a + 1; } static int g(int a) { return f(a) * 2; } int proc(int a) { return g(a); }",
                0,
            ),
            ("static void f(int *a) { *a = 1; } int proc(int a) { f(&a); return a; }", 0),
            (
                "static int f(int a) { while (a > 9) a -= 9; return a; } int proc(int a) { return f(a); }",
                1,
            ),
            (
                "static int f(int a) { int b[2]; b[a & 1] = 1; return b[0]; } int proc(int a) { return f(a); }",
                1,
            ),
            (
                "static int f(int a) { return a ? f(a - 1) : 0; } int proc(int a) { return f(a); }",
                2,
            ),
            ("int g(int a); int proc(int a) { return g(a); } int g(int a) { return a + 1; }", 0),
        ] {
            assert_eq!(calls(text), want, "{text}");
        }
    }
}

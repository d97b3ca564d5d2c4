//! Where the registers of a function are kept: in machine registers or in cells of its frame.

use super::asm::Mreg;
use ecode::ir::{Body, Inst, Live, Operand, Reg};

/// Machine registers that hold registers of the program. 0 to 2 are for single steps, 9 is the
/// frame.
const FIRST: u8 = 3;
const COUNT: usize = 6;
/// What a use counts inside a loop, compared with outside.
const LOOP: u64 = 8;
/// Loops deeper than this count as that deep.
const MAX_DEPTH: u32 = 4;

/// Bytes at the head of a frame: where it returns to, and where its slots lie.
pub(super) const HEAD: i16 = 16;
/// The farthest that a frame reaches: so do the arguments behind it.
pub(super) const MAX_FRAME: usize = 16_000;

pub(super) struct Homes {
    /// By register of the program.
    mregs: Vec<Option<Mreg>>,
    /// By register of the program: its cell's distance from the frame. Parameters come first, in
    /// order.
    cells: Vec<Option<i16>>,
    /// Where the next function's frame begins.
    pub(super) frame_bytes: i16,
}

/// From the first to the last place where a register matters, and what that is worth.
struct Range {
    reg: usize,
    start: u32,
    end: u32,
    /// Uses, those in loops counting more, less what it costs to keep it over calls.
    worth: i64,
    /// Live where the program may leave: it needs a cell too.
    is_saved: bool,
}

impl Homes {
    /// `None` when the frame would be too large.
    pub(super) fn new(body: &Body, params: usize, live: &Live) -> Option<Self> {
        let mut ranges = ranges(body, live);
        let mut mregs = vec![None; body.regs.len()];
        let mut taken: [Vec<(u32, u32)>; COUNT] = Default::default();
        ranges.sort_by_key(|range| std::cmp::Reverse(range.value()));
        for range in ranges.iter().filter(|range| range.worth > 0) {
            let fits = |taken: &Vec<(u32, u32)>| {
                taken.iter().all(|(start, end)| range.end <= *start || *end <= range.start)
            };
            if let Some(index) = taken.iter().position(fits) {
                taken[index].push((range.start, range.end));
                mregs[range.reg] = Some(Mreg(FIRST + index as u8));
            }
        }
        let mut cells = vec![None; body.regs.len()];
        let mut next = 0;
        let saved = ranges.iter().filter(|range| range.is_saved || mregs[range.reg].is_none());
        let mut saved: Vec<usize> = saved.map(|range| range.reg).filter(|r| *r >= params).collect();
        saved.sort_unstable();
        for reg in (0..params).chain(saved) {
            cells[reg] = Some(i16::try_from(next * 8).ok()? + HEAD);
            next += 1;
        }
        let bytes = next * 8 + HEAD as usize;
        let frame_bytes = i16::try_from(bytes).ok().filter(|_| bytes < MAX_FRAME)?;
        Some(Self { mregs, cells, frame_bytes })
    }

    pub(super) fn mreg(&self, reg: Reg) -> Option<Mreg> {
        self.mregs[reg.0 as usize]
    }

    /// The cell of a register that has one.
    pub(super) fn cell(&self, reg: Reg) -> i16 {
        // INVARIANT: whatever is asked for its cell is a parameter, has no machine register, or is
        // saved.
        self.cells[reg.0 as usize].unwrap_or(HEAD)
    }
}

impl Range {
    /// Worth for the time that it takes a register.
    fn value(&self) -> i64 {
        self.worth * 64 / i64::from(self.end - self.start + 1)
    }
}

fn ranges(body: &Body, live: &Live) -> Vec<Range> {
    let weights = weights(body);
    let fresh = |reg| Range { reg, start: u32::MAX, end: 0, worth: 0, is_saved: false };
    let mut ranges: Vec<Range> = (0..body.regs.len()).map(fresh).collect();
    let mut at = 0;
    for (index, block) in body.blocks.iter().enumerate() {
        let weight = weights[index] as i64;
        let (start, end) = (at, at + 2 * block.insts.len() as u32 + 2);
        let mut touch = |reg: Reg, at: u32, worth: i64| {
            let range = &mut ranges[reg.0 as usize];
            range.start = range.start.min(at);
            range.end = range.end.max(at + 1);
            range.worth += worth;
        };
        live.at_start[index].iter().for_each(|reg| touch(reg, start, 0));
        live.at_end[index].iter().for_each(|reg| touch(reg, end, 0));
        for (step, inst) in block.insts.iter().enumerate() {
            let at = start + 2 * step as u32;
            let mut used = |operand: &Operand| {
                if let Operand::Reg(reg) = operand {
                    touch(*reg, at, weight);
                }
            };
            inst.operands(&mut used);
            if let Some((reg, _)) = inst.result() {
                touch(reg, at + 1, weight);
            }
        }
        block.term.operands(&mut |operand| {
            if let Operand::Reg(reg) = operand {
                touch(*reg, end - 2, weight);
            }
        });
        for (_, inst, after) in live.backwards(body, index) {
            if let Inst::Call { dst, .. } = inst {
                for reg in after.iter().filter(|reg| Some(*reg) != *dst) {
                    ranges[reg.0 as usize].is_saved = true;
                    ranges[reg.0 as usize].worth -= 2 * weight;
                }
            }
        }
        at = end + 1;
    }
    for header in headers(body) {
        live.at_start[header].iter().for_each(|reg| ranges[reg.0 as usize].is_saved = true);
    }
    ranges.retain(|range| range.start <= range.end);
    ranges
}

/// The blocks that a jump back leads to.
pub(super) fn headers(body: &Body) -> Vec<usize> {
    let mut found: Vec<usize> = back_edges(body).map(|(to, _)| to).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Where jumps back lead, and where they are.
fn back_edges(body: &Body) -> impl Iterator<Item = (usize, usize)> + '_ {
    body.blocks.iter().enumerate().flat_map(|(from, block)| {
        let next = block.term.successors().into_iter().map(|to| to.0 as usize);
        next.filter(move |to| *to <= from).map(move |to| (to, from))
    })
}

/// How often each block runs, guessed from how many loops it is in.
fn weights(body: &Body) -> Vec<u64> {
    let mut depth = vec![0_u32; body.blocks.len()];
    for header in headers(body) {
        let last = back_edges(body).filter(|(to, _)| *to == header).map(|(_, from)| from).max();
        depth[header..=last.unwrap_or(header)].iter_mut().for_each(|depth| *depth += 1);
    }
    depth.into_iter().map(|depth| LOOP.pow(depth.min(MAX_DEPTH))).collect()
}

//! Stores of few bytes take no more than the low ones: what only changes the others is not computed
//! for them.

use super::{Body, ConvOp, Inst, MemTy, Operand, Reg};
use std::collections::HashMap;

/// Conversions that are remembered, so that a block takes no longer than its length.
const MAX_CONVERSIONS: usize = 32;

/// The low bits that a step leaves as they are in its operand.
fn kept(inst: &Inst) -> Option<(Reg, Operand, u32)> {
    let Inst::Conv { op, dst, src, .. } = inst else { return None };
    let bits = match op {
        ConvOp::Sext8 | ConvOp::Zext8 => 8,
        ConvOp::Sext16 | ConvOp::Zext16 => 16,
        _ => return None,
    };
    Some((*dst, *src, bits))
}

impl Body {
    /// Lets stores of 8 and 16 bits store what was to be converted to so many bits, instead of the
    /// result.
    pub(crate) fn narrow_stores(&mut self) {
        let mut changed = false;
        for block in &mut self.blocks {
            // What has the same low bits as a register, and how many, up to here.
            let mut same: HashMap<Reg, (Operand, u32)> = HashMap::new();
            for inst in &mut block.insts {
                if let Inst::Store { mem, val, .. } = inst {
                    let needed = match mem {
                        MemTy::I8 | MemTy::U8 => 8,
                        MemTy::I16 | MemTy::U16 => 16,
                        _ => continue,
                    };
                    while let Operand::Reg(reg) = *val
                        && let Some((src, bits)) = same.get(&reg)
                        && *bits >= needed
                    {
                        *val = *src;
                        changed = true;
                    }
                }
                let Some((dst, _)) = inst.result() else { continue };
                same.retain(|reg, (src, _)| *reg != dst && *src != Operand::Reg(dst));
                if let Some((dst, src, bits)) = kept(inst)
                    && src != Operand::Reg(dst)
                {
                    if same.len() == MAX_CONVERSIONS {
                        same.clear();
                    }
                    same.insert(dst, (src, bits));
                }
            }
        }
        if changed {
            self.drop_conversions();
        }
    }

    /// Removes conversions to 8 and 16 bits that nothing uses.
    fn drop_conversions(&mut self) {
        let mut used = vec![false; self.regs.len()];
        let mut note = |operand: &Operand| {
            if let Operand::Reg(reg) = operand {
                used[reg.0 as usize] = true;
            }
        };
        for block in &self.blocks {
            block.insts.iter().for_each(|inst| inst.operands(&mut note));
            block.term.operands(&mut note);
        }
        for block in &mut self.blocks {
            block.insts.retain(|inst| kept(inst).is_none_or(|(dst, ..)| used[dst.0 as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Input, compile};

    fn stored(statement: &str) -> String {
        let text = format!("void proc(char *p, short *q, int i, int n) {{ {statement} }}");
        let mut module = compile(&Input::new("test.e", &text)).unwrap().module;
        module.funcs[0].body.as_mut().unwrap().narrow_stores();
        let shown = module.to_string();
        let line = shown.lines().find(|line| line.contains("store")).unwrap().trim();
        line.rsplit(' ').next().unwrap().to_owned()
    }

    #[test]
    fn a_store_takes_what_was_converted_if_it_has_the_same_low_bits_still() {
        for (statement, want) in [
            ("*p = i;", "r2"),
            ("*q = i;", "r2"),
            ("*p = (unsigned char)(short)i;", "r2"),
            // Two bytes of which one is known.
            ("*q = (unsigned char)i;", "r4"),
            // The number has changed when it is stored.
            ("*p = (char)i + (i = 0);", "r4"),
        ] {
            assert_eq!(stored(statement), want, "{statement}");
        }
    }
}

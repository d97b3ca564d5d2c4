//! The intermediate form as text, for people.

use super::{Body, Callee, Func, Inst, Module, Operand, Term};
use std::fmt;

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(reg) => write!(f, "r{}", reg.0),
            Operand::Int(value) => write!(f, "{value}"),
            Operand::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Operand::Slot(slot, off) => write!(f, "slot{}+{off}", slot.0),
            Operand::Global(global, off) => write!(f, "global{}+{off}", global.0),
            Operand::Func(func) => write!(f, "func{}", func.0),
        }
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((reg, _)) = self.result() {
            write!(f, "r{} = ", reg.0)?;
        }
        match self {
            Inst::Copy { src, .. } => write!(f, "{src}"),
            Inst::Bin { op, ty, a, b, .. } => write!(f, "{op:?}.{ty:?} {a}, {b}"),
            Inst::Neg { ty, a, .. } => write!(f, "Neg.{ty:?} {a}"),
            Inst::Cmp { op, ty, a, b, .. } => write!(f, "{op:?}.{ty:?} {a}, {b}"),
            Inst::Conv { op, from, to, src, .. } => write!(f, "{op:?}.{from:?}.{to:?} {src}"),
            Inst::PtrAdd { base, index, scale, .. } => write!(f, "{base} + {index} * {scale}"),
            Inst::PtrSub { a, b, .. } => write!(f, "{a} - {b}"),
            Inst::Load { mem, addr, off, .. } => write!(f, "load.{mem:?} [{addr} + {off}]"),
            Inst::Store { mem, addr, off, val, .. } => {
                write!(f, "store.{mem:?} [{addr} + {off}], {val}")
            }
            Inst::MemCopy { dst, src, len, .. } => write!(f, "copy [{dst}], [{src}], {len}"),
            Inst::Vec(inst) => write!(f, "{inst}"),
            Inst::Spend { fuel } => write!(f, "spend {fuel}"),
            Inst::Spent => f.write_str("spent"),
            Inst::FuelLeft { .. } => f.write_str("fuel left"),
            Inst::SetFuelLeft { src } => write!(f, "fuel left = {src}"),
            Inst::Tick { fuel, kept, .. } => write!(f, "tick r{}, {} kept", fuel.0, kept.len()),
            Inst::Select { ty, cond, a, b, .. } => write!(f, "select.{ty:?} {cond}, {a}, {b}"),
            Inst::MemZero { dst, len, .. } => write!(f, "zero [{dst}], {len}"),
            Inst::Call { callee, args, .. } => {
                match callee {
                    Callee::Direct(func) => write!(f, "call func{}(", func.0)?,
                    Callee::Indirect(target, _) => write!(f, "call [{target}](")?,
                }
                for (index, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Jump(to) => write!(f, "jump b{}", to.0),
            Term::Branch { cond, then, other } => {
                write!(f, "if {cond} b{} else b{}", then.0, other.0)
            }
            Term::Switch { value, cases, default, .. } => {
                write!(f, "switch {value}")?;
                for (case, to) in cases {
                    write!(f, " {case}: b{}", to.0)?;
                }
                write!(f, " else b{}", default.0)
            }
            Term::Return(Some(value)) => write!(f, "return {value}"),
            Term::Return(None) => f.write_str("return"),
            Term::Trap(code) => write!(f, "trap {code:?}"),
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, slot) in self.slots.iter().enumerate() {
            writeln!(f, "  slot{index}: {} bytes {}", slot.size, slot.name)?;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            writeln!(f, "b{index}:")?;
            for inst in &block.insts {
                writeln!(f, "  {inst}")?;
            }
            writeln!(f, "  {}", block.term)?;
        }
        Ok(())
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, global) in self.globals.iter().enumerate() {
            writeln!(f, "global{index}: {} bytes {}", global.size, global.name)?;
        }
        for (index, Func { name, sig, body, .. }) in self.funcs.iter().enumerate() {
            let sig = &self.sigs[sig.0 as usize];
            writeln!(f, "func{index} {name} {:?} -> {:?}", sig.params, sig.ret)?;
            if let Some(body) = body {
                write!(f, "{body}")?;
            }
        }
        Ok(())
    }
}

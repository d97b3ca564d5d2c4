//! Checks that a module is well formed: what targets rely on.

use super::{Block, BlockId, Body, Callee, Inst, Module, Operand, Reg, SigId, Term, Ty};

/// What is wrong with a module. It means a defect of this compiler, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal: malformed code in `{function}`: {what}")]
pub struct Malformed {
    function: String,
    what: String,
}

impl Module {
    /// Checks types of operands, targets of jumps and numbers of everything.
    ///
    /// # Errors
    ///
    /// [`Malformed`] names the first defect.
    pub fn verify(&self) -> Result<(), Malformed> {
        for func in &self.funcs {
            let Some(body) = &func.body else { continue };
            let fail = |what| Malformed { function: func.name.clone(), what };
            let sig = &self.sigs[func.sig.0 as usize];
            if body.regs.get(..sig.params.len()) != Some(&sig.params[..]) {
                return Err(fail("parameters".into()));
            }
            let check = Check { module: self, body, ret: sig.ret };
            for block in &body.blocks {
                check.block(block).map_err(fail)?;
            }
        }
        Ok(())
    }
}

struct Check<'a> {
    module: &'a Module,
    body: &'a Body,
    ret: Option<Ty>,
}

impl Check<'_> {
    fn block(&self, block: &Block) -> Result<(), String> {
        for inst in &block.insts {
            self.inst(inst).ok_or_else(|| inst.to_string())?;
        }
        self.term(&block.term).ok_or_else(|| block.term.to_string())
    }

    fn inst(&self, inst: &Inst) -> Option<()> {
        match inst {
            Inst::Copy { ty, src, .. } => self.operand(*ty, src),
            Inst::Bin { ty, a, b, .. } | Inst::Cmp { ty, a, b, .. } => {
                self.operand(*ty, a)?;
                self.operand(*ty, b)
            }
            Inst::Neg { ty, a, .. } => self.operand(*ty, a),
            Inst::Conv { from, src, .. } => self.operand(*from, src),
            Inst::PtrAdd { base, index, index_ty, .. } => {
                self.operand(Ty::Ptr, base)?;
                self.operand(*index_ty, index)
            }
            Inst::PtrSub { a, b, .. } => {
                self.operand(Ty::Ptr, a)?;
                self.operand(Ty::Ptr, b)
            }
            Inst::Load { addr, .. } => self.operand(Ty::Ptr, addr),
            Inst::Store { mem, addr, val, .. } => {
                self.operand(Ty::Ptr, addr)?;
                self.operand(mem.reg(), val)
            }
            Inst::MemCopy { dst, src, .. } => {
                self.operand(Ty::Ptr, dst)?;
                self.operand(Ty::Ptr, src)
            }
            Inst::MemZero { dst, .. } => self.operand(Ty::Ptr, dst),
            Inst::Call { dst, callee, args, .. } => self.call(*dst, callee, args),
            Inst::Select { ty, cond, a, b, .. } => {
                self.operand(Ty::I32, cond)?;
                self.operand(*ty, a)?;
                self.operand(*ty, b)
            }
            Inst::Spend { fuel: src } | Inst::SetFuelLeft { src } => self.operand(Ty::I32, src),
            Inst::Spent | Inst::FuelLeft { .. } | Inst::Tick { .. } => Some(()),
            Inst::Vec(inst) => {
                let mut types = inst.operand_types().into_iter();
                let mut right = true;
                inst.operands(&mut |operand| {
                    right &= types.next().is_some_and(|ty| self.operand(ty, operand).is_some());
                });
                right.then_some(())
            }
        }?;
        match inst.result() {
            Some((reg, Some(ty))) => self.reg(reg, ty),
            _ => Some(()),
        }
    }

    fn call(&self, dst: Option<Reg>, callee: &Callee, args: &[Operand]) -> Option<()> {
        let sig: SigId = match callee {
            Callee::Direct(func) => self.module.funcs.get(func.0 as usize)?.sig,
            Callee::Indirect(target, sig) => {
                self.operand(Ty::Ptr, target)?;
                *sig
            }
        };
        let sig = self.module.sigs.get(sig.0 as usize)?;
        if sig.params.len() != args.len() {
            return None;
        }
        for (ty, arg) in sig.params.iter().zip(args) {
            self.operand(*ty, arg)?;
        }
        match (dst, sig.ret) {
            (Some(dst), Some(ret)) => self.reg(dst, ret),
            (Some(_), None) => None,
            (None, _) => Some(()),
        }
    }

    fn term(&self, term: &Term) -> Option<()> {
        let count = self.body.blocks.len();
        if term.successors().iter().any(|BlockId(to)| *to as usize >= count) {
            return None;
        }
        match term {
            Term::Branch { cond, .. } => self.operand(Ty::I32, cond),
            Term::Switch { ty, value, .. } => self.operand(*ty, value),
            Term::Return(Some(value)) => self.operand(self.ret?, value),
            Term::Return(None) => self.ret.is_none().then_some(()),
            Term::Jump(_) | Term::Trap(_) => Some(()),
        }
    }

    fn reg(&self, reg: Reg, ty: Ty) -> Option<()> {
        (self.body.regs.get(reg.0 as usize) == Some(&ty)).then_some(())
    }

    fn operand(&self, ty: Ty, operand: &Operand) -> Option<()> {
        let right = match operand {
            Operand::Reg(reg) => return self.reg(*reg, ty),
            Operand::Int(_) => matches!(ty, Ty::I32 | Ty::I64 | Ty::Ptr),
            Operand::Float(_) => matches!(ty, Ty::F32 | Ty::F64),
            Operand::Slot(slot, _) => ty == Ty::Ptr && (slot.0 as usize) < self.body.slots.len(),
            Operand::Global(global, _) => {
                ty == Ty::Ptr && (global.0 as usize) < self.module.globals.len()
            }
            Operand::Func(func) => ty == Ty::Ptr && (func.0 as usize) < self.module.funcs.len(),
        };
        right.then_some(())
    }
}

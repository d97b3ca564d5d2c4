//! Where a program leaves for good, and how it says where in the text that was.

use super::{
    asm::{Label, R0, Src, Width},
    program::{Site, Unit, code},
};
use ecode::ir::At;

impl Unit<'_> {
    /// Where the program leaves for the reason `code`, from the line that is generated.
    pub(super) fn trap(&mut self, code: i32) -> Label {
        let at = self.at();
        let key = (code, self.module.lines.line(at).unwrap_or(0));
        let asm = &mut self.asm;
        self.traps.entry(key).or_insert_with(|| (asm.label(), at)).0
    }

    /// Where in the text the step comes from that is generated.
    fn at(&self) -> At {
        self.inside.map_or(At::default(), |id| self.module.at(id, self.at))
    }

    /// The number of a place in the text.
    fn spot(&mut self, at: At) -> usize {
        self.spots.push(self.module.lines.spot(at));
        self.spots.len() - 1
    }

    /// The ways out, behind all functions.
    pub(super) fn emit_traps(&mut self) {
        let mut traps: Vec<_> = std::mem::take(&mut self.traps).into_iter().collect();
        traps.sort_unstable_by_key(|trap| trap.0);
        for ((code, _), (label, at)) in traps {
            self.asm.place(label);
            if code == code::RETURNED {
                self.leave(code);
                continue;
            }
            let spot = self.spot(at);
            let site = self.site(Site::Trap(code, spot));
            self.asm.mov(Width::W64, R0, Src::Imm(0));
            self.leave(site);
        }
    }

    /// A site that the host comes back to after a look at the clock.
    pub(super) fn tick(&mut self, back: Label) {
        let spot = self.spot(self.at());
        let site = self.site(Site::Tick(spot));
        self.starts.push((site, back));
        self.leave(site);
    }
}

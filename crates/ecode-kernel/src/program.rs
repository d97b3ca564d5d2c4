//! A module as one program: where it starts, what its functions share, where it leaves.
//!
//! The kernel's verifier follows every path, wants call graphs without cycles and knows frames of
//! 512 bytes. So all functions lie in one program; a call stores its arguments and the number of
//! its site in the frame that it makes in the arena, and jumps; a return jumps to the site of that
//! number, out of those that call the function. Since everything that is live at a call lies in the
//! arena, the program can also leave there and be started again at that site: that is how host
//! functions are called, and how the host looks at the clock.
//!
//! What the verifier believes to know about a value makes it follow the same code again for each
//! such belief. Constants therefore enter machine registers by a 0 that it cannot know, and values
//! lose their bounds where a loop begins.

use super::{
    KernelError,
    asm::{Alu, Asm, Cond, Insn, Label, Mreg, R0, R1, R2, R10, Size, Src, Width},
    func,
    graph::{calls, of_signature, recursive},
};
use ecode::{
    ir::{At, BlockId, Body, Callee, FuncId, Module, Operand, Spot, Term, TrapCode},
    wasm::Layout,
};
use std::collections::{HashMap, HashSet};

/// The frame of the running function.
pub(super) const FRAME: Mreg = Mreg(9);

/// Cells of the kernel's frame. Those of 4 bytes lie where the verifier does not remember what is
/// in them.
pub(super) mod cell {
    /// Iterations left, 4 bytes.
    pub(crate) const FUEL: i16 = -4;
    /// Bytes of the plugin's memory, 4 bytes.
    pub(crate) const MEMORY: i16 = -12;
    /// 0, 8 bytes, unknown to the verifier.
    pub(crate) const ZERO: i16 = -24;
    /// The context, 8 bytes.
    pub(crate) const CONTEXT: i16 = -32;
    /// A counter of a copy, 4 bytes.
    pub(crate) const COUNT: i16 = -36;
}

/// Offsets in `sys::Context`.
mod context {
    pub(super) const AT: i16 = 0;
    pub(super) const VALUE: i16 = 8;
    pub(super) const FRAME: i16 = 16;
    pub(super) const FUEL: i16 = 24;
    pub(super) const MEMORY: i16 = 32;
    pub(super) const ZERO: i16 = 40;
}

/// Why a program leaves, where that is no site.
pub(super) mod code {
    pub(crate) const RETURNED: i32 = 0;
    pub(crate) const DIVIDE: i32 = 1;
    pub(crate) const UNREACHABLE: i32 = 2;
    pub(crate) const STACK: i32 = 3;
    pub(crate) const BAD_CALL: i32 = 4;
    pub(crate) const BOUNDS: i32 = 5;
    pub(crate) const TIME: i32 = 6;
    /// Numbers of sites begin here.
    pub(crate) const FIRST_SITE: i32 = 16;
}

/// What stands behind the number of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// A function that the host calls.
    Entry(FuncId),
    /// Behind a call.
    Return,
    /// Behind a call of this host function.
    Host(FuncId),
    /// In a loop or function, to look at the clock: the number of its place in the text.
    Tick(usize),
    /// Where the program ends for the reason of that code; and the number of that place.
    Trap(i32, usize),
}

/// A program, and what its numbers mean.
pub(super) struct Program {
    pub(super) insns: Vec<Insn>,
    /// By number, from [`code::FIRST_SITE`].
    pub(super) sites: Vec<Site>,
    /// Places in the text, by number.
    pub(super) spots: Vec<Option<Spot>>,
}

/// A function of the program.
pub(super) struct Own<'m> {
    pub(super) body: &'m Body,
    pub(super) entry: Label,
    /// Where it may return to.
    pub(super) sites: Vec<(i32, Label)>,
    /// It may call itself, through others too.
    pub(super) is_recursive: bool,
}

/// Where a call leads.
#[derive(Clone)]
pub(super) struct Call {
    /// Behind it.
    pub(super) behind: Label,
    /// The functions that it may reach, and the numbers by which they return.
    pub(super) ways: Vec<(FuncId, i32)>,
}

/// What functions need while they are generated.
pub(super) struct Unit<'m> {
    pub(super) module: &'m Module,
    pub(super) layout: &'m Layout,
    /// Functions whose address is taken; addresses count from 1.
    pub(super) table: Vec<FuncId>,
    pub(super) asm: Asm,
    /// Reached ones, by number.
    pub(super) funcs: HashMap<FuncId, Own<'m>>,
    /// By function, block and place in the block.
    pub(super) calls: HashMap<(FuncId, usize, usize), Call>,
    /// The end of frames.
    pub(super) control_end: i32,
    pub(super) bounds: Bounds,
    sites: Vec<Site>,
    /// Sites that the host may start at.
    pub(super) starts: Vec<(i32, Label)>,
    recursive: HashSet<FuncId>,
    /// By code and line.
    pub(super) traps: HashMap<(i32, u32), (Label, At)>,
    leave: Label,
    pub(super) spots: Vec<Option<Spot>>,
    /// The function that is generated, and where in the text its step comes from.
    pub(super) inside: Option<FuncId>,
    pub(super) at: At,
}

/// Where values lose the bounds that the verifier believes them to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// Where a loop is entered. That is enough, unless conditions in a loop leave only one number
    /// for a variable: its iterations are then followed one by one.
    Enter,
    /// In each iteration, which takes time.
    Iteration,
}

/// The program for `module`, whose frames end at `control_end`.
///
/// # Errors
///
/// [`KernelError::TooLarge`] when a function has more variables than a frame holds.
pub(super) fn build(
    module: &Module,
    layout: &Layout,
    control_end: i32,
    bounds: Bounds,
) -> Result<Program, KernelError> {
    for far in [false, true] {
        let mut unit = Unit::new(module, layout, (control_end, bounds), far);
        unit.emit()?;
        let (asm, sites, spots) = (unit.asm, unit.sites, unit.spots);
        if let Some(insns) = asm.finish() {
            return Ok(Program { insns, sites, spots });
        }
    }
    Err(KernelError::TooLarge("the plugin".into()))
}

impl<'m> Unit<'m> {
    fn new(
        module: &'m Module,
        layout: &'m Layout,
        (control_end, bounds): (i32, Bounds),
        far: bool,
    ) -> Self {
        let mut asm = Asm::new(far);
        let mut unit = Self {
            module,
            layout,
            table: module.address_taken(),
            leave: asm.label(),
            asm,
            funcs: HashMap::new(),
            calls: HashMap::new(),
            control_end,
            bounds,
            sites: Vec::new(),
            starts: Vec::new(),
            recursive: recursive(module),
            traps: HashMap::new(),
            spots: Vec::new(),
            inside: None,
            at: At::default(),
        };
        unit.plan();
        unit
    }

    /// Finds the functions that can be reached, and numbers the ways into and out of them.
    fn plan(&mut self) {
        let module = self.module;
        let mut todo = Vec::new();
        for (index, func) in module.funcs.iter().enumerate().filter(|(_, func)| func.exported) {
            let id = FuncId(index as u32);
            if let Some(body) = &func.body {
                self.reach(id, body);
                todo.push(id);
                let start = (self.site(Site::Entry(id)), self.funcs[&id].entry);
                self.starts.push(start);
                if returns(body) {
                    let returned = (code::RETURNED, self.trap(code::RETURNED));
                    self.returns_to(id, returned);
                }
            }
        }
        while let Some(id) = todo.pop() {
            for (block, step, callee) in calls(self.funcs[&id].body) {
                let call = self.plan_call(callee);
                for target in call.ways.iter().map(|way| way.0) {
                    if let Some(body) = &module.funcs[target.0 as usize].body
                        && self.reach(target, body)
                    {
                        todo.push(target);
                    }
                }
                for (target, site) in &call.ways {
                    self.returns_to(*target, (*site, call.behind));
                }
                self.calls.insert((id, block, step), call);
            }
        }
    }

    /// Numbers what one call can lead to.
    fn plan_call(&mut self, callee: &Callee) -> Call {
        let (module, behind) = (self.module, self.asm.label());
        let mut call = Call { behind, ways: Vec::new() };
        let mut comes_back = false;
        for target in self.targets(callee) {
            let body = module.funcs[target.0 as usize].body.as_ref();
            let site = self.site(if body.is_some() { Site::Return } else { Site::Host(target) });
            call.ways.push((target, site));
            if body.is_none() {
                self.starts.push((site, behind));
            }
            comes_back |= body.is_none_or(returns);
        }
        if !comes_back {
            // Nothing leads behind this call, which the verifier does not allow.
            let site = self.site(Site::Return);
            self.starts.push((site, behind));
        }
        call
    }

    fn reach(&mut self, id: FuncId, body: &'m Body) -> bool {
        let is_new = !self.funcs.contains_key(&id);
        if is_new {
            let entry = self.asm.label();
            let is_recursive = self.recursive.contains(&id);
            let own = Own { body, entry, sites: Vec::new(), is_recursive };
            self.funcs.insert(id, own);
        }
        is_new
    }

    fn returns_to(&mut self, id: FuncId, site: (i32, Label)) {
        if let Some(own) = self.funcs.get_mut(&id) {
            own.sites.push(site);
        }
    }

    /// The functions that a call may reach.
    pub(super) fn targets(&self, callee: &Callee) -> Vec<FuncId> {
        match callee {
            Callee::Direct(id) => vec![*id],
            Callee::Indirect(_, sig) => of_signature(self.module, &self.table, *sig).collect(),
        }
    }

    pub(super) fn site(&mut self, site: Site) -> i32 {
        self.sites.push(site);
        code::FIRST_SITE + self.sites.len() as i32 - 1
    }

    fn emit(&mut self) -> Result<(), KernelError> {
        let start = self.asm.label();
        self.prologue(start);
        let mut ids: Vec<FuncId> = self.funcs.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            func::emit(self, id)?;
        }
        self.asm.place(start);
        let mut starts = std::mem::take(&mut self.starts);
        starts.sort_by_key(|start| start.0);
        self.dispatch(R1, &starts);
        self.emit_traps();
        self.epilogue();
        Ok(())
    }

    /// Fills in the kernel's frame, and goes on at `start`.
    fn prologue(&mut self, start: Label) {
        let asm = &mut self.asm;
        asm.arena(R0);
        asm.store(Size::B8, R10, cell::CONTEXT, Src::Reg(R1));
        for (from, to) in [(context::FUEL, cell::FUEL), (context::MEMORY, cell::MEMORY)] {
            asm.load(Size::B4, R0, R1, from);
            asm.store(Size::B4, R10, to, Src::Reg(R0));
        }
        // In halves of words, so that the verifier does not take loads of it for copies of one
        // value.
        asm.load(Size::B2, R0, R1, context::ZERO);
        for part in 0..4 {
            asm.store(Size::B2, R10, cell::ZERO + 2 * part, Src::Reg(R0));
        }
        asm.load(Size::B8, FRAME, R1, context::FRAME);
        asm.cast(FRAME, FRAME);
        asm.load(Size::B8, R0, R1, context::VALUE);
        asm.load(Size::B8, R1, R1, context::AT);
        asm.jump(start);
    }

    /// Goes to the label whose number is in `reg`: one of `ways`, in rising order.
    pub(super) fn dispatch(&mut self, reg: Mreg, ways: &[(i32, Label)]) {
        let (low, high) = ways.split_at(ways.len() / 2);
        let Some((first, label)) = high.first() else { return };
        if low.is_empty() {
            return self.asm.jump(*label);
        }
        let upper = self.asm.label();
        self.asm.jump_if(Cond::GE, Width::W64, reg, Src::Imm(*first), upper);
        self.dispatch(reg, low);
        self.asm.place(upper);
        self.dispatch(reg, high);
    }

    /// Leaves with `code`; `R0` is the value.
    pub(super) fn leave(&mut self, code: i32) {
        self.asm.mov(Width::W64, R1, Src::Imm(code));
        self.asm.jump(self.leave);
    }

    fn epilogue(&mut self) {
        let asm = &mut self.asm;
        asm.place(self.leave);
        asm.load(Size::B8, R2, R10, cell::CONTEXT);
        asm.store(Size::B8, R2, context::AT, Src::Reg(R1));
        asm.store(Size::B8, R2, context::VALUE, Src::Reg(R0));
        asm.mov(Width::W32, R1, Src::Reg(FRAME));
        asm.store(Size::B8, R2, context::FRAME, Src::Reg(R1));
        asm.mov(Width::W64, R0, Src::Imm(0));
        asm.exit();
    }

    /// Counts an iteration: leaves for a look at the clock when the last is used up, to come back
    /// here with nothing but what is in the frame.
    pub(super) fn count_iteration(&mut self, spent: Label) {
        let asm = &mut self.asm;
        asm.may_goto(spent);
        asm.load(Size::B4, R2, R10, cell::FUEL);
        asm.alu(Alu::SUB, Width::W32, R2, Src::Imm(1));
        asm.store(Size::B4, R10, cell::FUEL, Src::Reg(R2));
        asm.jump_if(Cond::SLE, Width::W32, R2, Src::Imm(0), spent);
    }

    /// An address that is known, as 32 bits.
    pub(super) fn address(&self, operand: &Operand) -> u32 {
        self.layout.address(operand, &self.table)
    }
}

fn returns(body: &Body) -> bool {
    body.blocks.iter().any(|block| matches!(block.term, Term::Return(_)))
}

/// How the program says `code`.
pub(super) fn trap_code(code: TrapCode) -> i32 {
    match code {
        TrapCode::DivideByZero => code::DIVIDE,
        TrapCode::Unreachable => code::UNREACHABLE,
        TrapCode::StackOverflow => code::STACK,
        TrapCode::BadCall => code::BAD_CALL,
    }
}

/// Where a block's code is: for those that come from before, and for those that come back.
#[derive(Clone, Copy)]
pub(super) struct Labels {
    pub(super) entry: Label,
    pub(super) again: Label,
}

impl Labels {
    pub(super) fn new(asm: &mut Asm) -> Self {
        Self { entry: asm.label(), again: asm.label() }
    }
}

/// The label of `id`, seen from block `from`.
pub(super) fn toward(labels: &[Labels], from: usize, id: BlockId) -> Label {
    let to = labels[id.0 as usize];
    if id.0 as usize <= from { to.again } else { to.entry }
}

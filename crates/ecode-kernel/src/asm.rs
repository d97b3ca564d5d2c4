//! BPF instructions and labels.
//!
//! Encoding: <https://www.kernel.org/doc/html/latest/bpf/standardization/instruction-set.html>,
//! with what arenas and bounded loops add (`include/uapi/linux/bpf.h`, `kernel/bpf/verifier.c`):
//! `addr_space_cast`, `may_goto`.

/// A machine register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mreg(pub(super) u8);

pub(super) const R0: Mreg = Mreg(0);
pub(super) const R1: Mreg = Mreg(1);
pub(super) const R2: Mreg = Mreg(2);
/// The kernel's own frame, 512 bytes below it.
pub(super) const R10: Mreg = Mreg(10);

/// One instruction as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Insn {
    code: u8,
    regs: u8,
    off: i16,
    imm: i32,
}

/// A place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Width of arithmetic. 32 bits clear the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    W32,
    W64,
}

/// Size of a memory cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    B1,
    B2,
    B4,
    B8,
}

/// Arithmetic: operation code, and 1 where the offset says that it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alu(u8, i16);

impl Alu {
    pub(super) const ADD: Alu = Alu(0x00, 0);
    pub(super) const SUB: Alu = Alu(0x10, 0);
    pub(super) const MUL: Alu = Alu(0x20, 0);
    pub(super) const DIV: Alu = Alu(0x30, 0);
    pub(super) const SDIV: Alu = Alu(0x30, 1);
    pub(super) const OR: Alu = Alu(0x40, 0);
    pub(super) const AND: Alu = Alu(0x50, 0);
    pub(super) const LSH: Alu = Alu(0x60, 0);
    pub(super) const RSH: Alu = Alu(0x70, 0);
    pub(super) const MOD: Alu = Alu(0x90, 0);
    pub(super) const SMOD: Alu = Alu(0x90, 1);
    pub(super) const XOR: Alu = Alu(0xa0, 0);
    pub(super) const ARSH: Alu = Alu(0xc0, 0);
    const MOV: Alu = Alu(0xb0, 0);
}

/// Conditions of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cond(u8);

impl Cond {
    pub(super) const EQ: Cond = Cond(0x10);
    pub(super) const GT: Cond = Cond(0x20);
    pub(super) const GE: Cond = Cond(0x30);
    pub(super) const NE: Cond = Cond(0x50);
    pub(super) const SGT: Cond = Cond(0x60);
    pub(super) const SGE: Cond = Cond(0x70);
    pub(super) const LT: Cond = Cond(0xa0);
    pub(super) const LE: Cond = Cond(0xb0);
    pub(super) const SLT: Cond = Cond(0xc0);
    pub(super) const SLE: Cond = Cond(0xd0);

    /// The condition that holds when this one does not.
    pub(super) fn not(self) -> Cond {
        match self {
            Cond::EQ => Cond::NE,
            Cond::NE => Cond::EQ,
            Cond::GT => Cond::LE,
            Cond::LE => Cond::GT,
            Cond::GE => Cond::LT,
            Cond::LT => Cond::GE,
            Cond::SGT => Cond::SLE,
            Cond::SLE => Cond::SGT,
            Cond::SGE => Cond::SLT,
            _ => Cond::SGE,
        }
    }
}

/// The second operand of arithmetic and jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Src {
    Reg(Mreg),
    /// Extended by sign.
    Imm(i32),
}

/// A program under construction.
pub(super) struct Asm {
    insns: Vec<Insn>,
    labels: Vec<Option<usize>>,
    fixups: Vec<(usize, Label)>,
    /// Conditional jumps may have to go further than 16 bits of offset.
    far: bool,
}

const JA: u8 = 0x05;
const JA_FAR: u8 = 0x06;
const JCOND: u8 = 0xe5;

impl Asm {
    pub(super) fn new(far: bool) -> Self {
        Self { insns: Vec::new(), labels: Vec::new(), fixups: Vec::new(), far }
    }

    /// The instructions, or `None` when a conditional jump goes too far: then `far` is needed.
    pub(super) fn finish(mut self) -> Option<Vec<Insn>> {
        for (at, label) in &self.fixups {
            // INVARIANT: every label that is used is placed before the program is finished.
            let to = self.labels[label.0].unwrap_or(0);
            let distance = to as i64 - *at as i64 - 1;
            let insn = &mut self.insns[*at];
            match insn.code {
                JA_FAR => insn.imm = i32::try_from(distance).ok()?,
                _ => insn.off = i16::try_from(distance).ok()?,
            }
        }
        Some(self.insns)
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label stands here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.insns.len());
    }

    fn put(&mut self, code: u8, dst: Mreg, src: u8, off: i16, imm: i32) {
        self.insns.push(Insn { code, regs: dst.0 | src << 4, off, imm });
    }

    pub(super) fn alu(&mut self, op: Alu, width: Width, dst: Mreg, src: Src) {
        let class = if width == Width::W64 { 0x07 } else { 0x04 };
        match src {
            Src::Reg(src) => self.put(op.0 | class | 0x08, dst, src.0, op.1, 0),
            Src::Imm(imm) => self.put(op.0 | class, dst, 0, op.1, imm),
        }
    }

    /// Copies; a copy of 32 bits clears the upper half.
    pub(super) fn mov(&mut self, width: Width, dst: Mreg, src: Src) {
        if width == Width::W32 || src != Src::Reg(dst) {
            self.alu(Alu::MOV, width, dst, src);
        }
    }

    /// The low `bits` of `src`, extended by sign to `width`.
    pub(super) fn sign_extend(&mut self, width: Width, dst: Mreg, src: Mreg, bits: i16) {
        self.alu(Alu(Alu::MOV.0, bits), width, dst, Src::Reg(src));
    }

    /// An integer of 64 bits.
    pub(super) fn imm64(&mut self, dst: Mreg, value: i64) {
        match i32::try_from(value) {
            Ok(imm) => self.mov(Width::W64, dst, Src::Imm(imm)),
            Err(_) => {
                self.put(0x18, dst, 0, 0, value as i32);
                self.put(0x00, R0, 0, 0, (value >> 32) as i32);
            }
        }
    }

    /// The arena, whose descriptor the loader fills in. Only that it is named matters.
    pub(super) fn arena(&mut self, dst: Mreg) {
        self.put(0x18, dst, 1, 0, 0);
        self.put(0x00, R0, 0, 0, 0);
    }

    /// The address in `src`, from 0, as one that loads and stores take.
    pub(super) fn cast(&mut self, dst: Mreg, src: Mreg) {
        self.put(0xbf, dst, src.0, 1, 1);
    }

    pub(super) fn load(&mut self, size: Size, dst: Mreg, base: Mreg, off: i16) {
        self.put(0x61 | size.code(), dst, base.0, off, 0);
    }

    pub(super) fn store(&mut self, size: Size, base: Mreg, off: i16, src: Src) {
        match src {
            Src::Reg(src) => self.put(0x63 | size.code(), base, src.0, off, 0),
            Src::Imm(imm) => self.put(0x62 | size.code(), base, 0, off, imm),
        }
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.fixups.push((self.insns.len(), to));
        self.put(JA_FAR, R0, 0, 0, 0);
    }

    pub(super) fn jump_if(&mut self, cond: Cond, width: Width, a: Mreg, b: Src, to: Label) {
        let class = if width == Width::W64 { 0x05 } else { 0x06 };
        match b {
            Src::Reg(b) => self.short(cond.0 | class | 0x08, a, b.0, 0, to),
            Src::Imm(imm) => self.short(cond.0 | class, a, 0, imm, to),
        }
    }

    /// Goes to `to` when the kernel finds that the program has run for too long.
    pub(super) fn may_goto(&mut self, to: Label) {
        self.short(JCOND, R0, 0, 0, to);
    }

    fn short(&mut self, code: u8, a: Mreg, b: u8, imm: i32, to: Label) {
        if self.far {
            self.put(code, a, b, 1, imm);
            self.put(JA, R0, 0, 1, 0);
            return self.jump(to);
        }
        self.fixups.push((self.insns.len(), to));
        self.put(code, a, b, 0, imm);
    }

    pub(super) fn exit(&mut self) {
        self.put(0x95, R0, 0, 0, 0);
    }
}

impl Size {
    fn code(self) -> u8 {
        match self {
            Size::B1 => 0x10,
            Size::B2 => 0x08,
            Size::B4 => 0x00,
            Size::B8 => 0x18,
        }
    }
}

impl Insn {
    /// Makes the first instruction name the arena of descriptor `fd`.
    pub(super) fn with_descriptor(self, fd: i32) -> Insn {
        Insn { imm: fd, ..self }
    }
}

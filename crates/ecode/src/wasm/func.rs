//! One function: prologue, control flow, epilogue.

use super::{
    inst::{Emitted, Emitter},
    structure::Shape,
    unit::{SP, Unit, val_type},
};
use crate::ir::{Block, BlockId, Body, Func, Operand, Term, Ty};
use std::collections::HashMap;
use wasm_encoder::{BlockType, Function, ValType};

/// What is still to be generated, last first.
enum Todo<'b> {
    /// A block and what it dominates.
    Tree(BlockId),
    /// A block inside labels for those of its children that still need theirs.
    Within(BlockId, &'b [BlockId]),
    /// The way from one block to another.
    Edge(BlockId, BlockId),
    Else,
    /// Ends a label or loop that stood for the block.
    EndOf(BlockId),
    EndIf,
}

pub(super) fn emit<'u>(unit: &'u Unit<'_>, func: &Func, body: &'u Body) -> Emitted {
    let params = unit.module.sigs[func.sig.0 as usize].params.len();
    let count = body.regs.len() as u32;
    // The frame's address, and the block to go to where control flow is a table.
    let next_local = count + 1;
    let mut locals: Vec<(u32, ValType)> = Vec::new();
    let own = body.regs[params..].iter().map(|ty| val_type(*ty)).chain([ValType::I32; 2]);
    for ty in own {
        match locals.last_mut() {
            Some((count, last)) if *last == ty => *count += 1,
            _ => locals.push((1, ty)),
        }
    }
    let mut emitter = Emitter::new(unit, body, params, Function::new(locals));
    emitter.ret = unit.module.sigs[func.sig.0 as usize].ret;
    emitter.prologue();
    let shape = Shape::new(body);
    if shape.is_reducible {
        Nested { body, shape: &shape, labels: HashMap::new(), depth: 0 }.emit(&mut emitter);
    } else {
        dispatch(&mut emitter, body, next_local);
    }
    emitter.finish()
}

/// Control flow as nested labels and loops.
struct Nested<'b> {
    body: &'b Body,
    shape: &'b Shape,
    /// For labels that are open: how many were open before.
    labels: HashMap<BlockId, u32>,
    depth: u32,
}

impl<'b> Nested<'b> {
    fn emit(mut self, out: &mut Emitter<'_, '_>) {
        let mut todo = vec![Todo::Tree(BlockId(0))];
        while let Some(next) = todo.pop() {
            match next {
                Todo::Tree(id) => self.tree(id, out, &mut todo),
                Todo::Within(id, children) => self.within(id, children, out, &mut todo),
                Todo::Edge(from, to) => self.edge(from, to, out, &mut todo),
                Todo::Else => drop(out.code.instructions().else_()),
                Todo::EndOf(id) => {
                    self.depth -= 1;
                    // A loop's head may be a label as well; that one was closed before.
                    self.labels.remove(&id);
                    out.code.instructions().end();
                }
                Todo::EndIf => {
                    self.depth -= 1;
                    out.code.instructions().end();
                }
            }
        }
        // No way leads here: every block ends with a jump.
        out.code.instructions().unreachable();
    }

    fn open(&mut self, id: BlockId) {
        self.labels.insert(id, self.depth);
        self.depth += 1;
    }

    fn tree(&mut self, id: BlockId, out: &mut Emitter<'_, '_>, todo: &mut Vec<Todo<'b>>) {
        let index = id.0 as usize;
        if self.shape.is_header[index] {
            out.code.instructions().loop_(BlockType::Empty);
            self.open(id);
            todo.push(Todo::EndOf(id));
        }
        todo.push(Todo::Within(id, &self.shape.labelled_children[index]));
    }

    fn within(
        &mut self,
        id: BlockId,
        children: &'b [BlockId],
        out: &mut Emitter<'_, '_>,
        todo: &mut Vec<Todo<'b>>,
    ) {
        let Some((child, rest)) = children.split_first() else {
            return self.block(id, out, todo);
        };
        out.code.instructions().block(BlockType::Empty);
        self.open(*child);
        todo.push(Todo::Tree(*child));
        todo.push(Todo::EndOf(*child));
        todo.push(Todo::Within(id, rest));
    }

    fn block(&mut self, id: BlockId, out: &mut Emitter<'_, '_>, todo: &mut Vec<Todo<'b>>) {
        let Block { insts, term } = &self.body.blocks[id.0 as usize];
        out.insts(insts);
        match term {
            Term::Jump(to) => todo.push(Todo::Edge(id, *to)),
            Term::Branch { cond, then, other } => {
                out.operand(cond, Ty::I32);
                if self.is_labelled(id, *then) {
                    let depth = self.label(*then);
                    out.code.instructions().br_if(depth);
                    todo.push(Todo::Edge(id, *other));
                } else if self.is_labelled(id, *other) {
                    let depth = self.label(*other);
                    out.code.instructions().i32_eqz().br_if(depth);
                    todo.push(Todo::Edge(id, *then));
                } else {
                    out.code.instructions().if_(BlockType::Empty);
                    self.depth += 1;
                    todo.push(Todo::EndIf);
                    todo.push(Todo::Edge(id, *other));
                    todo.push(Todo::Else);
                    todo.push(Todo::Edge(id, *then));
                }
            }
            Term::Switch { ty, value, cases, default } => {
                self.switch(*ty, value, cases, *default, out);
            }
            Term::Return(value) => out.return_(value.as_ref()),
            Term::Trap(_) => drop(out.code.instructions().unreachable()),
        }
    }

    fn is_labelled(&self, from: BlockId, to: BlockId) -> bool {
        to <= from || self.shape.is_labelled[to.0 as usize]
    }

    /// How many labels stand between here and that of `id`.
    fn label(&self, id: BlockId) -> u32 {
        // INVARIANT: the place of `id` in the dominator tree opened its label before any way to it.
        self.labels.get(&id).map_or(0, |open| self.depth - 1 - open)
    }

    fn edge(
        &mut self,
        from: BlockId,
        to: BlockId,
        out: &mut Emitter<'_, '_>,
        todo: &mut Vec<Todo<'b>>,
    ) {
        if self.is_labelled(from, to) {
            let depth = self.label(to);
            out.code.instructions().br(depth);
        } else {
            todo.push(Todo::Tree(to));
        }
    }

    fn switch(
        &mut self,
        ty: Ty,
        value: &Operand,
        cases: &[(i64, BlockId)],
        default: BlockId,
        out: &mut Emitter<'_, '_>,
    ) {
        let default_label = self.label(default);
        let low = cases.iter().map(|case| case.0).min().unwrap_or(0);
        let high = cases.iter().map(|case| case.0).max().unwrap_or(0);
        let span = high.wrapping_sub(low);
        let dense = ty == Ty::I32 && span < 4 * cases.len() as i64 + 8;
        if !dense || cases.len() < 4 {
            for (case, to) in cases {
                let label = self.label(*to);
                out.equals(ty, value, *case);
                out.code.instructions().br_if(label);
            }
            out.code.instructions().br(default_label);
            return;
        }
        let mut labels = vec![default_label; span as usize + 1];
        for (case, to) in cases {
            labels[(case - low) as usize] = self.label(*to);
        }
        out.operand(value, ty);
        out.code.instructions().i32_const(low as i32).i32_sub().br_table(labels, default_label);
    }
}

/// Control flow as a loop around a table of all blocks.
fn dispatch(out: &mut Emitter<'_, '_>, body: &Body, next: u32) {
    let count = body.blocks.len() as u32;
    out.code.instructions().loop_(BlockType::Empty);
    for _ in 0..count {
        out.code.instructions().block(BlockType::Empty);
    }
    out.code.instructions().local_get(next).br_table((0..count).collect::<Vec<_>>(), 0);
    for (index, block) in body.blocks.iter().enumerate() {
        out.code.instructions().end();
        out.insts(&block.insts);
        let depth = count - 1 - index as u32;
        let go = |out: &mut Emitter<'_, '_>, to: BlockId, depth: u32| {
            out.code.instructions().i32_const(to.0 as i32).local_set(next).br(depth);
        };
        let go_if = |out: &mut Emitter<'_, '_>, to: BlockId| {
            out.code.instructions().if_(BlockType::Empty);
            go(out, to, depth + 1);
            out.code.instructions().end();
        };
        match &block.term {
            Term::Jump(to) => go(out, *to, depth),
            Term::Branch { cond, then, other } => {
                out.operand(cond, Ty::I32);
                go_if(out, *then);
                go(out, *other, depth);
            }
            Term::Switch { ty, value, cases, default } => {
                for (case, to) in cases {
                    out.equals(*ty, value, *case);
                    go_if(out, *to);
                }
                go(out, *default, depth);
            }
            Term::Return(value) => out.return_(value.as_ref()),
            Term::Trap(_) => drop(out.code.instructions().unreachable()),
        }
    }
    out.code.instructions().end().unreachable();
}

impl Emitter<'_, '_> {
    fn prologue(&mut self) {
        if self.frame_bytes > 0 {
            let (frame, bytes) = (self.frame, self.frame_bytes as i32);
            let end = self.unit.layout.stack_end as i32;
            let mut code = self.code.instructions();
            code.global_get(SP).i32_const(bytes.wrapping_add(end)).i32_lt_u();
            code.if_(BlockType::Empty).unreachable().end();
            code.global_get(SP).i32_const(bytes).i32_sub().local_tee(frame).global_set(SP);
        }
    }

    fn return_(&mut self, value: Option<&Operand>) {
        if self.frame_bytes > 0 {
            let (frame, bytes) = (self.frame, self.frame_bytes as i32);
            self.code.instructions().local_get(frame).i32_const(bytes).i32_add().global_set(SP);
        }
        if let (Some(value), Some(ty)) = (value, self.ret) {
            self.operand(value, ty);
        }
        self.code.instructions().return_();
    }

    /// Whether `value` is `case`.
    fn equals(&mut self, ty: Ty, value: &Operand, case: i64) {
        self.operand(value, ty);
        self.operand(&Operand::Int(case), ty);
        match ty {
            Ty::I64 => self.code.instructions().i64_eq(),
            _ => self.code.instructions().i32_eq(),
        };
    }
}

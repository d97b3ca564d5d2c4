//! Syntax tree to intermediate form: names, types, constant folding, code. Every error is recorded
//! and the rest is still checked.

mod call;
mod convert;
mod declare;
mod effects;
mod expr;
mod fold;
mod func;
mod func_state;
mod global;
mod init;
mod lvalue;
mod ops;
mod scope;
mod stmt;
mod switch;

use crate::{
    ast::{Declarator, FuncDef, Ident, Item, Name, Spec, Storage},
    diag::{Diags, Reported},
    ir::{self, FuncId, GlobalId, Operand, SigId, Signature},
    span::Span,
    types::{RecordId, Sig, Steps, Type, TypeId, Types},
};
use func_state::FuncState;
use scope::{Scope, Sym};
use std::{collections::HashMap, rc::Rc};

type Checked<T> = Result<T, Reported>;

/// Functions, declared ones too.
const MAX_FUNCS: usize = 20_000;

/// A value: a scalar in an operand, or the address of a record or array.
#[derive(Clone, Copy, Debug)]
struct Val {
    op: Operand,
    ty: TypeId,
}

/// What is known of a function by name.
#[derive(Debug)]
struct FuncInfo {
    sig: Sig,
    is_static: bool,
    defined: bool,
}

pub(crate) struct Checker<'d> {
    types: Types,
    steps: Steps,
    diags: &'d mut Diags,
    module: ir::Module,
    scopes: Vec<Scope>,
    /// By function number.
    funcs: Vec<FuncInfo>,
    func: FuncState,
    strings: HashMap<Vec<u8>, GlobalId>,
    /// Types of expressions inside initialisers, by their place in memory.
    expr_types: HashMap<usize, TypeId>,
    /// Bytes of all static data so far.
    static_bytes: u64,
    /// Of all functions.
    blocks: usize,
    /// Values of all functions that are kept over a block, once for each.
    live: usize,
    /// Where functions first compute with floating point, by name.
    floats: HashMap<String, Span>,
    /// Where functions with a body begin.
    begins: HashMap<String, Span>,
}

impl<'d> Checker<'d> {
    pub(crate) fn new(diags: &'d mut Diags) -> Self {
        let mut checker = Self {
            types: Types::new(),
            steps: Steps::new(),
            diags,
            module: ir::Module::default(),
            scopes: vec![Scope::default()],
            funcs: Vec::new(),
            func: FuncState::default(),
            strings: HashMap::new(),
            expr_types: HashMap::new(),
            static_bytes: 0,
            blocks: 0,
            live: 0,
            floats: HashMap::new(),
            begins: HashMap::new(),
        };
        checker.builtin_names();
        checker
    }

    /// The module; where its functions first compute with floating point, and where they begin.
    pub(crate) fn finish(mut self) -> (ir::Module, [HashMap<String, Span>; 2]) {
        self.drop_unused_imports();
        (self.module, [self.floats, self.begins])
    }

    /// Checks what stands outside of functions first, so that functions may use what is declared
    /// below them.
    pub(crate) fn unit(&mut self, items: &[Item]) {
        let mut bodies = Vec::new();
        for item in items {
            match item {
                Item::Decl(decl) => self.global_decl(decl),
                Item::Assert(condition, span) => drop(self.static_assert(condition, *span)),
                Item::Func(def) => {
                    if let Ok(id) = self.function_head(&def.spec, &def.declarator, true) {
                        bodies.push((id, def));
                    }
                }
            }
        }
        for (id, def) in bodies {
            let _ = self.function_body(id, def);
        }
    }

    /// Checks a body `{ … }` as the function that `spec` and `declarator` describe.
    pub(crate) fn procedure(
        &mut self,
        spec: Rc<Spec>,
        declarator: Declarator,
        body: crate::ast::Block,
    ) {
        if let Ok(id) = self.function_head(&spec, &declarator, true) {
            let _ = self.function_body(id, &FuncDef { spec, declarator, body });
        }
    }

    /// Counts a step.
    fn step_at(&mut self, span: Span) -> Checked<()> {
        if self.steps.take() {
            return Ok(());
        }
        let text = format!("checking this text takes more than {} steps", Steps::MAX);
        Err(self.diags.error(span, text))
    }

    /// A field, also one of an unnamed member, with its offset.
    fn field(&mut self, id: RecordId, name: &Ident) -> Checked<Option<(TypeId, u64)>> {
        let found = self.types.field(id, &name.name, &mut self.steps);
        self.step_at(name.span)?;
        Ok(found)
    }

    fn builtin_names(&mut self) {
        let string = self.types.pointer(TypeId::CHAR);
        let types = [
            ("string", string),
            ("bool", TypeId::BOOL),
            ("int8_t", TypeId::CHAR),
            ("int16_t", TypeId::SHORT),
            ("int32_t", TypeId::INT),
            ("int64_t", TypeId::LONG),
            ("uint8_t", TypeId::UCHAR),
            ("uint16_t", TypeId::USHORT),
            ("uint32_t", TypeId::UINT),
            ("uint64_t", TypeId::ULONG),
            ("size_t", TypeId::ULONG),
            ("ssize_t", TypeId::LONG),
            ("ptrdiff_t", TypeId::LONG),
            ("intptr_t", TypeId::LONG),
            ("uintptr_t", TypeId::ULONG),
        ];
        for (name, ty) in types {
            self.define(Rc::from(name), Sym::Type(ty));
        }
        let void_pointer = self.types.pointer(TypeId::VOID);
        let constants =
            [("true", TypeId::INT, 1), ("false", TypeId::INT, 0), ("NULL", void_pointer, 0)];
        for (name, ty, value) in constants {
            self.define(Rc::from(name), Sym::Const(Val { op: Operand::Int(value), ty }));
        }
        // What is built in may be declared anew.
        self.scopes.push(Scope::default());
    }

    /// Declares a function and returns its number.
    fn function_head(
        &mut self,
        spec: &Spec,
        declarator: &Declarator,
        defines: bool,
    ) -> Checked<FuncId> {
        let (name, ty) = self.declared(spec, declarator)?;
        let Type::Func(sig) = self.types.get(ty).clone() else {
            return Err(self.diags.error(declarator.span, "this is not a function"));
        };
        let is_static = spec.storage == Storage::Static;
        if defines {
            self.begins.entry(name.to_string()).or_insert(declarator.span);
        }
        self.declare_function(&name, sig, is_static, defines, declarator.span)
    }

    fn declare_function(
        &mut self,
        name: &Name,
        sig: Sig,
        is_static: bool,
        defines: bool,
        span: Span,
    ) -> Checked<FuncId> {
        if let Some(Sym::Func(id)) = self.lookup_global(name) {
            return self.redeclare_function(id, sig, is_static, defines, span);
        }
        if self.lookup_global(name).is_some() {
            return Err(self.diags.error(span, format!("`{name}` is declared twice")));
        }
        if self.funcs.len() >= MAX_FUNCS {
            let text = format!("there are more than {MAX_FUNCS} functions");
            return Err(self.diags.error(span, text));
        }
        let id = FuncId(self.funcs.len() as u32);
        let lowered = self.signature(&sig);
        let func = ir::Func {
            name: name.to_string(),
            sig: lowered,
            exported: !is_static,
            body: None,
            float: None,
            begin: ir::At::NOWHERE,
        };
        self.module.funcs.push(func);
        self.funcs.push(FuncInfo { sig, is_static, defined: defines });
        self.define_global(name.clone(), Sym::Func(id));
        Ok(id)
    }

    fn redeclare_function(
        &mut self,
        id: FuncId,
        sig: Sig,
        is_static: bool,
        defines: bool,
        span: Span,
    ) -> Checked<FuncId> {
        let name = self.module.funcs[id.0 as usize].name.clone();
        let old = &self.funcs[id.0 as usize];
        if defines && old.defined {
            return Err(self.diags.error(span, format!("function `{name}` has two bodies")));
        }
        let same = self.same_signature(&old.sig, &sig);
        if !(same || old.sig.unspecified || sig.unspecified) {
            let text = format!("`{name}` was declared with another type");
            return Err(self.diags.error(span, text));
        }
        if old.sig.unspecified || defines && !sig.unspecified {
            self.module.funcs[id.0 as usize].sig = self.signature(&sig);
            self.funcs[id.0 as usize].sig = sig;
        }
        let info = &mut self.funcs[id.0 as usize];
        info.defined |= defines;
        info.is_static |= is_static;
        self.module.funcs[id.0 as usize].exported = !info.is_static;
        Ok(id)
    }

    fn same_signature(&self, a: &Sig, b: &Sig) -> bool {
        let plain = |sig: &Sig| -> Vec<TypeId> { sig.params.iter().map(|p| p.plain()).collect() };
        a.ret.plain() == b.ret.plain() && a.variadic == b.variadic && plain(a) == plain(b)
    }

    /// The signature as targets see it: a record is passed by address, and returned through a first
    /// parameter.
    fn signature(&mut self, sig: &Sig) -> SigId {
        let mut params = Vec::new();
        if self.types.is_record(sig.ret) {
            params.push(ir::Ty::Ptr);
        }
        params.extend(sig.params.iter().map(|p| self.types.reg(*p)));
        if sig.variadic {
            params.push(ir::Ty::Ptr);
        }
        let void = sig.ret.plain() == TypeId::VOID || self.types.is_record(sig.ret);
        let ret = (!void).then(|| self.types.reg(sig.ret));
        self.module.signature(Signature { params, ret })
    }

    /// Host functions that nothing uses are not imported. Keeps the numbers of the others in order.
    fn drop_unused_imports(&mut self) {
        let mut used = vec![false; self.module.funcs.len()];
        self.module.address_taken().iter().for_each(|id| used[id.0 as usize] = true);
        for body in self.module.funcs.iter().filter_map(|f| f.body.as_ref()) {
            for inst in body.blocks.iter().flat_map(|b| &b.insts) {
                if let ir::Inst::Call { callee: ir::Callee::Direct(id), .. } = inst {
                    used[id.0 as usize] = true;
                }
            }
        }
        let keep: Vec<bool> =
            self.module.funcs.iter().zip(used).map(|(f, used)| used || f.body.is_some()).collect();
        self.module.retain_funcs(&keep);
    }
}

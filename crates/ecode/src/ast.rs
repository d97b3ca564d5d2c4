//! The syntax tree: what was written, before names and types are known.

use crate::span::Span;
use std::rc::Rc;

pub(crate) type Name = Rc<str>;

/// A name and its place.
#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) name: Name,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// Height of the tree, which the parser bounds.
    pub(crate) depth: u16,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Int {
        value: u64,
        unsigned: bool,
        long: bool,
        decimal: bool,
    },
    Float {
        value: f64,
        single: bool,
    },
    Char(i32),
    Str(Vec<u8>),
    Name(Name),
    Unary(UnOp, Box<Expr>),
    /// `++`/`--`; `delta` is 1 or -1.
    Step {
        delta: i64,
        prefix: bool,
        target: Box<Expr>,
    },
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Assign(Option<BinOp>, Box<Expr>, Box<Expr>),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Cast(Box<TypeName>, Box<Expr>),
    SizeofExpr(Box<Expr>),
    SizeofType(Box<TypeName>),
    AlignofType(Box<TypeName>),
    Call(Box<Expr>, Vec<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Member {
        base: Box<Expr>,
        field: Ident,
        arrow: bool,
    },
    Compound(Box<TypeName>, Box<Init>),
    Generic(Box<Expr>, Vec<(Option<TypeName>, Expr)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnOp {
    Plus,
    Minus,
    BitNot,
    Not,
    Deref,
    Addr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    LogAnd,
    LogOr,
}

/// A type as written: specifiers, then what the declarator makes of them.
#[derive(Debug)]
pub(crate) struct TypeName {
    pub(crate) spec: Rc<Spec>,
    pub(crate) derivs: Vec<Deriv>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) storage: Storage,
    pub(crate) base: Base,
    pub(crate) is_const: bool,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    None,
    Typedef,
    Static,
    Extern,
}

#[derive(Debug)]
pub(crate) enum Base {
    Void,
    Bool,
    /// `bits` 8, 16, 32 or 64; `signed` is `None` for plain `char`.
    Int {
        bits: u8,
        signed: Option<bool>,
    },
    Float,
    Double,
    Named(Ident),
    Record {
        is_union: bool,
        tag: Option<Ident>,
        fields: Option<Vec<Field>>,
    },
    Enum {
        tag: Option<Ident>,
        items: Option<Vec<(Ident, Option<Expr>)>>,
    },
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) spec: Rc<Spec>,
    pub(crate) declarator: Option<Declarator>,
}

/// A name with derivations in the order in which they apply to the base type.
#[derive(Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Option<Ident>,
    pub(crate) derivs: Vec<Deriv>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Deriv {
    Pointer { is_const: bool },
    Array(Option<Expr>),
    Func { params: Vec<Param>, variadic: bool, unspecified: bool },
}

#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) spec: Rc<Spec>,
    pub(crate) declarator: Declarator,
}

#[derive(Debug)]
pub(crate) struct Decl {
    pub(crate) spec: Rc<Spec>,
    pub(crate) items: Vec<(Declarator, Option<Init>)>,
}

#[derive(Debug)]
pub(crate) enum Init {
    Expr(Expr),
    List(Vec<InitItem>, Span),
}

#[derive(Debug)]
pub(crate) struct InitItem {
    pub(crate) designators: Vec<Designator>,
    pub(crate) init: Init,
}

#[derive(Debug)]
pub(crate) enum Designator {
    Field(Ident),
    Index(Expr),
}

#[derive(Debug)]
pub(crate) struct FuncDef {
    pub(crate) spec: Rc<Spec>,
    pub(crate) declarator: Declarator,
    pub(crate) body: Block,
}

#[derive(Debug)]
pub(crate) enum Item {
    Decl(Decl),
    Func(FuncDef),
    Assert(Expr, Span),
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) end: Span,
}

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Empty,
    Expr(Expr),
    Decl(Decl),
    Assert(Expr),
    Block(Block),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    Do(Box<Stmt>, Expr),
    For {
        init: Option<Box<Stmt>>,
        cond: Option<Expr>,
        step: Option<Expr>,
        body: Box<Stmt>,
    },
    Switch(Expr, Box<Stmt>),
    /// `case LOW ... HIGH:` when there is a second value.
    Case(Expr, Option<Expr>, Box<Stmt>),
    Default(Box<Stmt>),
    Label(Ident, Box<Stmt>),
    Goto(Ident),
    Break,
    Continue,
    Return(Option<Expr>),
}

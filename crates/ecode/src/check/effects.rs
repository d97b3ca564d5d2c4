//! What an expression may change, and whose address is taken: found by a look at the tree.

use crate::ast::{Block, Expr, ExprKind, Init, Name, Stmt, StmtKind, UnOp};
use std::collections::HashSet;

/// Whether evaluating `expr` may assign a variable of the function.
pub(super) fn may_assign(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Assign(..) | ExprKind::Step { .. } => true,
        ExprKind::Compound(_, init) => init_any(init, &mut may_assign),
        _ => children(expr).into_iter().any(may_assign),
    }
}

/// The names to which `&` is applied anywhere in `block`.
pub(super) fn addressed(block: &Block) -> HashSet<Name> {
    let mut names = HashSet::new();
    block.stmts.iter().for_each(|stmt| stmt_names(stmt, &mut names));
    names
}

fn expr_names(expr: &Expr, names: &mut HashSet<Name>) {
    if let ExprKind::Unary(UnOp::Addr, inner) = &expr.kind
        && let ExprKind::Name(name) = &root(inner).kind
    {
        names.insert(name.clone());
    }
    if let ExprKind::Compound(_, init) = &expr.kind {
        init_names(init, names);
    }
    children(expr).into_iter().for_each(|child| expr_names(child, names));
}

/// The variable inside `a.b[c]`.
fn root(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Member { base, arrow: false, .. } | ExprKind::Index(base, _) => root(base),
        _ => expr,
    }
}

fn init_names(init: &Init, names: &mut HashSet<Name>) {
    init_any(init, &mut |expr| {
        expr_names(expr, names);
        false
    });
}

fn init_any(init: &Init, test: &mut impl FnMut(&Expr) -> bool) -> bool {
    match init {
        Init::Expr(expr) => test(expr),
        Init::List(items, _) => items.iter().any(|item| init_any(&item.init, test)),
    }
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Step { target: a, .. }
        | ExprKind::Cast(_, a)
        | ExprKind::Member { base: a, .. } => vec![a],
        ExprKind::Binary(_, a, b)
        | ExprKind::Assign(_, a, b)
        | ExprKind::Comma(a, b)
        | ExprKind::Index(a, b) => vec![a, b],
        ExprKind::Cond(a, b, c) => vec![a, b, c],
        ExprKind::Call(callee, args) => args.iter().chain([&**callee]).collect(),
        ExprKind::Generic(_, arms) => arms.iter().map(|arm| &arm.1).collect(),
        ExprKind::SizeofExpr(inner) => vec![inner],
        ExprKind::Int { .. }
        | ExprKind::Float { .. }
        | ExprKind::Char(_)
        | ExprKind::Str(_)
        | ExprKind::Name(_)
        | ExprKind::SizeofType(_)
        | ExprKind::AlignofType(_)
        | ExprKind::Compound(..) => Vec::new(),
    }
}

fn stmt_names(stmt: &Stmt, names: &mut HashSet<Name>) {
    match &stmt.kind {
        StmtKind::Expr(expr) | StmtKind::Return(Some(expr)) => expr_names(expr, names),
        StmtKind::Decl(decl) => {
            decl.items.iter().filter_map(|item| item.1.as_ref()).for_each(|i| init_names(i, names));
        }
        StmtKind::Block(block) => block.stmts.iter().for_each(|stmt| stmt_names(stmt, names)),
        StmtKind::If(cond, then, other) => {
            expr_names(cond, names);
            stmt_names(then, names);
            other.iter().for_each(|other| stmt_names(other, names));
        }
        StmtKind::While(cond, body) | StmtKind::Do(body, cond) | StmtKind::Switch(cond, body) => {
            expr_names(cond, names);
            stmt_names(body, names);
        }
        StmtKind::For { init, cond, step, body } => {
            init.iter().for_each(|init| stmt_names(init, names));
            cond.iter().chain(step).for_each(|expr| expr_names(expr, names));
            stmt_names(body, names);
        }
        StmtKind::Case(_, _, body) | StmtKind::Default(body) | StmtKind::Label(_, body) => {
            stmt_names(body, names);
        }
        StmtKind::Empty
        | StmtKind::Assert(_)
        | StmtKind::Goto(_)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(None) => {}
    }
}

//! Types of E-code, interned: equal types have equal ids. Sizes are those of C on 64-bit Linux, on
//! every target.

use crate::{ast::Name, ir::Ty};
use std::collections::HashMap;

/// A type, and in its highest bit whether it is `const`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(u32);

const CONST_BIT: u32 = 1 << 31;

impl TypeId {
    pub(crate) const VOID: TypeId = TypeId(0);
    pub(crate) const BOOL: TypeId = TypeId(1);
    pub(crate) const CHAR: TypeId = TypeId(2);
    pub(crate) const UCHAR: TypeId = TypeId(3);
    pub(crate) const SHORT: TypeId = TypeId(4);
    pub(crate) const USHORT: TypeId = TypeId(5);
    pub(crate) const INT: TypeId = TypeId(6);
    pub(crate) const UINT: TypeId = TypeId(7);
    pub(crate) const LONG: TypeId = TypeId(8);
    pub(crate) const ULONG: TypeId = TypeId(9);
    pub(crate) const FLOAT: TypeId = TypeId(10);
    pub(crate) const DOUBLE: TypeId = TypeId(11);

    pub(crate) fn is_const(self) -> bool {
        self.0 & CONST_BIT != 0
    }

    pub(crate) fn with_const(self, is_const: bool) -> TypeId {
        if is_const { TypeId(self.0 | CONST_BIT) } else { self }
    }

    pub(crate) fn plain(self) -> TypeId {
        TypeId(self.0 & !CONST_BIT)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordId(u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Void,
    Bool,
    Int {
        bits: u8,
        signed: bool,
    },
    F32,
    F64,
    Ptr(TypeId),
    /// The length of an incomplete array is `None`.
    Array(TypeId, Option<u64>),
    Record(RecordId),
    Func(Sig),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sig {
    pub(crate) params: Vec<TypeId>,
    pub(crate) ret: TypeId,
    pub(crate) variadic: bool,
    /// Declared with `()`: the parameters are not known.
    pub(crate) unspecified: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldInfo {
    /// `None` for an unnamed struct or union, whose fields count as the outer one's.
    pub(crate) name: Option<Name>,
    pub(crate) ty: TypeId,
    pub(crate) offset: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) is_union: bool,
    pub(crate) fields: Vec<FieldInfo>,
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) complete: bool,
    depth: u16,
    holds_array: bool,
}

/// Objects beyond this size are refused.
pub(crate) const MAX_OBJECT: u64 = 1 << 30;

/// Types in types: what looks into a type calls itself as often. C asks for 63.
pub(crate) const MAX_DEPTH: u16 = 200;

/// How many expressions and fields checking a text may still look at.
#[derive(Debug)]
pub(crate) struct Steps(u32);

impl Steps {
    /// A text of 4 MiB has a few million. There are short ones that have no end of them.
    pub(crate) const MAX: u32 = 20_000_000;

    pub(crate) const fn new() -> Self {
        Self(Self::MAX)
    }

    /// Takes one; `false` when none is left.
    pub(crate) fn take(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

#[derive(Debug)]
pub(crate) struct Types {
    types: Vec<Type>,
    /// Of each type: see [`Types::depth`].
    depths: Vec<u16>,
    ids: HashMap<Type, TypeId>,
    records: Vec<Record>,
}

impl Types {
    pub(crate) fn new() -> Self {
        let mut types = Self {
            types: Vec::new(),
            depths: Vec::new(),
            ids: HashMap::new(),
            records: Vec::new(),
        };
        types.intern(Type::Void);
        types.intern(Type::Bool);
        for bits in [8, 16, 32, 64] {
            types.intern(Type::Int { bits, signed: true });
            types.intern(Type::Int { bits, signed: false });
        }
        types.intern(Type::F32);
        types.intern(Type::F64);
        types
    }

    pub(crate) fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.ids.get(&ty) {
            return *id;
        }
        let id = TypeId(self.types.len() as u32);
        let depth = match &ty {
            // A record behind a pointer is never looked into.
            Type::Ptr(to) if self.is_record(*to) => 1,
            Type::Ptr(of) | Type::Array(of, _) | Type::Func(Sig { ret: of, .. }) => {
                self.depth(*of).saturating_add(1)
            }
            _ => 0,
        };
        self.depths.push(depth);
        self.types.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.plain().0 as usize]
    }

    /// How many types lie in each other here.
    pub(crate) fn depth(&self, id: TypeId) -> u16 {
        match self.get(id) {
            Type::Record(record) => self.record(*record).depth,
            _ => self.depths[id.plain().0 as usize],
        }
    }

    pub(crate) fn pointer(&mut self, to: TypeId) -> TypeId {
        self.intern(Type::Ptr(to))
    }

    pub(crate) fn array(&mut self, of: TypeId, length: Option<u64>) -> TypeId {
        self.intern(Type::Array(of, length))
    }

    pub(crate) fn new_record(&mut self, name: String, is_union: bool) -> (RecordId, TypeId) {
        let id = RecordId(self.records.len() as u32);
        let fields = Vec::new();
        self.records.push(Record {
            name,
            is_union,
            fields,
            size: 0,
            align: 1,
            complete: false,
            depth: 0,
            holds_array: false,
        });
        (id, self.intern(Type::Record(id)))
    }

    pub(crate) fn record(&self, id: RecordId) -> &Record {
        &self.records[id.0 as usize]
    }

    /// Lays out `fields` as C does. `None` when the whole is too large.
    pub(crate) fn complete(
        &mut self,
        id: RecordId,
        fields: Vec<(Option<Name>, TypeId)>,
    ) -> Option<()> {
        let is_union = self.record(id).is_union;
        let (mut size, mut end, mut align) = (0_u64, 0_u64, 1_u64);
        let mut depth = 0;
        let mut infos = Vec::with_capacity(fields.len());
        for (name, ty) in fields {
            let field_align = self.align(ty);
            let offset = if is_union { 0 } else { end.next_multiple_of(field_align) };
            end = offset.checked_add(self.size(ty).unwrap_or(0))?;
            size = size.max(end);
            align = align.max(field_align);
            depth = depth.max(self.depth(ty).saturating_add(1));
            infos.push(FieldInfo { name, ty, offset });
        }
        let holds_array = infos.iter().any(|field| self.holds_array(field.ty));
        let size = size.checked_next_multiple_of(align).filter(|s| *s <= MAX_OBJECT)?;
        let record = &mut self.records[id.0 as usize];
        (record.fields, record.size, record.align, record.complete) = (infos, size, align, true);
        (record.depth, record.holds_array) = (depth, holds_array);
        Some(())
    }

    /// Bytes that an object of the type takes; `None` for functions, `void` and what is incomplete.
    pub(crate) fn size(&self, id: TypeId) -> Option<u64> {
        match self.get(id) {
            Type::Void | Type::Func(_) | Type::Array(_, None) => None,
            Type::Bool => Some(1),
            Type::Int { bits, .. } => Some(u64::from(*bits) / 8),
            Type::F32 => Some(4),
            Type::F64 | Type::Ptr(_) => Some(8),
            Type::Array(of, Some(length)) => self.size(*of)?.checked_mul(*length),
            Type::Record(id) => Some(self.record(*id)).filter(|r| r.complete).map(|r| r.size),
        }
    }

    /// Whether an object of the type is an array, or one lies in it.
    pub(crate) fn holds_array(&self, id: TypeId) -> bool {
        match self.get(id) {
            Type::Array(..) => true,
            Type::Record(record) => self.record(*record).holds_array,
            _ => false,
        }
    }

    pub(crate) fn align(&self, id: TypeId) -> u64 {
        match self.get(id) {
            Type::Array(of, _) => self.align(*of),
            Type::Record(id) => self.record(*id).align,
            _ => self.size(id).unwrap_or(1).max(1),
        }
    }

    /// The field of that name, in unnamed members too: its type and its offset. `steps` counts the
    /// fields that were looked at; without any left, none is found.
    pub(crate) fn field(
        &self,
        id: RecordId,
        name: &str,
        steps: &mut Steps,
    ) -> Option<(TypeId, u64)> {
        self.record(id).fields.iter().find_map(|field| {
            if !steps.take() {
                return None;
            }
            match &field.name {
                Some(own) => (&**own == name).then_some((field.ty, field.offset)),
                None => {
                    let Type::Record(inner) = self.get(field.ty) else { return None };
                    let (ty, offset) = self.field(*inner, name, steps)?;
                    Some((ty, field.offset + offset))
                }
            }
        })
    }

    pub(crate) fn is_int(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Bool | Type::Int { .. })
    }

    pub(crate) fn is_float(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::F32 | Type::F64)
    }

    pub(crate) fn is_arith(&self, id: TypeId) -> bool {
        self.is_int(id) || self.is_float(id)
    }

    pub(crate) fn is_record(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Record(_))
    }

    pub(crate) fn is_scalar(&self, id: TypeId) -> bool {
        self.is_arith(id) || matches!(self.get(id), Type::Ptr(_))
    }

    /// What a pointer type points to.
    pub(crate) fn pointee(&self, id: TypeId) -> Option<TypeId> {
        match self.get(id) {
            Type::Ptr(to) => Some(*to),
            _ => None,
        }
    }

    /// Width in bits of an integer type, and whether it is signed.
    pub(crate) fn int(&self, id: TypeId) -> Option<(u8, bool)> {
        match self.get(id) {
            Type::Bool => Some((8, false)),
            Type::Int { bits, signed } => Some((*bits, *signed)),
            _ => None,
        }
    }

    /// How a value of the type is held in a register; a record, as its address.
    pub(crate) fn reg(&self, id: TypeId) -> Ty {
        match self.get(id) {
            Type::Int { bits: 64, .. } => Ty::I64,
            Type::Bool | Type::Int { .. } | Type::Void => Ty::I32,
            Type::F32 => Ty::F32,
            Type::F64 => Ty::F64,
            Type::Ptr(_) | Type::Array(..) | Type::Record(_) | Type::Func(_) => Ty::Ptr,
        }
    }

    /// The type after integer promotion.
    pub(crate) fn promote(&self, id: TypeId) -> TypeId {
        match self.get(id) {
            Type::Bool | Type::Int { bits: 8 | 16, .. } => TypeId::INT,
            _ => id.plain(),
        }
    }

    /// The common type of two arithmetic operands.
    pub(crate) fn usual(&self, a: TypeId, b: TypeId) -> TypeId {
        let (a, b) = (self.promote(a), self.promote(b));
        let rank = |id: TypeId| match id {
            TypeId::DOUBLE => 6,
            TypeId::FLOAT => 5,
            TypeId::ULONG => 4,
            TypeId::LONG => 3,
            TypeId::UINT => 2,
            _ => 1,
        };
        if rank(a) >= rank(b) { a } else { b }
    }

    /// The type as C spells it.
    pub(crate) fn name(&self, id: TypeId) -> String {
        let prefix = if id.is_const() { "const " } else { "" };
        let name = match self.get(id) {
            Type::Void => "void".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int { bits, signed } => {
                let word = match bits {
                    8 => "char",
                    16 => "short",
                    32 => "int",
                    _ => "long",
                };
                format!("{}{word}", if *signed { "" } else { "unsigned " })
            }
            Type::F32 => "float".to_owned(),
            Type::F64 => "double".to_owned(),
            Type::Ptr(to) => format!("{} *", self.name(*to)),
            Type::Array(of, Some(length)) => format!("{}[{length}]", self.name(*of)),
            Type::Array(of, None) => format!("{}[]", self.name(*of)),
            Type::Record(id) => self.record(*id).name.clone(),
            Type::Func(sig) => format!("{}()", self.name(sig.ret)),
        };
        format!("{prefix}{name}")
    }
}

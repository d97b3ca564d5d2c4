//! Words of CIL text as small numbers. Keywords have fixed ones, so that they can be matched.

use crate::hash::FixedState;
use indexmap::IndexSet;

/// A word, interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Word(pub(super) u32);

/// All words seen, keywords first.
#[derive(Debug)]
pub(super) struct Words(IndexSet<Box<str>, FixedState>);

impl Words {
    pub(super) fn new() -> Self {
        Self(KEYWORDS.iter().map(|word| Box::from(*word)).collect())
    }

    pub(super) fn intern(&mut self, text: &str) -> Word {
        if let Some(found) = self.0.get_index_of(text) {
            return Word(found as u32);
        }
        Word(self.0.insert_full(text.into()).0 as u32)
    }

    pub(super) fn find(&self, text: &str) -> Option<Word> {
        self.0.get_index_of(text).map(|index| Word(index as u32))
    }

    pub(super) fn text(&self, word: Word) -> &str {
        self.0.get_index(word.0 as usize).map_or("", |text| text)
    }
}

macro_rules! keywords {
    ($($name:ident $text:literal)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Number { $($name),* }

        /// The keywords, by number.
        const KEYWORDS: &[&str] = &[$($text),*];

        /// The words that CIL gives a meaning.
        pub(super) mod kw {
            use super::{Number, Word};
            $(pub(in crate::cil) const $name: Word = Word(Number::$name as u32);)*
        }
    };
}

keywords! {
    ALLOW "allow" ALLOWX "allowx" AUDITALLOW "auditallow" AUDITALLOWX "auditallowx"
    DONTAUDIT "dontaudit" DONTAUDITX "dontauditx" NEVERALLOW "neverallow"
    NEVERALLOWX "neverallowx" DENY "deny" PERMISSIONX "permissionx"
    BLOCK "block" BLOCKABSTRACT "blockabstract" BLOCKINHERIT "blockinherit" OPTIONAL "optional"
    IN "in" MACRO "macro" CALL "call" BOOLEAN "boolean" BOOLEANIF "booleanif" TUNABLE "tunable"
    TUNABLEIF "tunableif" TRUE "true" FALSE "false"
    CLASS "class" CLASSCOMMON "classcommon" CLASSORDER "classorder" COMMON "common"
    CLASSMAP "classmap" CLASSMAPPING "classmapping" CLASSPERMISSION "classpermission"
    CLASSPERMISSIONSET "classpermissionset" UNORDERED "unordered"
    TYPE "type" TYPEALIAS "typealias" TYPEALIASACTUAL "typealiasactual"
    TYPEATTRIBUTE "typeattribute" TYPEATTRIBUTESET "typeattributeset"
    EXPANDTYPEATTRIBUTE "expandtypeattribute" TYPEBOUNDS "typebounds"
    TYPEPERMISSIVE "typepermissive" TYPENEVERAUDIT "typeneveraudit" TYPECHANGE "typechange"
    TYPEMEMBER "typemember" TYPETRANSITION "typetransition"
    ROLE "role" ROLETYPE "roletype" ROLEATTRIBUTE "roleattribute"
    ROLEATTRIBUTESET "roleattributeset" ROLEALLOW "roleallow" ROLETRANSITION "roletransition"
    ROLEBOUNDS "rolebounds" OBJECT_R "object_r"
    USER "user" USERROLE "userrole" USERATTRIBUTE "userattribute"
    USERATTRIBUTESET "userattributeset" USERLEVEL "userlevel" USERRANGE "userrange"
    USERBOUNDS "userbounds" USERPREFIX "userprefix" SELINUXUSER "selinuxuser"
    SELINUXUSERDEFAULT "selinuxuserdefault"
    SENSITIVITY "sensitivity" SENSITIVITYALIAS "sensitivityalias"
    SENSITIVITYALIASACTUAL "sensitivityaliasactual" SENSITIVITYORDER "sensitivityorder"
    SENSITIVITYCATEGORY "sensitivitycategory" CATEGORY "category" CATEGORYALIAS "categoryalias"
    CATEGORYALIASACTUAL "categoryaliasactual" CATEGORYORDER "categoryorder"
    CATEGORYSET "categoryset" LEVEL "level" LEVELRANGE "levelrange"
    RANGETRANSITION "rangetransition"
    CONSTRAIN "constrain" MLSCONSTRAIN "mlsconstrain" VALIDATETRANS "validatetrans"
    MLSVALIDATETRANS "mlsvalidatetrans"
    CONTEXT "context" SID "sid" SIDCONTEXT "sidcontext" SIDORDER "sidorder"
    FILECON "filecon" PORTCON "portcon" NODECON "nodecon" NETIFCON "netifcon"
    GENFSCON "genfscon" FSUSE "fsuse" IPADDR "ipaddr" IBPKEYCON "ibpkeycon"
    IBENDPORTCON "ibendportcon" IOMEMCON "iomemcon" IOPORTCON "ioportcon"
    PCIDEVICECON "pcidevicecon" PIRQCON "pirqcon" DEVICETREECON "devicetreecon"
    MLS "mls" HANDLEUNKNOWN "handleunknown" POLICYCAP "policycap" DEFAULTUSER "defaultuser"
    DEFAULTROLE "defaultrole" DEFAULTTYPE "defaulttype" DEFAULTRANGE "defaultrange"
    AND "and" OR "or" XOR "xor" NOT "not" ALL "all" RANGE "range" EQ "eq" NEQ "neq" DOM "dom"
    DOMBY "domby" INCOMP "incomp" SELF "self" NOTSELF "notself" OTHER "other"
    U1 "u1" U2 "u2" U3 "u3" R1 "r1" R2 "r2" R3 "r3" T1 "t1" T2 "t2" T3 "t3"
    L1 "l1" L2 "l2" H1 "h1" H2 "h2"
    SOURCE "source" TARGET "target" LOW "low" HIGH "high" LOW_HIGH "low-high" GLBLUB "glblub"
    REJECT "reject" IOCTL "ioctl" NLMSG "nlmsg" BEFORE "before" AFTER "after" NAME "name"
    STRING "string" BOOL "bool" FILE "file" DIR "dir" CHAR "char"
    SOCKET "socket" PIPE "pipe" SYMLINK "symlink" ANY "any" TCP "tcp" UDP "udp" DCCP "dccp"
    SCTP "sctp" XATTR "xattr" TASK "task" TRANS "trans" STAR "*"
}

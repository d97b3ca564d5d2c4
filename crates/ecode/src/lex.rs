//! Text to tokens.

use crate::{
    diag::Diags,
    span::{Source, Span},
};
use logos::Logos;

/// Kinds of token. What a word, number or string says is read from the text at its span.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\x0b\x0c]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
#[rustfmt::skip]
pub(crate) enum Tok {
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")] Ident,
    #[regex(r"\.?[0-9]([eEpP][+-]|[A-Za-z0-9_.])*")] Number,
    #[regex(r#"(L|u8|u|U)?"([^"\\\n]|\\[^\n]|\\\n)*""#)] Str,
    #[regex(r"(L|u|U)?'([^'\\\n]|\\[^\n])+'")] Char,

    #[token("auto")] Auto, #[token("break")] Break, #[token("case")] Case, #[token("char")] KwChar,
    #[token("const")] Const, #[token("continue")] Continue, #[token("default")] Default,
    #[token("do")] Do, #[token("double")] Double, #[token("else")] Else, #[token("enum")] Enum,
    #[token("extern")] Extern, #[token("float")] Float, #[token("for")] For, #[token("goto")] Goto,
    #[token("if")] If, #[token("inline")] Inline, #[token("int")] Int, #[token("long")] Long,
    #[token("register")] Register, #[token("restrict")] Restrict, #[token("return")] Return,
    #[token("short")] Short, #[token("signed")] Signed, #[token("sizeof")] Sizeof,
    #[token("static")] Static, #[token("struct")] Struct, #[token("switch")] Switch,
    #[token("typedef")] Typedef, #[token("union")] Union, #[token("unsigned")] Unsigned,
    #[token("void")] Void, #[token("volatile")] Volatile, #[token("while")] While,
    #[token("_Bool")] Bool, #[token("_Alignof")] Alignof, #[token("_Static_assert")] StaticAssert,
    #[token("_Noreturn")] Noreturn, #[token("_Generic")] Generic,

    #[token("...")] Ellipsis, #[token("->")] Arrow, #[token("++")] Inc, #[token("--")] Dec,
    #[token("<<=")] ShlAssign, #[token(">>=")] ShrAssign, #[token("<<")] Shl, #[token(">>")] Shr,
    #[token("<=")] Le, #[token(">=")] Ge, #[token("==")] EqEq, #[token("!=")] Ne,
    #[token("&&")] AndAnd, #[token("||")] OrOr, #[token("*=")] MulAssign, #[token("/=")] DivAssign,
    #[token("%=")] RemAssign, #[token("+=")] AddAssign, #[token("-=")] SubAssign,
    #[token("&=")] AndAssign, #[token("^=")] XorAssign, #[token("|=")] OrAssign,
    #[token("(")] LParen, #[token(")")] RParen, #[token("[")] LBracket, #[token("]")] RBracket,
    #[token("{")] LBrace, #[token("}")] RBrace, #[token(".")] Dot, #[token(",")] Comma,
    #[token(";")] Semi, #[token(":")] Colon, #[token("?")] Question, #[token("=")] Assign,
    #[token("<")] Lt, #[token(">")] Gt, #[token("+")] Plus, #[token("-")] Minus, #[token("*")] Star,
    #[token("/")] Slash, #[token("%")] Percent, #[token("&")] Amp, #[token("|")] Pipe,
    #[token("^")] Caret, #[token("~")] Tilde, #[token("!")] Bang,
    #[token("#")] Hash, #[token("@")] At,
    /// The start of a comment that has no end.
    #[token("/*")] OpenComment,

    /// After the last token.
    End,
}

impl Tok {
    /// What messages call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tok::Ident => "a name",
            Tok::Number => "a number",
            Tok::Str => "a string",
            Tok::End => "the end of the text",
            Tok::LParen => "`(`",
            Tok::RParen => "`)`",
            Tok::LBracket => "`[`",
            Tok::RBracket => "`]`",
            Tok::LBrace => "`{`",
            Tok::RBrace => "`}`",
            Tok::Semi => "`;`",
            Tok::Colon => "`:`",
            Tok::Comma => "`,`",
            Tok::Assign => "`=`",
            Tok::While => "`while`",
            _ => "something else",
        }
    }
}

/// The tokens of `source`, the last being [`Tok::End`]. What is no token is reported and left out.
pub(crate) fn tokens(source: Source<'_>, file: u32, diags: &mut Diags) -> Vec<(Tok, Span)> {
    let mut out = Vec::with_capacity(source.text.len() / 4);
    let mut last_bad = u32::MAX;
    for (token, range) in Tok::lexer(source.text).spanned() {
        let span = Span { file, start: range.start as u32, end: range.end as u32 };
        match token {
            Ok(Tok::Hash) => {
                let help = "there are no `#` directives: use `enum` for constants";
                diags.hint(span, "E-code has no preprocessor", help);
            }
            Ok(Tok::OpenComment) => {
                diags.error(span, "this comment has no end");
                break;
            }
            Ok(token) => out.push((token, span)),
            Err(()) if span.start == last_bad => last_bad = span.end,
            Err(()) => {
                bad_token(span, &source.text[range], diags);
                last_bad = span.end;
            }
        }
    }
    let end = source.text.len() as u32;
    out.push((Tok::End, Span { file, start: end, end }));
    out
}

fn bad_token(span: Span, text: &str, diags: &mut Diags) {
    match text.chars().next() {
        Some('"') => diags.hint(span, "this string has no end", "add `\"` before the line ends"),
        Some('\'') => diags.error(span, "this character constant is empty or has no end"),
        Some(c) => diags.error(span, format!("`{}` does not belong here", c.escape_default())),
        None => diags.error(span, "unreadable text"),
    };
}

/// The bytes that a string or character literal stands for, without a final 0.
pub(crate) fn unescape(text: &str, span: Span, diags: &mut Diags) -> Vec<u8> {
    let quote = text.find(['"', '\'']).unwrap_or(0);
    if quote > 0 {
        diags.hint(span, "wide characters do not exist", "write a plain literal: text is UTF-8");
    }
    let body = text.get(quote + 1..text.len().saturating_sub(1)).unwrap_or("").as_bytes();
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        if body[at] == b'\\' && at + 1 < body.len() {
            at = escape(body, at + 1, &mut out, span, diags);
        } else {
            out.push(body[at]);
            at += 1;
        }
    }
    out
}

/// Reads the escape whose letter is at `at`; returns where text goes on.
fn escape(body: &[u8], at: usize, out: &mut Vec<u8>, span: Span, diags: &mut Diags) -> usize {
    let simple = match body[at] {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'a' => 7,
        b'e' => 27,
        b'\n' => return at + 1,
        b'x' => return digits(body, at + 1, 16, usize::MAX, out, span, diags),
        b'0'..=b'7' => return digits(body, at, 8, 3, out, span, diags),
        other => other,
    };
    out.push(simple);
    at + 1
}

fn digits(
    body: &[u8],
    start: usize,
    radix: u32,
    most: usize,
    out: &mut Vec<u8>,
    span: Span,
    diags: &mut Diags,
) -> usize {
    let mut value: u32 = 0;
    let mut at = start;
    while at < body.len() && at - start < most {
        let Some(digit) = char::from(body[at]).to_digit(radix) else { break };
        value = value.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        diags.error(span, "`\\x` needs hexadecimal digits");
    }
    if value > 255 {
        diags.error(span, "this escape does not fit in one byte");
    }
    out.push(value as u8);
    at
}

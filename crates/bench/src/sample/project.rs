//! Puts the sample application together: so many files, so many lines, so many bytes.

use super::{SourceFile, fragment, prose};
use crate::random::Random;

const MODULES: usize = 18;
const LINES: usize = 8060;
const BYTES: usize = 190_000;
/// What every `.c` file begins with: the name's comment and the includes.
const INCLUDES: &str = "#include \"sample.h\"\n\n";

const CONFIG_H: &str = include_str!("fragments/config.h");
const UTIL_H: &str = include_str!("fragments/util.h");
const SAMPLE_H: &str = include_str!("fragments/sample.h");
const UTIL_C: &str = include_str!("fragments/util.c");
const MAKEFILE: &str = include_str!("fragments/Makefile");

/// Every file. Comments are as wide as brings the whole nearest to [`BYTES`].
pub(super) fn files() -> Vec<SourceFile> {
    let size = |files: &[SourceFile]| files.iter().map(|file| file.text.len()).sum::<usize>();
    let mut files = (10..76)
        .map(with_comments)
        .min_by_key(|files| size(files).abs_diff(BYTES))
        .unwrap_or_default();
    files.push(file("Makefile", MAKEFILE));
    files
}

fn file(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
    SourceFile { name: name.into(), text: text.into() }
}

fn with_comments(width: usize) -> Vec<SourceFile> {
    let mut files = vec![
        file("config.h", CONFIG_H),
        file("util.h", UTIL_H),
        file("sample.h", SAMPLE_H),
        file("modules.h", modules_h()),
        file("util.c", UTIL_C),
        file("main.c", main_c()),
    ];
    let mut left = LINES - files.iter().map(|file| lines(&file.text)).sum::<usize>();
    let mut author = Author { random: Random::new(1999), pieces: 0, width };
    for number in 0..MODULES {
        let share = left / (MODULES - number);
        left -= share;
        files.push(file(format!("module{number:02}.c"), author.module(number, share)));
    }
    files
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

fn modules_h() -> String {
    let mut text = "/* The modules: each takes a number and returns another. */\n\n".to_owned();
    text += "#ifndef MODULES_H\n#define MODULES_H\n\n#include <stdint.h>\n\n";
    for number in 0..MODULES {
        text += &format!("uint32_t module{number:02}(uint32_t x);\n");
    }
    text + "\n#endif\n"
}

fn main_c() -> String {
    let mut text = "/* Calls every module in turn and prints what came of it. */\n\n".to_owned();
    text += INCLUDES;
    text += "int main(void)\n{\n\tuint32_t x = 1;\n\n";
    for number in 0..MODULES {
        text += &format!("\tx = mix(x, module{number:02}(x));\n");
    }
    text + "\tprintf(\"checksum %08x\\n\", (unsigned)x);\n\treturn 0;\n}\n"
}

/// Writes modules.
struct Author {
    random: Random,
    pieces: usize,
    width: usize,
}

impl Author {
    /// The text of a module that is exactly so many lines long.
    fn module(&mut self, number: usize, length: usize) -> String {
        const HEAD: usize = 4;
        const TAIL: usize = 8;
        let mut text = self.comment(HEAD - 1) + "\n" + INCLUDES;
        let mut functions = Vec::new();
        loop {
            let piece = fragment::piece(&mut self.random, self.pieces);
            let after = lines(&text) + lines(&piece.text) + HEAD + 1 + functions.len() + TAIL;
            if after > length {
                break;
            }
            text += &self.comment(HEAD);
            text += &piece.text;
            text.push('\n');
            functions.push(piece.function);
            self.pieces += 1;
        }
        let tail = run(number, &functions);
        let rest = length - lines(&text) - lines(&tail);
        text + &self.comment(rest) + &tail
    }

    fn comment(&mut self, lines: usize) -> String {
        prose::comment(&mut self.random, lines, self.width)
    }
}

/// The function through which the others are reached.
fn run(number: usize, functions: &[String]) -> String {
    let calls: String = functions.iter().map(|f| format!("\th = mix(h, {f}(x ^ h));\n")).collect();
    format!(
        "uint32_t module{number:02}(uint32_t x)\n{{\n\tuint32_t h = x;\n\n{calls}\treturn h;\n}}\n"
    )
}

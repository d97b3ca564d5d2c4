//! What CoD tests of its E-code: the cases that its `general.pl` writes (every arithmetic operator
//! on every pair of types, as bodies of a given prototype), against gcc; and its image transcoder
//! against its golden image, from a checkout of GTkorvo/ffs named by `ECODE_FFS`, where there is
//! one.

use crate::common::{Target, run};
use ecode::{Input, NoHost, Value, compile};
use plugin_host::bare::IsolatedInstance;
use std::{env, fmt::Write as _, fs, path::Path, process::Command, time::Duration};

const TYPES: [&str; 10] = [
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned int",
    "long",
    "unsigned long",
    "float",
    "double",
];
const VALUES: [i64; 7] = [0, 1, -1, 5, 37, 127, -128];

struct Case {
    a: &'static str,
    b: &'static str,
    op: &'static str,
}

/// 6 operators on 8 × 8 types and 4 on 10 × 10: 784.
fn cases() -> Vec<Case> {
    let pairs = |op, count: usize| {
        TYPES[..count]
            .iter()
            .flat_map(move |a| TYPES[..count].iter().map(move |b| Case { a, b, op }))
    };
    let integer = ["%", "&", "|", "^", "<<", ">>"].into_iter().flat_map(|op| pairs(op, 8));
    let number = ["+", "-", "*", "/"].into_iter().flat_map(|op| pairs(op, 10));
    integer.chain(number).collect()
}

fn is_float(ty: &str) -> bool {
    matches!(ty, "float" | "double")
}

fn value(ty: &str, number: i64) -> Value {
    match ty {
        "signed char" => Value::I32((number as i8).into()),
        "unsigned char" => Value::I32((number as u8).into()),
        "short" => Value::I32((number as i16).into()),
        "unsigned short" => Value::I32((number as u16).into()),
        "int" | "unsigned int" => Value::I32(number as i32),
        "float" => Value::F32(number as f32 * 1.25),
        "double" => Value::F64(number as f64 * 1.25),
        _ => Value::I64(number),
    }
}

fn as_f64(ty: &str, value: Value) -> f64 {
    match value {
        Value::I32(v) if ty == "unsigned int" => f64::from(v as u32),
        Value::I32(v) => f64::from(v),
        Value::I64(v) if ty == "unsigned long" => v as u64 as f64,
        Value::I64(v) => v as f64,
        Value::F32(v) => f64::from(v),
        Value::F64(v) => v,
        Value::Ptr(v) => v as f64,
    }
}

/// Whether C gives the case a meaning for these values, as `general.pl` skips those without.
fn has_meaning(case: &Case, a: Value, b: Value) -> bool {
    let (x, y) = (as_f64(case.a, a), as_f64(case.b, b));
    let defined = match case.op {
        "<<" => (0.0..8.0).contains(&y) && x >= 0.0,
        ">>" => (0.0..8.0).contains(&y),
        "%" | "/" => y > 0.0,
        _ => true,
    };
    let result = match case.op {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        _ => 0.0,
    };
    // A float that becomes an integer must fit.
    let to_int = is_float(case.b) && !is_float(case.a);
    defined
        && (!to_int
            || (result >= if case.a.starts_with('u') { 0.0 } else { -127.0 } && result <= 127.0))
}

#[test]
fn cod_s_784_arithmetic_cases_give_the_results_of_c() {
    let cases = cases();
    assert_eq!(cases.len(), 784);
    let wanted = gcc(&cases);
    let mut next = wanted.iter();
    let (mut calls, mut passed) = (0, 0);
    for case in &cases {
        let text = format!("{{ {} a = p1; {} b = p2; return a {} b; }}", case.a, case.b, case.op);
        let prototype = format!("{} proc({} p1, {} p2)", case.a, case.a, case.b);
        let input = Input { prototype: &prototype, ..Input::new("case.e", &text) };
        let module = compile(&input).unwrap_or_else(|errors| panic!("{text}\n{errors}")).module;
        let mut instance = instantiate(&module);
        for (x, y) in pairs() {
            let (a, b) = (value(case.a, x), value(case.b, y));
            if !has_meaning(case, a, b) {
                continue;
            }
            let got = instance.call("proc", &[a, b], Duration::from_secs(1)).unwrap().unwrap();
            let got = if let Value::F32(v) = got { f64::from(v).to_bits() } else { got.bits() };
            let got = if case.a == "unsigned int" { u64::from(got as u32) } else { got };
            assert_eq!(Some(&got), next.next(), "{prototype} {text} {x} {y}");
            calls += 1;
        }
        passed += 1;
    }
    println!("CoD general: {passed} of 784 cases pass ({calls} calls)");
}

fn instantiate(module: &ecode::ir::Module) -> IsolatedInstance {
    crate::common::engine().compile(module).unwrap().instantiate(Box::new(NoHost)).unwrap()
}

fn pairs() -> impl Iterator<Item = (i64, i64)> {
    VALUES.into_iter().flat_map(|x| VALUES.into_iter().map(move |y| (x, y)))
}

/// The results of all cases, in order, through gcc.
fn gcc(cases: &[Case]) -> Vec<u64> {
    let mut source = String::from("#include <stdio.h>\n#include <string.h>\n");
    source += "static void put(double d) { unsigned long u; memcpy(&u, &d, 8); printf(\"%lu\\n\", u); }\n";
    let mut main = String::new();
    for (index, case) in cases.iter().enumerate() {
        let (a, b, op) = (case.a, case.b, case.op);
        let _ = writeln!(
            source,
            "{a} f{index}({a} p1, {b} p2) {{ {a} a = p1; {b} b = p2; return a {op} b; }}"
        );
        for (x, y) in pairs() {
            if !has_meaning(case, value(a, x), value(b, y)) {
                continue;
            }
            let literal = |ty: &str, n: i64| match is_float(ty) {
                true => format!("({ty})({n} * 1.25)"),
                false => format!("({ty}){n}L"),
            };
            let call = format!("f{index}({}, {})", literal(a, x), literal(b, y));
            let _ = match is_float(a) {
                true => writeln!(main, "put({call});"),
                false => writeln!(main, "printf(\"%lu\\n\", (unsigned long){call});"),
            };
        }
        let _ = writeln!(main, "}} void g{index}(void) {{");
    }
    let _ = writeln!(source, "void g(void) {{ {main} }} int main(void) {{ g();");
    for index in 0..cases.len() {
        let _ = writeln!(source, "g{index}();");
    }
    source += "return 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    let (file, binary) = (folder.path().join("cod.c"), folder.path().join("cod"));
    fs::write(&file, source).unwrap();
    let status =
        Command::new("gcc").args(["-w", "-O0", "-o"]).args([&binary, &file]).status().unwrap();
    assert!(status.success());
    let printed = Command::new(&binary).output().unwrap().stdout;
    String::from_utf8(printed).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn cod_s_image_transcoder_gives_its_golden_image() {
    let Ok(root) = env::var("ECODE_FFS") else {
        eprintln!("skipped: ECODE_FFS does not name a checkout of GTkorvo/ffs");
        return;
    };
    let folder = Path::new(&root).join("cod/tests");
    let driver = fs::read_to_string(folder.join("gray.c")).unwrap();
    let images = fs::read_to_string(folder.join("gray-images.c")).unwrap();
    let body = string_after(&driver, "char code_string[] = \"");
    let (image, gray) = (bytes_of(&images, "image"), bytes_of(&images, "gray"));
    assert_eq!((image.len(), gray.len()), (9760, 3262));
    // The driver's prototype, and its loop over fragments, in E-code.
    let text = format!(
        "long proc(unsigned char *src, unsigned char *dst, unsigned long offset, unsigned long size,
                   unsigned char *global) {body}
         static unsigned char image[] = {{ {} }}, output[10000], global[3];
         long test(long step) {{
             long result = proc(image, output, 0, 16, global), offset = 16;
             for (; offset + step <= sizeof image; offset += step)
                 result += proc(&image[offset], &output[result], offset, step, global);
             if (offset < sizeof image)
                 result += proc(&image[offset], &output[result], offset, sizeof image - offset, global);
             return result; }}
         int at(long i) {{ return output[i]; }}",
        image.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
    );
    let module = crate::common::module(&text, "");
    for step in [3, 6, 18, 60, 180, 1002, 2004, 3006, 1000, 2000, 4, 5, 7, 8] {
        let mut instance = instantiate(&module);
        let time = Duration::from_secs(5);
        let size = instance.call("test", &[Value::I64(step)], time).unwrap();
        assert_eq!(size, Some(Value::I64(3262)), "step {step}");
        for (index, want) in gray.iter().enumerate() {
            let got = instance.call("at", &[Value::I64(index as i64)], time).unwrap();
            assert_eq!(got, Some(Value::I32((*want).into())), "step {step}, byte {index}");
        }
        for target in [Target::Native, Target::NativeStack] {
            let got = run(&module, target, Box::new(NoHost), "test", &[Value::I64(step)]);
            assert_eq!(got, Ok(Some(Value::I64(3262))), "{target:?} step {step}");
        }
    }
    println!("CoD gray: golden image, 14 fragment sizes");
}

/// The C string literal that follows `start`, unescaped.
fn string_after(text: &str, start: &str) -> String {
    let from = text.find(start).unwrap() + start.len();
    let rest = &text[from..];
    let end = rest.match_indices('"').find(|(at, _)| !rest[..*at].ends_with('\\')).unwrap().0;
    rest[..end].replace("\\\n", "").replace("\\n", "\n").replace("\\\"", "\"")
}

/// The elements of `unsigned char NAME[] = { … }`.
fn bytes_of(text: &str, name: &str) -> Vec<u8> {
    let start = text
        .match_indices(name)
        .find(|(at, _)| text[at + name.len()..].starts_with('['))
        .unwrap()
        .0;
    let open = start + text[start..].find('{').unwrap() + 1;
    let close = open + text[open..].find('}').unwrap();
    let element = |word: &str| {
        let word = word.trim();
        match word.strip_prefix("0x") {
            Some(hex) => u8::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        }
    };
    text[open..close].split(',').filter_map(element).collect()
}

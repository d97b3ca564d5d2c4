//! Test suites of others, run from a copy outside of the repository where there is one; they are
//! never committed. `ECODE_C_TESTSUITE` names a checkout of c-testsuite. Without it the test says
//! so and passes.

use crate::common::{TARGETS, Target, run};
use ecode::{Host, Input, Memory, Value, compile};
use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

/// Cases that E-code must pass.
const MUST_PASS: usize = 180;

#[test]
fn c_testsuite_passes_within_the_language() {
    let Ok(root) = env::var("ECODE_C_TESTSUITE") else {
        eprintln!("skipped: ECODE_C_TESTSUITE does not name a checkout of c-testsuite");
        return;
    };
    let folder = Path::new(&root).join("tests/single-exec");
    let mut cases: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "c"))
        .collect();
    cases.sort();
    let mut why: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut passed, mut in_kernel) = (0, 0);
    let mut not_in_kernel: BTreeMap<String, usize> = BTreeMap::new();
    for path in &cases {
        match TARGETS.iter().try_for_each(|target| case(path, *target)) {
            Ok(()) => {
                passed += 1;
                match case(path, Target::Kernel) {
                    Ok(()) => in_kernel += 1,
                    Err(reason) => *not_in_kernel.entry(kernel_reason(&reason)).or_default() += 1,
                }
            }
            Err(reason) => {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                why.entry(reason).or_default().push(name);
            }
        }
    }
    println!("c-testsuite: {passed} of {} pass on all targets", cases.len());
    println!("in the kernel: {in_kernel} of these {passed}; the others: {not_in_kernel:?}");
    let excused = ["floating point", "not permitted here"];
    let failed = not_in_kernel.keys().filter(|why| !excused.contains(&why.as_str()));
    assert_eq!(failed.count(), 0, "in the kernel: {not_in_kernel:?}");
    for (reason, names) in why {
        println!("  {}: {reason}", names.join(" "));
    }
    assert!(passed >= MUST_PASS);
}

/// The reason without the place.
fn kernel_reason(reason: &str) -> String {
    let short = |part, short: &str| reason.contains(part).then(|| short.to_owned());
    short("floating point", "floating point")
        .or_else(|| short("CAP_BPF", "not permitted here"))
        .or_else(|| short("too old for plugins", "not permitted here"))
        .unwrap_or_else(|| reason.to_owned())
}

fn case(path: &Path, target: Target) -> Result<(), String> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/include");
    let output = Command::new("gcc")
        .args(["-E", "-P", "-nostdinc", "-undef", "-D__STDC__=1", "-I"])
        .arg(include)
        .arg(path)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let input = Input::new("case.c", &text);
    let compiled = compile(&input).map_err(|errors| {
        let first = errors.messages.iter().find(|m| m.is_error()).unwrap();
        first.text().to_owned()
    })?;
    let printed = Arc::new(Mutex::new(Vec::new()));
    let host = Libc { printed: Arc::clone(&printed), exit: Arc::default() };
    let exit = Arc::clone(&host.exit);
    compiled.module.verify().map_err(|e| e.to_string())?;
    let main = compiled.module.export("main").ok_or("no main")?;
    let params = compiled.module.sig_of(main).params.clone();
    let args: Vec<Value> = params.iter().map(|ty| Value::from_bits(*ty, 0)).collect();
    let result = run(&compiled.module, target, Box::new(host), "main", &args);
    let exited = exit.lock().unwrap().take();
    let code = match (result, exited) {
        (_, Some(code)) => code,
        (Ok(Some(Value::I32(code))), None) => code,
        (Ok(_), None) => 0,
        (Err(error), None) => return Err(format!("{target:?}: {error}")),
    };
    if code != 0 {
        return Err(format!("{target:?}: exit code {code}"));
    }
    let expected = fs::read(path.with_extension("c.expected")).map_err(|e| e.to_string())?;
    let printed = printed.lock().unwrap();
    (*printed == expected).then_some(()).ok_or_else(|| {
        format!(
            "{target:?}: printed {:?}",
            String::from_utf8_lossy(&printed[..printed.len().min(60)])
        )
    })
}

struct Libc {
    printed: Arc<Mutex<Vec<u8>>>,
    exit: Arc<Mutex<Option<i32>>>,
}

impl Host for Libc {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        match (name, args) {
            ("printf", [Value::Ptr(format), Value::Ptr(list)]) => {
                self.print(&format_text(memory, *format, *list)?)
            }
            ("sprintf", [Value::Ptr(out), Value::Ptr(format), Value::Ptr(list)]) => {
                let mut text = format_text(memory, *format, *list)?;
                text.push(0);
                memory.write(*out, &text);
                Ok(text.len() as u64 - 1)
            }
            ("puts", [Value::Ptr(text)]) => {
                let mut text = memory.read_text(*text, 1 << 20).ok_or("bad string")?;
                text.push(b'\n');
                self.print(&text)
            }
            ("putchar", [Value::I32(byte)]) => self.print(&[*byte as u8]),
            ("strlen", [Value::Ptr(text)]) => {
                Ok(memory.read_text(*text, 1 << 20).ok_or("bad string")?.len() as u64)
            }
            ("sin", [Value::F64(x)]) => Ok(x.sin().to_bits()),
            ("cos", [Value::F64(x)]) => Ok(x.cos().to_bits()),
            ("sqrt", [Value::F64(x)]) => Ok(x.sqrt().to_bits()),
            ("exit", [Value::I32(code)]) => {
                *self.exit.lock().unwrap() = Some(*code);
                Err("exit".into())
            }
            _ => Err(format!("no host function `{name}`")),
        }
    }
}

impl Libc {
    fn print(&mut self, text: &[u8]) -> Result<u64, String> {
        self.printed.lock().unwrap().extend(text);
        Ok(text.len() as u64)
    }
}

/// `printf`'s work: conversions `d i u x X o c s p f g e %`, with flags, width and precision.
fn format_text(memory: &dyn Memory, format: u64, mut list: u64) -> Result<Vec<u8>, String> {
    let format = memory.read_text(format, 1 << 20).ok_or("bad format")?;
    let mut next = || -> Result<u64, String> {
        let cell = memory.read(list, 8).ok_or("bad list")?;
        list += 8;
        Ok(u64::from_le_bytes(cell.try_into().unwrap()))
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < format.len() {
        if format[at] != b'%' {
            out.push(format[at]);
            at += 1;
            continue;
        }
        at += 1;
        let start = at;
        while at < format.len() && b"-+ #0".contains(&format[at]) {
            at += 1;
        }
        let flags = &format[start..at];
        let mut number = |at: &mut usize| -> Result<Option<usize>, String> {
            if format.get(*at) == Some(&b'*') {
                *at += 1;
                return Ok(Some(next()? as usize));
            }
            let from = *at;
            while format.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            Ok(std::str::from_utf8(&format[from..*at]).unwrap().parse().ok())
        };
        let width = number(&mut at)?.unwrap_or(0);
        let mut precision = None;
        if format.get(at) == Some(&b'.') {
            at += 1;
            precision = Some(number(&mut at)?.unwrap_or(0));
        }
        let mut long = false;
        while at < format.len() && b"lhzjt".contains(&format[at]) {
            long |= b"lzjt".contains(&format[at]);
            at += 1;
        }
        let conversion = *format.get(at).ok_or("bad format")?;
        at += 1;
        if conversion == b'%' {
            out.push(b'%');
            continue;
        }
        let value = next()?;
        let unsigned = if long { value } else { u64::from(value as u32) };
        let signed = if long { value as i64 } else { i64::from(value as i32) };
        let mut body = match conversion {
            b'd' | b'i' => signed.to_string().into_bytes(),
            b'u' => unsigned.to_string().into_bytes(),
            b'x' => format!("{unsigned:x}").into_bytes(),
            b'X' => format!("{unsigned:X}").into_bytes(),
            b'o' => format!("{unsigned:o}").into_bytes(),
            b'p' => format!("{value:#x}").into_bytes(),
            b'c' => vec![value as u8],
            b's' => {
                let mut text = memory.read_text(value, 1 << 20).ok_or("bad string")?;
                text.truncate(precision.take().unwrap_or(usize::MAX));
                text
            }
            b'f' => {
                format!("{:.*}", precision.take().unwrap_or(6), f64::from_bits(value)).into_bytes()
            }
            b'g' | b'e' => format!("{}", f64::from_bits(value)).into_bytes(),
            _ => return Err(format!("conversion {conversion}")),
        };
        if let Some(digits) = precision {
            while body.len() < digits {
                body.insert(0, b'0');
            }
        }
        if flags.contains(&b'+') && body[0] != b'-' {
            body.insert(0, b'+');
        }
        let pad = if flags.contains(&b'0') { b'0' } else { b' ' };
        while body.len() < width {
            match flags.contains(&b'-') {
                true => body.push(b' '),
                false if pad == b'0' && body[0] == b'-' => body.insert(1, b'0'),
                false => body.insert(0, pad),
            }
        }
        out.extend(body);
    }
    Ok(out)
}

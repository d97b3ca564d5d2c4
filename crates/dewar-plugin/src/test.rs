//! `dewar plugin test`

use crate::{
    host::{self, limits},
    source::SourceFile,
    target::chosen,
};
use anyhow::Context as _;
use cli::{
    args::plugin::{TargetArg, TestArgs},
    failure::{Failed, Usage},
    input_file, output,
};
use plugin_host::Target;
use serde_json::json;
use std::{fs, io::Read as _, path::Path};

/// A request and the reply that it must give.
struct Case {
    name: String,
    request: Vec<u8>,
    want: Vec<u8>,
}

/// What became of a case on a target.
struct Verdict {
    case: String,
    target: Target,
    /// What is wrong, if something is.
    wrong: Option<String>,
    /// It did not run here, for the reason that `wrong` gives.
    left_out: bool,
}

pub(crate) fn run(args: &TestArgs) -> anyhow::Result<()> {
    let mut verdicts = Vec::new();
    for file in &args.files {
        let source = SourceFile::read(file)?;
        let cases = cases(file)?;
        for target in chosen(args.target, source.targets()) {
            for case in &cases {
                let (wrong, left_out) = match run_case(args, &source, case, target) {
                    // Not every machine and user may have plugins in the kernel, and not every
                    // plugin can run there.
                    Err(why) if args.target == TargetArg::All && target == Target::Kernel => {
                        (Some(why.to_string()), true)
                    }
                    wrong => (wrong?, false),
                };
                verdicts.push(Verdict { case: case.name.clone(), target, wrong, left_out });
            }
        }
    }
    report(args, &verdicts)
}

/// What is wrong with the reply, if something is. Each case meets a plugin that has kept nothing.
fn run_case(
    args: &TestArgs,
    source: &SourceFile,
    case: &Case,
    target: Target,
) -> anyhow::Result<Option<String>> {
    let host = host::host(&args.host, &[target])?;
    host.load(&source.spec(target, limits(&args.host)))?;
    let wrong = match host.plugins.call(&source.name, &case.request) {
        Ok(reply) => difference(&case.want, &reply),
        Err(failure) => Some(failure.to_string()),
    };
    if wrong.is_some() {
        host.show_log(&source.name);
        host.show_denials();
    }
    Ok(wrong)
}

fn report(args: &TestArgs, verdicts: &[Verdict]) -> anyhow::Result<()> {
    let left_out = verdicts.iter().filter(|verdict| verdict.left_out).count();
    let passed = verdicts.iter().filter(|verdict| verdict.wrong.is_none()).count();
    let failed = verdicts.len() - passed - left_out;
    let text = if args.json {
        let rows = verdicts.iter().map(|verdict| {
            let Verdict { case, target, wrong, left_out } = verdict;
            json!({
                "case": case, "target": target.name(), "ok": wrong.is_none(), "wrong": wrong,
                "left_out": left_out,
            })
        });
        output::json(&rows.collect::<Vec<_>>())?
    } else {
        let line = |verdict: &Verdict| {
            let Verdict { case, target, wrong, left_out } = verdict;
            match wrong {
                Some(why) if *left_out => format!("left out {case} on {target}: {why}\n"),
                None => format!("ok      {case} on {target}\n"),
                Some(wrong) => format!("FAILED  {case} on {target}: {wrong}\n"),
            }
        };
        verdicts.iter().map(line).collect::<String>()
            + &format!("{passed} passed, {failed} failed, {left_out} left out\n")
    };
    output::print(text.as_bytes())?;
    if failed > 0 {
        return Err(Failed(format!("{failed} of {} cases failed", verdicts.len())).into());
    }
    Ok(())
}

/// The cases beside a plugin, by name.
fn cases(file: &Path) -> anyhow::Result<Vec<Case>> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let stem = stem.with_context(|| format!("`{}` has no name", file.display()))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let mut cases = Vec::new();
    let entries = fs::read_dir(directory);
    for entry in entries.with_context(|| format!("cannot read `{}`", directory.display()))? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|n| n.strip_suffix(".in"));
        let Some(name) = name.filter(|name| *name == stem || name.starts_with(&format!("{stem}.")))
        else {
            continue;
        };
        let read = |path: &Path| {
            let read = input_file::open(path).and_then(|mut file| {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map(|_| bytes)
            });
            read.map_err(|error| Usage(format!("{}: {error}", path.display())))
        };
        let (request, want) = (read(&path)?, read(&path.with_extension("out"))?);
        cases.push(Case { name: name.to_owned(), request, want });
    }
    if cases.is_empty() {
        let file = file.display();
        return Err(
            Usage(format!("{file} has no test cases: write {stem}.in and {stem}.out")).into()
        );
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// Where `got` first differs from `want`: by line if both are text, otherwise by byte.
fn difference(want: &[u8], got: &[u8]) -> Option<String> {
    if want == got {
        return None;
    }
    let is_text = |bytes: &[u8]| !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    if is_text(want) && is_text(got) {
        let lines = |bytes: &[u8]| -> Vec<String> {
            String::from_utf8_lossy(bytes).split('\n').map(str::to_owned).collect()
        };
        let (want, got) = (lines(want), lines(got));
        let line = (0..).find(|line| want.get(*line) != got.get(*line))?;
        let show = |lines: &[String]| {
            lines.get(line).map_or_else(|| "the end".to_owned(), |line| format!("`{line}`"))
        };
        return Some(format!("line {}:\n  - {}\n  + {}", line + 1, show(&want), show(&got)));
    }
    let at = (0..).find(|at| want.get(*at) != got.get(*at))?;
    let show = |bytes: &[u8]| {
        let hex = bytes.iter().skip(at).take(8).map(|byte| format!("{byte:02x} "));
        hex.collect::<String>() + if bytes.len() > at + 8 { "…" } else { "the end" }
    };
    let lengths = format!("{} bytes instead of {}", got.len(), want.len());
    Some(format!("byte {at} ({lengths}):\n  - {}\n  + {}", show(want), show(got)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference(b"same", b"same"), None);
        let text = difference(b"a\nb\nc", b"a\nx\nc").unwrap();
        assert_eq!(text, "line 2:\n  - `b`\n  + `x`");
        let text = difference(b"a\n", b"a\nb").unwrap();
        assert_eq!(text, "line 2:\n  - ``\n  + `b`");
        let text = difference(b"\0\x01", b"\0").unwrap();
        assert_eq!(text, "byte 1 (1 bytes instead of 2):\n  - 01 the end\n  + the end");
    }
}

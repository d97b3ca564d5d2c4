//! `dewar plugin disasm`

use crate::source::SourceFile;
use cli::{args::plugin::DisasmArgs, failure::Usage, output};

pub(crate) fn run(args: &DisasmArgs) -> anyhow::Result<()> {
    let source = SourceFile::read(&args.file)?;
    let name = &source.name;
    let compiled = source.compile()?.ok_or_else(|| {
        Usage(format!(
            "{name} is WebAssembly, which has no intermediate form; try wasm-tools print"
        ))
    })?;
    Ok(output::print(compiled.module.with_vectors().to_string().as_bytes())?)
}

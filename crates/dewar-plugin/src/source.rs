//! A plugin's file.

use cli::{failure::Usage, input_file};
use ecode::{Compiled, Input};
use plugin_host::{
    HOST_DECLARATIONS, Limits, PLUGIN_CONTEXT, PluginSpec, Source, Target, visible_lines,
};
use std::{io::Read as _, path::Path};

/// No file that is larger is a plugin: texts and modules have at most 4 MiB, modules as text some
/// more.
const MAX_BYTES: u64 = 64 << 20;

/// What a plugin is made of, as it was read.
pub(crate) enum Text {
    ECode(String),
    Wasm(Vec<u8>),
}

/// A plugin's file, read.
pub(crate) struct SourceFile {
    /// What messages call it.
    pub(crate) name: String,
    pub(crate) text: Text,
}

impl SourceFile {
    /// Reads a text in E-code, a `.wasm` module, or a module as `.wat` text.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let wrong = |why: String| Usage(format!("{name}: {why}"));
        let mut bytes = Vec::new();
        let read = input_file::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| Usage(format!("cannot read plugin `{name}`: {error}")))?;
        if read as u64 > MAX_BYTES {
            return Err(wrong("this is longer than 64 MiB, and so no plugin".to_owned()).into());
        }
        let text = if bytes.starts_with(b"\0asm") {
            Text::Wasm(bytes)
        } else if path.extension().is_some_and(|end| end == "wat") {
            Text::Wasm(
                wat::parse_bytes(&bytes)
                    .map_err(|error| wrong(visible_lines(&error.to_string())))?
                    .into(),
            )
        } else {
            let text = String::from_utf8(bytes);
            Text::ECode(text.map_err(|_| {
                wrong("this is neither a text in UTF-8 nor a module in WebAssembly".to_owned())
            })?)
        };
        Ok(Self { name, text })
    }

    /// How the host is asked to load it.
    pub(crate) fn spec<'s>(&'s self, target: Target, limits: Limits) -> PluginSpec<'s> {
        let (name, context) = (self.name.as_str(), PLUGIN_CONTEXT);
        let spec = match &self.text {
            Text::ECode(text) => PluginSpec::new(name, context, text),
            Text::Wasm(module) => PluginSpec::wasm(name, context, module),
        };
        PluginSpec { target, limits, ..spec }
    }

    /// The targets that it can run on.
    pub(crate) fn targets(&self) -> &'static [Target] {
        match self.text {
            Text::ECode(_) => &Target::ALL,
            Text::Wasm(_) => &[Target::Isolated],
        }
    }

    /// The intermediate form of an E-code text; `None` of a module.
    pub(crate) fn compile(&self) -> anyhow::Result<Option<Compiled>> {
        match self.spec(Target::Isolated, Limits::default()).source {
            Source::Text(text) => {
                let input = Input { host: HOST_DECLARATIONS, ..Input::new(&self.name, text) };
                Ok(Some(ecode::compile(&input)?))
            }
            _ => Ok(None),
        }
    }
}

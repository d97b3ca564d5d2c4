//! Where in its text a plugin failed, for whoever asks: nobody does before something fails.

use crate::interface::HOST_DECLARATIONS;
use ecode::{
    Input,
    ir::Spot,
    wasm::{self, Places, WasmOptions},
};
use std::sync::OnceLock;
use wasmtime::WasmBacktrace;

/// The places of one version of a plugin, or what they are found by.
pub(crate) enum Spots {
    /// Of what was compiled just now.
    Known(Places),
    /// Of what lay in the cache, which holds code alone: the text says it when it is compiled once
    /// more.
    Text { name: String, text: String, memory: WasmOptions, places: OnceLock<Option<Places>> },
    /// Of what another compiler made.
    Foreign,
}

impl Spots {
    /// Of the code that was made of `text` before.
    pub(crate) fn of_text(name: &str, text: &str, memory: WasmOptions) -> Self {
        let (name, text) = (name.to_owned(), text.to_owned());
        Self::Text { name, text, memory, places: OnceLock::new() }
    }

    /// Whether another compiler made the code.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign)
    }

    /// Where the call was that ended by `error`.
    #[cold]
    pub(crate) fn spot(&self, error: &wasmtime::Error) -> Option<Spot> {
        let places = match self {
            Self::Known(places) => places,
            Self::Text { name, text, memory, places } => {
                places.get_or_init(|| compile(name, text, memory)).as_ref()?
            }
            Self::Foreign => return None,
        };
        let trace = error.downcast_ref::<WasmBacktrace>()?;
        let frame = trace.frames().first()?;
        places.find(frame.func_index(), frame.func_offset())
    }
}

fn compile(name: &str, text: &str, memory: &WasmOptions) -> Option<Places> {
    let input = Input { host: HOST_DECLARATIONS, ..Input::new(name, text) };
    let module = ecode::compile(&input).ok()?.module;
    Some(wasm::emit_with_places(&module, memory).ok()?.1)
}

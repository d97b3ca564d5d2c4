//! Small programs that plugins are made of, the same text for every compiler: what isolation and
//! protection cost.
//!
//! Each kernel is E-code and C at once, and has the interface of a plugin. An [`Implementation`]
//! makes it callable.

mod cod;
mod gcc;
mod lua;
mod measure;
mod report;

pub use cod::Cod;
pub use gcc::Gcc;
pub use lua::LuaJit;
pub use measure::KernelComparison;
pub use report::{Cell, KernelReport, Mean};

use crate::random::Random;

/// Sizes of requests in bytes: those of the images of "Kernel Plugins" (VM'04), of 57 × 57, 184 ×
/// 184, 306 × 306 and 1080 × 1080 pixels.
pub const SIZES: [usize; 4] = [9_747, 101_568, 280_908, 3_499_200];

/// A program with the interface `long handle(const unsigned char *in, long n, unsigned char *out,
/// long room)`.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// What tables call it.
    pub name: &'static str,
    /// Its text, in E-code that is C as well.
    pub text: &'static str,
    /// The same in Lua.
    pub lua: &'static str,
    input: Input,
}

/// What a kernel reads.
#[derive(Clone, Copy, Debug)]
enum Input {
    Bytes,
    Text,
    Json,
}

macro_rules! kernel {
    ($name:literal, $input:ident) => {
        Kernel {
            name: $name,
            text: include_str!(concat!("source/", $name, ".e")),
            lua: include_str!(concat!("source/", $name, ".lua")),
            input: Input::$input,
        }
    };
}

/// All kernels.
pub const KERNELS: [Kernel; 8] = [
    kernel!("gray", Bytes),
    kernel!("crc32", Bytes),
    kernel!("histogram", Bytes),
    kernel!("matrix", Bytes),
    kernel!("sort", Bytes),
    kernel!("utf8", Text),
    kernel!("json", Json),
    kernel!("fir", Bytes),
];

impl Kernel {
    /// A request of `size` bytes, always the same.
    #[must_use]
    pub fn request(&self, size: usize) -> Vec<u8> {
        let mut random = Random::new(size as u64);
        let mut request = Vec::with_capacity(size + 64);
        while request.len() < size {
            match self.input {
                Input::Bytes => request.push(random.below(256) as u8),
                Input::Text => {
                    let text =
                        random.pick(&["a plain word ", "Größe ", "日本語 ", "🦀 ", "is it? "]);
                    request.extend_from_slice(text.as_bytes());
                }
                Input::Json => {
                    let record = format!(
                        "{{\"name\": \"no \\\"{}\\\"\", \"id\": {}, \"tags\": [\"id\", \"x\"]}},\n",
                        random.below(1000),
                        random.below(1_000_000)
                    );
                    request.extend_from_slice(record.as_bytes());
                }
            }
        }
        request.truncate(size);
        request
    }

    /// Bytes of reply that there must be room for.
    #[must_use]
    pub fn room(size: usize) -> usize {
        2 * size + 4096
    }
}

/// A kernel that is ready to be called.
pub trait Callable {
    /// Puts a request where calls find it.
    ///
    /// # Errors
    ///
    /// Says why it cannot be put there.
    fn fill(&mut self, request: &[u8]) -> Result<(), String>;

    /// Calls it `times` times on the request.
    ///
    /// # Errors
    ///
    /// Says why a call failed.
    fn run(&mut self, times: u32) -> Result<std::time::Duration, String>;

    /// The reply of the last call.
    ///
    /// # Errors
    ///
    /// Says why there is none.
    fn reply(&mut self) -> Result<Vec<u8>, String>;

    /// Bytes of machine code, where that can be told.
    fn code_bytes(&self) -> Option<usize>;
}

/// A way to make kernels callable.
pub trait Implementation {
    /// What tables call it.
    fn name(&self) -> String;

    /// Compiles a kernel.
    ///
    /// # Errors
    ///
    /// Says why it cannot.
    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Callable>, String>;
}

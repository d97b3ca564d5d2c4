//! Sizes of a module's memory.

/// Iterations of loops and calls between two looks at the clock, unless said otherwise.
pub const STRIP: i32 = 8192;

/// Sizes of a module's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WasmOptions {
    /// Bytes for frames.
    pub stack_bytes: u32,
    /// Bytes of heap that it starts with.
    pub heap_bytes: u32,
    /// Bytes that its memory may grow to.
    pub max_memory_bytes: u32,
    /// Iterations of loops and calls between two looks at the clock, from 1 to 1,048,576.
    pub strip_iterations: i32,
}

impl Default for WasmOptions {
    fn default() -> Self {
        let (stack_bytes, heap_bytes, max_memory_bytes) = (1 << 20, 1 << 16, 64 << 20);
        Self { stack_bytes, heap_bytes, max_memory_bytes, strip_iterations: STRIP }
    }
}

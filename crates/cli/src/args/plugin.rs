//! `dewar plugin`

use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
A plugin is a text in E-code, a C subset, that defines

    long handle(const char *in, long n, char *out, long room);

It finds N bytes of request at IN, writes at most ROOM bytes of reply to OUT, and returns how
many. WebAssembly modules (.wasm, .wat) that export the same work, too.

Examples:
  dewar plugin run gray.e < in.ppm > out.pgm    isolated, within limits
  dewar plugin run gray.e --target all < in.ppm > /dev/null
                                                on every target: equal replies? what time each?
  dewar plugin test examples/plugins/*.e        isolated, each on its cases NAME.in and NAME.out
  dewar plugin test gray.e --target all         on every target: native, it is trusted
  dewar plugin build gray.e -o gray.wasm        check it, and write it as WebAssembly
  dewar plugin disasm gray.e                    the intermediate form that all targets share
  dewar plugin list                             machine code in the cache
  dewar plugin load gray gray.e --route /gray/ --server web.sock
                                                into a web server that runs; replace, unload,
                                                stats and list take --server, too

Exit status: 0; 1 if the plugin failed, was denied the call, or a case or a target gave another
reply; 2 for mistakes in its text, with their places, or in the policy; 125 if Dewar itself
failed.";

/// Compile, run, test and look at plugins.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PluginArgs {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Build(BuildArgs),
    Run(RunArgs),
    Test(TestArgs),
    List(ListArgs),
    Load(LoadArgs),
    Replace(ReplaceArgs),
    Unload(UnloadArgs),
    Stats(StatsArgs),
    Disasm(DisasmArgs),
}

const CASES: &str = "\
The cases of PLUGIN.e are the files PLUGIN.in and PLUGIN.CASE.in beside it, each with the reply
that it must give in the file of the same name that ends in .out. A plugin without cases is an
error.";

/// Check a plugin and generate its code, which the cache keeps.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The plugin
    pub file: PathBuf,

    /// For which target
    #[arg(long, value_enum, default_value_t = TargetArg::Isolated)]
    pub target: TargetArg,

    /// Also write it as WebAssembly
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub host: HostArgs,
}

/// Run a plugin on standard input; its reply goes to standard output.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plugin
    pub file: PathBuf,

    /// Where it runs
    #[arg(long, value_enum, default_value_t = TargetArg::Isolated)]
    pub target: TargetArg,

    /// Where the kernel does not take the plugin, run it isolated instead, and say so
    #[arg(long)]
    pub or_isolated: bool,

    /// Write the reply to FILE instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print what it took as JSON; the reply goes to --output alone
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub host: HostArgs,
}

/// Run plugins on their test cases.
#[derive(Debug, Args)]
#[command(after_help = CASES)]
pub struct TestArgs {
    /// The plugins
    #[arg(required = true)]
    pub files: Vec<PathBuf>,

    /// On which target; nothing runs natively, or in the kernel, that is not named here
    #[arg(long, value_enum, default_value_t = TargetArg::Isolated)]
    pub target: TargetArg,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub host: HostArgs,
}

/// List the machine code in the cache, last used first.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Another cache than $XDG_CACHE_HOME/dewar/plugins
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,

    /// Instead, the plugins of the server that is administered at this socket
    #[arg(long, value_name = "SOCKET", conflicts_with = "cache")]
    pub server: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which server.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The socket that the server is administered at (dewar serve --admin)
    #[arg(long, value_name = "SOCKET")]
    pub server: PathBuf,
}

/// Load a plugin into a web server that runs.
#[derive(Debug, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub put: PutArgs,
}

/// Replace a plugin's code in a web server that runs. Requests under way finish on the old code.
#[derive(Debug, Args)]
pub struct ReplaceArgs {
    #[command(flatten)]
    pub put: PutArgs,
}

#[derive(Debug, Args)]
pub struct PutArgs {
    /// What it is called
    pub name: String,

    /// The plugin: a text in E-code, or a module (.wasm, .wat)
    pub file: PathBuf,

    #[command(flatten)]
    pub server: ServerArgs,

    /// What it does: transform, handler or headers
    #[arg(long)]
    pub kind: Option<String>,

    /// For paths that begin so
    #[arg(long, value_name = "PATH")]
    pub route: Option<String>,

    /// For content of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub media: Option<String>,

    /// The type of what it makes
    #[arg(long, value_name = "TYPE")]
    pub gives: Option<String>,

    /// With --type: only for clients that prefer what it gives
    #[arg(long)]
    pub negotiate: bool,

    /// Where it runs
    #[arg(long)]
    pub target: Option<String>,
}

/// Unload a plugin from a web server that runs.
#[derive(Debug, Args)]
pub struct UnloadArgs {
    /// What it is called
    pub name: String,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// Show what a web server has done, or one of its plugins with what it logged, as JSON.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// One plugin
    pub name: Option<String>,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// Show the intermediate form that all targets share.
#[derive(Debug, Args)]
pub struct DisasmArgs {
    /// The plugin's text in E-code
    pub file: PathBuf,
}

/// What plugins may do and use.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Rules in CIL, added to what a plugin may do by default: see requests, reply, log, keep
    /// state. Types are plugin_t, host_t, and object_t for everything outside
    #[arg(short = 'f', long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,

    /// Time for one call
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub time_ms: u64,

    /// Memory of one instance, request and reply in it: 64K to 64M
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = memory)]
    pub memory_bytes: u32,

    /// Length of reply that there is room for: a number, or one with K or M
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    pub output_bytes: usize,

    /// Compile anew, and keep nothing
    #[arg(long)]
    pub no_cache: bool,
}

/// A size as in profiles.
fn size(text: &str) -> Result<usize, String> {
    let size = profile::size(text).and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| "write bytes, or a number with K, M or G, such as 16M".to_owned())
}

/// What a plugin's memory can be.
fn memory(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(size(text)?).ok();
    let bytes = bytes.filter(|bytes| (64 << 10..=64 << 20).contains(bytes));
    bytes.ok_or_else(|| "a plugin has at least 64K and at most 64M of memory".to_owned())
}

/// As the command line names targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TargetArg {
    /// WebAssembly in a memory of its own, within limits
    Isolated,
    /// In the process: it is trusted with everything you may do
    Native,
    /// As native; arrays on the stack are guarded
    #[value(name = "native+stack")]
    NativeStack,
    /// In the kernel, as BPF in a memory of its own; needs root, or CAP_BPF and CAP_PERFMON
    Kernel,
    /// Each of them in turn, native and in the kernel, too
    All,
}

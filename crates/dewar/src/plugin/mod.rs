//! `dewar plugin`: compile, run, test and look at plugins.

mod build;
mod disasm;
mod host;
mod list;
mod run;
mod source;
mod target;
mod test;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
A plugin is a text in E-code, a C subset, that defines

    long handle(const char *in, long n, char *out, long room);

It finds N bytes of request at IN, writes at most ROOM bytes of reply to OUT, and returns how
many. WebAssembly modules (.wasm, .wat) that export the same work, too.

Examples:
  dewar plugin run gray.e < in.ppm > out.pgm    isolated, within limits
  dewar plugin run gray.e --target all < in.ppm > /dev/null
                                                on every target: equal replies? what time each?
  dewar plugin test examples/plugins/*.e        each on its cases NAME.in and NAME.out
  dewar plugin build gray.e -o gray.wasm        check it, and write it as WebAssembly
  dewar plugin disasm gray.e                    the intermediate form that all targets share
  dewar plugin list                             machine code in the cache

Exit status: 0; 1 if the plugin failed, was denied the call, or a case or a target gave another
reply; 2 for mistakes in its text, with their places, or in the policy; 125 if Dewar itself
failed.";

/// Compile, run, test and look at plugins.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(build::BuildArgs),
    Run(run::RunArgs),
    Test(test::TestArgs),
    List(list::ListArgs),
    Disasm(disasm::DisasmArgs),
}

/// Carries out `dewar plugin`.
pub(crate) fn run(args: &PluginArgs) -> anyhow::Result<()> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Run(args) => run::run(args),
        Command::Test(args) => test::run(args),
        Command::List(args) => list::run(args),
        Command::Disasm(args) => disasm::run(args),
    }
}

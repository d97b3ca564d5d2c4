//! `dewar serve`

use clap::{Args, value_parser};
use std::path::PathBuf;

const EXAMPLES: &str = "\
A plugin is a file in E-code or a WebAssembly module, and when it is used:
  NAME=FILE                           content below /NAME/ is what the plugin makes of the file
                                      that the rest of the path names
  NAME=FILE,route=/thumbs/            the same below another path
  NAME=FILE,type=image/png,gives=image/webp,negotiate
                                      files of this type, for clients that prefer the other
  NAME=FILE,kind=handler,route=/api/  it answers requests itself
  NAME=FILE,kind=headers,route=/      it changes the header fields of answers

Examples:
  dewar serve ./site --plugin gray=gray.e,gives=image/x-portable-graymap
  dewar serve --config web.toml       the same and more from a file: see docs/web.md
  kill -HUP PID                       reads the file again; no request is lost

Exit status: 0 when told to end; 2 for mistakes in what it is told; 1 if it cannot start.";

/// Serve a directory over HTTP, with plugins that policy holds in check.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// The directory
    #[arg(required_unless_present = "config")]
    pub root: Option<PathBuf>,

    /// Read all of this from FILE; options that are given here hold instead
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Listen here: ADDRESS:PORT or unix:PATH. By default 127.0.0.1:8080
    #[arg(short, long, value_name = "ADDRESS")]
    pub listen: Vec<String>,

    /// Use a plugin: see below
    #[arg(short, long, value_name = "NAME=FILE[,…]")]
    pub plugin: Vec<String>,

    /// List directories that have no index
    #[arg(long)]
    pub list: bool,

    /// Threads, from 1 to 256; by default one per processor
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,

    /// Write a line per request to FILE, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,

    /// Be administered at this socket: see dewar plugin --help
    #[arg(long, value_name = "SOCKET")]
    pub admin: Option<PathBuf>,

    /// Show a status page and metrics here
    #[arg(long, value_name = "ADDRESS")]
    pub status: Option<String>,

    /// Rules in CIL, added to the server's own
    #[arg(short = 'f', long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,
}

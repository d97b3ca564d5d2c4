//! What commands that measure share.

use clap::Args;
use std::path::PathBuf;

/// How a report is printed, and where else it is kept.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Print tables as Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,

    /// Print every column of the tables, not only those that fit into the terminal
    #[arg(long)]
    pub wide: bool,

    /// Keep what a report needs in DIR, and continue what was begun there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// Print the results with every single run as JSON
    #[arg(long)]
    pub json: bool,

    /// Also write the results with every single run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
}

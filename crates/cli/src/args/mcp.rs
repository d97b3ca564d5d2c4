//! `dewar mcp`

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  claude mcp add dewar -- dewar mcp       has Claude Code start it
  codex mcp add dewar -- dewar mcp        has Codex start it

It speaks the Model Context Protocol on standard input and output, and decides nothing: it says
what `dewar explain` and `dewar policy show` say. In a run whose profile has [propose], it tells
what that run was denied, and proposes lines: within the bound of the profile they are granted,
else a person is asked (docs/ask.md).

Exit status: 0 at the end of its input; 1 if it cannot speak; 2 for wrong use.";

/// Serve coding agents over MCP: what was denied and why, profiles, proposals.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct McpArgs {}

//! `dewar init claude|codex`: coding agents whose tools run under Dewar.

use crate::failure::Failed;
use anyhow::bail;
use clap::Args;

/// Have Claude Code run its shell commands under Dewar.
#[derive(Debug, Args)]
pub(super) struct ClaudeArgs {}

/// Have Codex run its shell commands under Dewar.
#[derive(Debug, Args)]
pub(super) struct CodexArgs {}

pub(super) fn claude(_: &ClaudeArgs) -> anyhow::Result<()> {
    bail!(Failed("Claude Code cannot be set up yet; `dewar run -p agent -- claude` works".into()))
}

pub(super) fn codex(_: &CodexArgs) -> anyhow::Result<()> {
    bail!(Failed("Codex cannot be set up yet; `dewar run -p agent -- codex` works".into()))
}

//! `dewar audit`

use clap::Args;
use std::time::{SystemTime, UNIX_EPOCH};

const AFTER_HELP: &str = "\
Examples:
  dewar audit --run last                       what the last run was denied
  dewar audit --since 2h --object '/etc/*'     about files below /etc, in the last two hours
  dewar audit --follow --json | jq .object     as it happens
  dewar run --record all -- make; dewar audit --run last --domain main

The journal has the denials of all runs that used a daemon; with `dewar run
--record all`, every decision. Where records are missing, an entry says how
many and why.

Exit status: 0; 2 for wrong use; 125 if there is no journal.";

/// Search the journal of decisions that the daemon keeps.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct AuditArgs {
    /// Of one run: its number, the beginning of it, its name (the last run of it), or `last`
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Of subjects in this domain, such as `main`
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,

    /// About objects that match, in the manner of a shell; `*` matches `/`, too
    #[arg(long, value_name = "GLOB")]
    pub object: Option<String>,

    /// Since then: `10m`, `2h`, `3days` ago, or a time such as `2026-11-21T17:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<f64>,

    /// Denials only
    #[arg(long)]
    pub denied: bool,

    /// Print each record as a line of JSON
    #[arg(long)]
    pub json: bool,

    /// Go on with records as they come
    #[arg(short, long)]
    pub follow: bool,

    /// The journal of the daemon that serves every user; needs root
    #[arg(long)]
    pub system: bool,
}

/// Seconds since 1970 of a time, or of so long ago.
fn since(text: &str) -> Result<f64, String> {
    let time = match humantime::parse_duration(text) {
        Ok(ago) => SystemTime::now().checked_sub(ago),
        Err(_) => humantime::parse_rfc3339_weak(text).ok(),
    };
    let time =
        time.ok_or("write how long ago, such as `10m`, or a time, such as `2026-11-21T17:00:00Z`")?;
    Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_so_long_ago_or_as_written() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - since("10m").unwrap() - 600.0).abs() < 5.0);
        assert_eq!(since("1970-01-02T00:00:00Z"), Ok(86_400.0));
        assert!(since("yesterday").is_err());
    }
}

//! How Dewar says that it did not do what it was asked to, and with which exit status.

use crate::output::tell;
use ecode::CompileErrors;
use miette::Diagnostic;
use profile::ProfileErrors;
use security_server::PolicyErrors;
use std::process::ExitCode;

/// Wrong use: of the command line, or of a profile.
pub(crate) const USAGE: u8 = 2;

/// Dewar itself failed; nothing was started.
pub(crate) const SETUP: u8 = 125;

/// What was run did not come out well.
pub(crate) const FAILED: u8 = 1;

/// Something was run as it should be, and did not come out well.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failed(pub(crate) String);

/// A request that cannot be met as it was made, whatever the machine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Prints `error` on standard error; the exit status that it stands for.
pub(crate) fn report(error: anyhow::Error) -> ExitCode {
    let error = match error.downcast::<ProfileErrors>() {
        Ok(errors) => {
            return match errors.errors() {
                // A headline over one mistake would say nothing.
                [error] => diagnose(error.clone()),
                _ => diagnose(errors),
            };
        }
        Err(error) => error,
    };
    let error = match error.downcast::<PolicyErrors>() {
        Ok(errors) => return diagnose(errors),
        Err(error) => error,
    };
    let error = match error.downcast::<CompileErrors>() {
        Ok(errors) => {
            return errors.messages.into_iter().map(diagnose).last().unwrap_or(USAGE.into());
        }
        Err(error) => error,
    };
    let status = if error.is::<Usage>() {
        USAGE
    } else if error.is::<Failed>() {
        FAILED
    } else {
        SETUP
    };
    tell!("dewar: {}", with_causes(&error));
    ExitCode::from(status)
}

/// An error with what caused it, unless it says so itself.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Mistakes in a text that a person wrote: with their places and what to write instead.
fn diagnose(errors: impl Diagnostic + Send + Sync + 'static) -> ExitCode {
    tell!("{:?}", miette::Report::new(errors));
    ExitCode::from(USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::from_raw_os_error(2);
        let named = anyhow::Error::new(cause()).context("cannot start");
        assert_eq!(with_causes(&named), "cannot start: No such file or directory (os error 2)");
        let twice = anyhow::Error::new(cause()).context(format!("cannot start: {}", cause()));
        assert_eq!(with_causes(&twice), "cannot start: No such file or directory (os error 2)");
    }
}

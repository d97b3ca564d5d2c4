//! What of a limited kind has run out, when the kernel said so: the remedy is the limit, whatever
//! was being done.

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// What has run out, if that is what `error` is about.
#[must_use]
pub fn of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let of_system = cause.downcast_ref::<std::io::Error>().and_then(Errno::from_io_error);
        told(of_system.or_else(|| cause.downcast_ref::<Errno>().copied())?)
    })
}

/// The same of a reason that was written down.
#[must_use]
pub fn of_reason(reason: &str) -> Option<String> {
    let errnos = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    errnos.into_iter().find(|errno| reason.starts_with(&errno.to_string())).and_then(told)
}

fn told(errno: Errno) -> Option<String> {
    let limit = |resource| {
        getrlimit(resource).current.map_or("unlimited".to_owned(), |limit| limit.to_string())
    };
    Some(match errno {
        Errno::AGAIN => format!(
            "no further process can be made: the limit for this user (`ulimit -u`, {} here) or of the machine is reached",
            limit(Resource::Nproc)
        ),
        Errno::MFILE => format!(
            "no further file can be opened: raise `ulimit -n` ({} here), or `limits.files` of the profile",
            limit(Resource::Nofile)
        ),
        Errno::NFILE => {
            "no further file can be opened: the machine's limit (sysctl fs.file-max) is reached"
                .into()
        }
        Errno::NOMEM => format!(
            "no further memory can be had: the machine's is used up, or `ulimit -v` ({} here) is too low",
            limit(Resource::As)
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn what_has_run_out_is_named_whatever_was_being_done() {
        let failed: Result<(), Errno> = Err(Errno::MFILE);
        let told = of(&failed.context("cannot do this").unwrap_err()).unwrap();
        assert!(told.contains("`ulimit -n`"), "{told}");
        let told = of_reason(&format!("{}: why", Errno::AGAIN)).unwrap();
        assert!(told.contains("`ulimit -u`"), "{told}");
        assert!(of_reason("Operation not permitted (os error 1)").is_none());
    }
}

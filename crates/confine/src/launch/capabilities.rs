//! Capabilities: what is left of root's powers in the sandbox, and in the monitor.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

/// What the monitor keeps beside the sandbox's own capabilities: permitted, but not effective, so
/// that no file it opens on the sandbox's behalf is opened with them. [`with_raised`] uses them.
const MONITOR_ONLY: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::KILL).union(CapabilitySet::DAC_READ_SEARCH);

/// Leaves the calling process, and whatever it executes, at most `keep`, for good.
///
/// Everything of `keep` that the process holds stays, and survives an exec (ambient). Root gets
/// no capability from being root any more (`SECBIT_NOROOT`, locked). `SECBIT_NO_SETUID_FIXUP` is
/// left alone: a program that was granted capabilities still loses them when it gives up being
/// root, as it expects.
pub(super) fn reduce(keep: CapabilitySet) -> Result<(), Errno> {
    let held = capabilities(None)?;
    let keep = keep & held.permitted;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        bound(keep)?;
        set_capabilities_secure_bits(secure_bits())?;
    }
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: keep, permitted: keep, inheritable: keep })?;
    each(keep).try_for_each(|capability| configure_capability_in_ambient_set(capability, true))
}

/// Leaves the monitor the capabilities of the sandbox in effect, so that it can do nothing on the
/// sandbox's behalf which that could not do alone, and `reserve` and [`MONITOR_ONLY`] in reserve.
pub(super) fn reduce_monitor(sandbox: CapabilitySet, reserve: CapabilitySet) -> Result<(), Errno> {
    let held = capabilities(None)?.permitted;
    let effective = sandbox & held;
    let permitted = (sandbox | reserve | MONITOR_ONLY) & held;
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() },
    )
}

/// Runs `act` with `extra` (`CAP_SYS_PTRACE`, `CAP_KILL`, `CAP_DAC_READ_SEARCH`) in effect in the
/// calling thread, as far as it is permitted.
///
/// The monitor reads the memory of processes that are not dumpable with this, kills those that
/// changed their user, and looks for files in directories that the sandbox has closed. It must not
/// open anything for the sandbox meanwhile.
pub fn with_raised<T>(extra: CapabilitySet, act: impl FnOnce() -> T) -> T {
    let Ok(before) = capabilities(None) else { return act() };
    let raised = before.effective | (extra & before.permitted);
    if raised == before.effective
        || set_capabilities(None, CapabilitySets { effective: raised, ..before }).is_err()
    {
        return act();
    }
    let answer = act();
    // INVARIANT: lowering the effective set to a subset of the permitted one never fails.
    set_capabilities(None, before).expect("lower the effective capabilities");
    answer
}

/// Takes everything but `keep` out of the bounding set.
fn bound(keep: CapabilitySet) -> Result<(), Errno> {
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !keep.contains(capability) => {
                remove_capability_from_bounding_set(capability)?;
            }
            Ok(_) => {}
            // The first number that the kernel does not know.
            Err(_) => break,
        }
    }
    Ok(())
}

fn secure_bits() -> CapabilitiesSecureBits {
    CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
}

fn each(set: CapabilitySet) -> impl Iterator<Item = CapabilitySet> {
    (0..64)
        .map(|number| CapabilitySet::from_bits_retain(1 << number))
        .filter(move |c| set.contains(*c))
}

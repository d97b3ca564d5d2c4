//! A policy, as far as the kernel can be told of it: the one reading of it at the start and at
//! every change.

mod sockets;

pub(crate) use sockets::Sockets;

use crate::plan::Plan;
use flask::{AccessVector, Class, LabelRules, Question, SecurityServer, Sid, Unreachable, perm};
use labelling::{BadRule, PathRules};

/// A policy, as far as the kernel can be told of it.
pub struct KernelPolicy {
    /// What it means for the kernel.
    pub plan: Plan,
    /// The same for the first domain alone.
    pub first: Plan,
    /// Its labelling rules, as the policy has them.
    pub labels: LabelRules,
    /// The same, made for looking up.
    pub rules: PathRules,
    /// Every domain may make processes.
    pub forks: bool,
    /// Who may own sockets that do something unasked.
    pub(crate) sockets: Sockets,
    /// The capabilities that every domain keeps: no exec takes one from a process. Bit n is
    /// capability n.
    pub capabilities: u64,
}

/// Why a policy was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The security server does not answer.
    #[error(transparent)]
    Server(#[from] Unreachable),
    /// The labelling rules are unusable.
    #[error(transparent)]
    Label(#[from] BadRule),
}

impl KernelPolicy {
    /// Reads the policy through the security server.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: why not.
    pub fn new(server: &dyn SecurityServer) -> Result<Self, ReadError> {
        let labels = server.label_rules()?;
        let rules = PathRules::new(&labels.files)?;
        let plan = Plan::new(server, &labels)?;
        let first = plan.of_first(server, &labels)?;
        let sockets = Sockets::new(server, &plan.domains)?;
        let mut forks = true;
        let mut capabilities = u64::MAX;
        for &domain in &plan.domains {
            forks &= allowed(server, domain, Class::Process)?.contains(perm::process::FORK);
            let kept = Question { ssid: domain, tsid: domain, tclass: Class::Capability };
            capabilities &= u64::from(server.compute_av(kept)?.allowed.0);
        }
        Ok(Self { plan, first, labels, rules, forks, sockets, capabilities })
    }
}

/// What a domain may do to objects of its own label.
pub(crate) fn allowed(
    server: &dyn SecurityServer,
    domain: Sid,
    tclass: Class,
) -> Result<AccessVector, Unreachable> {
    let decision = server.compute_av(Question { ssid: domain, tsid: domain, tclass })?;
    Ok(if decision.permissive { AccessVector::ALL } else { decision.allowed })
}

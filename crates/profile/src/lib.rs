//! Dewar's profiles: what a run may do, written for people, compiled to a type-enforcement policy.
//!
//! ```text
//!  build.toml ─┐                                        ┌─▶ CIL      security server, `secilc`
//!  workspace ──┴─▶ documents ─▶ merged profile ─▶ Compiled ─▶ environment, limits       launcher
//!  (extends)        with places   patterns, endpoints   └─▶ origin of each rule   explanations
//! ```
//!
//! Each pattern of `[files]` becomes one type with one labelling rule; each domain is the type of
//! its processes. The reference for people is `docs/profile.md`.
//!
//! # Example
//!
//! ```
//! use profile::{Source, Variables, load};
//!
//! let source = Source::Text {
//!     name: "example.toml".into(),
//!     text: "[files]\nread = ['/usr']\nwrite = ['${workspace}']\n".into(),
//!     directory: "/".into(),
//! };
//! let variables = Variables {
//!     workspace: "/work".into(),
//!     home: "/home/me".into(),
//!     tmp: "/tmp/run".into(),
//!     user: "me".into(),
//!     nameservers: vec![],
//!     ..Variables::default()
//! };
//! let compiled = load(&source, &variables, &mut profile::unresolved).unwrap();
//! let line = compiled.cil.lines().position(|l| l.contains("main_t workspace_t files_write"));
//! let origin = compiled.origin(line.unwrap() + 1).unwrap();
//! assert_eq!((origin.line, origin.text.as_str()), (3, "'${workspace}'"));
//! ```
#![forbid(unsafe_code)]

mod amended;
mod amendment;
mod chain;
mod classes;
mod collapse;
mod compiled;
mod deputies;
mod document;
mod documents;
mod domain;
mod environment;
mod error;
mod flat;
mod guard;
mod guarded;
mod hosts;
mod limits;
mod loopback;
mod merge;
mod merged;
mod misplaced;
mod mounted;
mod names;
mod network;
mod pattern;
mod policy;
mod registry;
mod rights;
mod secret;
mod source;
mod variables;

pub use amendment::{AmendedObject, Amendment, AmendmentKind};
pub use classes::netlink_protocol;
pub use compiled::{Compiled, OpenGate, PathRights, PathRule};
pub use deputies::{Deputy, deputies, plain, power};
pub use document::keys;
pub use documents::Documents;
pub use domain::{Domain, EndpointRule};
pub use environment::{Environment, Fate};
pub use error::{Problem, ProfileError, ProfileErrors};
pub use guard::{GuardAction, GuardLevel, GuardedName, host_trusted};
pub use guarded::Kept;
pub use hosts::{Addresses, ResolvedHost, Resolver, unresolved};
pub use limits::{Limits, size};
pub use merge::RESERVED;
pub use merged::{Hiding, Mode};
pub use network::Host;
pub use source::{Origin, Source, shipped};
pub use variables::{Registries, Variables, fixed_path};

use error::Reporter;

/// The policy and all the rest that the profile `source` stands for under `variables`.
///
/// `resolver` gives the addresses of host names; it is asked once, for all names of network rules.
/// A name that it cannot resolve (or gives no address for) does not fail the loading: nothing is
/// reachable by it, and [`Compiled::hosts`] says so.
///
/// # Errors
///
/// [`ProfileErrors`] with everything that is wrong with the profile and with what it extends.
pub fn load(
    source: &Source,
    variables: &Variables,
    resolver: &mut Resolver<'_>,
) -> Result<Compiled, ProfileErrors> {
    load_with_documents(source, variables, resolver).map(|(compiled, _)| compiled)
}

/// As [`load`], with what was read, to compile it again.
///
/// # Errors
///
/// As for [`load`].
pub fn load_with_documents(
    source: &Source,
    variables: &Variables,
    resolver: &mut Resolver<'_>,
) -> Result<(Compiled, Documents), ProfileErrors> {
    let mut reporter = Reporter::default();
    let chain = chain::read(source, &mut reporter);
    let documents = Documents::unchecked(source.title(), chain, &reporter);
    let compiled = documents.compile_into(variables, resolver, &[], reporter)?;
    Ok((compiled, documents))
}

//! Ports from outside: calls, policy, hostile clients, processes that die; on both transports
//! alike.

mod calls;
mod death;
mod hostile;
mod policy;
mod world;

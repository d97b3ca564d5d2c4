//! The protocol of changes as a model, gone through in every order of events: keeping, publishing,
//! telling, applying, acknowledging, answers that come late, and a server that is killed anywhere
//! in between and started again.
//!
//! Each step of the model is one of the code: `Hosted::set_booleans` keeps and then publishes,
//! `Members` tells and collects acknowledgements, `Avc` refuses late answers. A fault put into any
//! of them is found.

use std::collections::{HashSet, VecDeque};

/// Policy states that are gone through.
const LAST: u8 = 2;
const CLIENTS: usize = 2;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The new state is published before it is kept.
    PublishesFirst,
    /// A client acknowledges what it was told before its cache is reset.
    AcknowledgesFirst,
    /// A client uses an answer however late it comes.
    TakesLateAnswers,
    /// A server that has come back takes clients to have applied its state.
    AssumesApplied,
    /// A change is complete although somebody has not answered.
    WaitsForOne,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    /// The newest state that its cache has heard of.
    current: u8,
    cached: Option<u8>,
    /// An answer under way.
    answer: Option<u8>,
    told: Option<u8>,
    /// What it has applied, and what the server knows of that.
    applied: u8,
    acknowledged: u8,
    /// The newest state that it has decided by.
    used: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    kept: u8,
    /// What the server answers by; `None` while it is away.
    published: Option<u8>,
    /// The state that a change under way leads to.
    changing: Option<u8>,
    /// The greatest number that a state was published under.
    reached: u8,
    /// The state that was last reported as complete.
    complete: u8,
    clients: [Client; CLIENTS],
}

/// A world, or what is wrong with it.
type Next = Result<World, String>;

impl World {
    fn begin() -> Self {
        Self { published: Some(0), ..Self::default() }
    }

    fn next(&self, fault: Fault) -> Vec<Next> {
        let mut next = self.server(fault);
        for n in 0..CLIENTS {
            next.extend(self.client(n, fault));
        }
        next
    }

    fn server(&self, fault: Fault) -> Vec<Next> {
        let mut next = Vec::new();
        let Some(published) = self.published else {
            // It starts again, from what was kept.
            let reached = self.reached.max(self.kept);
            let mut world = Self { published: Some(self.kept), reached, ..*self };
            for client in &mut world.clients {
                client.acknowledged = if fault == Fault::AssumesApplied { self.kept } else { 0 };
            }
            return vec![Ok(world)];
        };
        // It is killed: whoever asked for a change hears nothing, answers on their way may still
        // arrive.
        next.push(Ok(Self { published: None, changing: None, ..*self }));
        match self.changing {
            None if published < LAST => {
                let to = published.max(self.kept) + 1;
                let world = Self { changing: Some(to), ..*self };
                next.push(match fault {
                    Fault::PublishesFirst => world.publish(to),
                    _ => Ok(Self { kept: to, ..world }),
                });
            }
            Some(to) if published < to => next.push(self.publish(to)),
            Some(to) if self.kept < to => next.push(Ok(Self { kept: to, ..*self })),
            Some(to) => {
                let mut clients = self.clients.iter();
                let done = |client: &Client| client.acknowledged >= to;
                let complete = match fault {
                    Fault::WaitsForOne => clients.any(done),
                    _ => clients.all(done),
                };
                if complete {
                    next.push(Ok(Self { changing: None, complete: to, ..*self }));
                }
            }
            None => {
                // Once it is back, a client that acknowledges makes an earlier change hold, too.
                if self.clients.iter().all(|client| client.acknowledged >= published) {
                    next.push(Ok(Self { complete: published, ..*self }));
                }
            }
        }
        next
    }

    fn client(&self, n: usize, fault: Fault) -> Vec<Next> {
        let client = self.clients[n];
        let with = |client: Client| {
            let mut world = *self;
            world.clients[n] = client;
            world
        };
        let mut next = Vec::new();
        if let Some(published) = self.published {
            if client.answer.is_none() {
                next.push(Ok(with(Client { answer: Some(published), ..client })));
            }
            if client.told.is_none() && published > client.applied {
                let mut told = Client { told: Some(published), ..client };
                if fault == Fault::AcknowledgesFirst {
                    told.acknowledged = published;
                }
                next.push(Ok(with(told)));
            }
            if client.acknowledged < client.applied {
                next.push(Ok(with(Client { acknowledged: client.applied, ..client })));
            }
        }
        if let Some(told) = client.told {
            let current = client.current.max(told);
            next.push(Ok(with(Client { told: None, applied: told, current, ..client })));
        }
        if let Some(answer) = client.answer {
            // The answer may also be lost with the server.
            let without = Client { answer: None, ..client };
            next.push(Ok(with(without)));
            if answer >= client.current || fault == Fault::TakesLateAnswers {
                let current = client.current.max(answer);
                next.push(self.used(
                    with(Client { cached: Some(answer), current, ..without }),
                    n,
                    answer,
                ));
            }
        }
        if let Some(cached) = client.cached.filter(|cached| *cached >= client.current) {
            next.push(self.used(*self, n, cached));
        }
        next
    }

    /// A change takes effect. Its number must be new, or it would be taken for what it meant
    /// before.
    fn publish(self, to: u8) -> Next {
        if to <= self.reached {
            return Err(format!("{to} is published twice: {self:?}"));
        }
        Ok(Self { published: Some(to), reached: to, ..self })
    }

    /// Client `n` decides by the state `seqno`.
    fn used(&self, mut world: Self, n: usize, seqno: u8) -> Next {
        if seqno < self.complete {
            return Err(format!(
                "decides by {seqno} after {} was complete: {self:?}",
                self.complete
            ));
        }
        if seqno < world.clients[n].used {
            return Err(format!("goes back to {seqno}: {self:?}"));
        }
        world.clients[n].used = seqno;
        Ok(world)
    }
}

/// Goes through every world; how many there are, or the first thing that is wrong.
fn explore(fault: Fault) -> Result<usize, String> {
    let mut seen = HashSet::from([World::begin()]);
    let mut open = VecDeque::from([World::begin()]);
    while let Some(world) = open.pop_front() {
        for next in world.next(fault) {
            let next = next?;
            if seen.insert(next) {
                open.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_decision_follows_from_an_older_policy_than_the_change_that_is_complete() {
    let worlds = explore(Fault::None).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(worlds > 10_000, "{worlds} worlds: the model has become too small");
    println!("{worlds} worlds");
}

#[test]
fn every_fault_is_found() {
    for fault in [
        Fault::PublishesFirst,
        Fault::AcknowledgesFirst,
        Fault::TakesLateAnswers,
        Fault::AssumesApplied,
        Fault::WaitsForOne,
    ] {
        let found = explore(fault);
        assert!(found.is_err(), "{fault:?}: {found:?}");
    }
}

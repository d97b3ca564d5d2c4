//! What a port asks before a request reaches its service.

use crate::{
    generation::Generation,
    head::Status,
    peer::{Peer, PeerLabels},
};
use avc::{Avc, Hint};
use flask::{AccessVector, Class, InitialSid, Question, Sid, perm};
use std::sync::Arc;

/// A decision that is to be recorded: policy wants that, or the security server did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who asked for what.
    pub question: Question,
    /// What was asked for.
    pub requested: AccessVector,
    /// Whether it was granted.
    pub granted: bool,
    /// The process that called.
    pub pid: i32,
}

/// Everything that decides about the calls of one port.
#[derive(Clone)]
pub struct Guard {
    avc: Arc<Avc>,
    labels: Arc<dyn PeerLabels>,
    port: Sid,
    hints: bool,
    audit: Option<Arc<dyn Fn(Record) + Send + Sync>>,
}

impl Guard {
    /// Decides about a port labelled `port` by `avc`, for processes that `labels` knows.
    #[must_use]
    pub fn new(avc: Arc<Avc>, labels: Arc<dyn PeerLabels>, port: Sid) -> Self {
        Self { avc, labels, port, hints: true, audit: None }
    }

    /// Tells `audit` of every decision that is to be recorded. It runs before the call goes on.
    #[must_use]
    pub fn with_audit(self, audit: impl Fn(Record) + Send + Sync + 'static) -> Self {
        Self { audit: Some(Arc::new(audit)), ..self }
    }

    /// Looks every decision up in the cache, as if its hint were always wrong. What hints save is
    /// measured against it.
    #[must_use]
    pub fn without_hints(self) -> Self {
        Self { hints: false, ..self }
    }

    #[inline]
    fn granted(&self, asked: (Sid, Sid, AccessVector), hint: &Hint, peer: &Peer) -> bool {
        let (ssid, tsid, requested) = asked;
        let question = Question { ssid, tsid, tclass: Class::Port };
        let asked = if self.hints {
            self.avc.ask(question, requested, hint)
        } else {
            self.avc.ask(question, requested, &Hint::default())
        };
        let granted = asked.granted();
        if let Some(audit) = self.audit.as_ref().filter(|_| asked.is_recorded()) {
            audit(Record { question, requested, granted, pid: peer.pid() });
        }
        granted
    }
}

/// Whether a port checks its calls.
#[derive(Clone)]
pub enum Access {
    /// On every call.
    Checked(Guard),
    /// Never: every call is granted, its client is `unlabeled`. What the price of checking is
    /// measured against.
    Unchecked,
}

/// What is known of one connection.
pub(crate) struct Checks {
    access: Access,
    /// The process that made the connection.
    connected: Arc<Peer>,
    /// The process that speaks, where another has made the connection in its place.
    speaker: Option<Arc<Peer>>,
    client: Sid,
    until: Generation,
    connect: Hint,
    specify: Hint,
    connect_named: Hint,
}

/// The labels of one call.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    /// Of the process that calls.
    pub(crate) peer: Sid,
    /// Of the one in whose name it calls.
    pub(crate) client: Sid,
}

impl Checks {
    /// What holds for the process that has `connected`, if it may connect at all.
    pub(crate) fn begin(access: Access, connected: Peer) -> Result<Self, Status> {
        let mut checks = Self {
            access,
            connected: Arc::new(connected),
            speaker: None,
            client: InitialSid::Unlabeled.into(),
            until: Generation::FOREVER,
            connect: Hint::default(),
            specify: Hint::default(),
            connect_named: Hint::default(),
        };
        if matches!(checks.access, Access::Checked(_)) {
            checks.identify()?;
            checks.admit(0)?;
        }
        Ok(checks)
    }

    /// The process that speaks.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        self.speaker.as_ref().unwrap_or(&self.connected)
    }

    /// Decides about a call made in the name of the SID numbered `named`, or its own for 0.
    ///
    /// `connect` must be granted to the process that calls, and to the one in whose name it does
    /// so: nobody reaches by way of a service what it may not reach itself.
    #[inline]
    pub(crate) fn admit(&mut self, named: u32) -> Result<Caller, Status> {
        if matches!(self.access, Access::Checked(_)) && !self.until.is_current() {
            self.identify()?;
        }
        let Access::Checked(guard) = &self.access else {
            let client = Sid::new(named).unwrap_or(self.client);
            return Ok(Caller { peer: self.client, client });
        };
        let (itself, peer) = (self.client, self.peer());
        let connect = |sid| (sid, guard.port, perm::port::CONNECT);
        if !guard.granted(connect(itself), &self.connect, peer) {
            return Err(Status::Denied);
        }
        let Some(client) = Sid::new(named) else {
            return Ok(Caller { peer: itself, client: itself });
        };
        let specify = (itself, client, perm::port::SPECIFY_CLIENT);
        let granted = guard.granted(specify, &self.specify, peer)
            && guard.granted(connect(client), &self.connect_named, peer);
        if granted { Ok(Caller { peer: itself, client }) } else { Err(Status::DeniedName) }
    }

    /// Asks the record for the label of the process that speaks. What it said before stays until
    /// there is an answer.
    fn identify(&mut self) -> Result<(), Status> {
        let Access::Checked(guard) = &self.access else { return Ok(()) };
        let label = guard.labels.identify(&self.connected).ok_or(Status::Denied)?;
        let (sid, until, speaker) = label.into_parts();
        // It speaks for the same process as before, or for the first time.
        let another = speaker.as_ref().zip(self.speaker.as_ref());
        if another.is_some_and(|(now, then)| now.pid() != then.pid()) {
            return Err(Status::Denied);
        }
        let speaker = speaker.map(Arc::new);
        let peer = speaker.as_ref().unwrap_or(&self.connected);
        // They live after the label was looked up, so it was not that of others with the same
        // number.
        if !peer.is_alive() || !self.connected.is_alive() {
            return Err(Status::Denied);
        }
        (self.client, self.until, self.speaker) = (sid, until, speaker);
        Ok(())
    }
}

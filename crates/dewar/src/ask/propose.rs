//! The socket inside a sandbox (`DEWAR_DENIALS`): its programs read what they were denied, and
//! propose what would help. All that comes from there is foreign; docs/ask.md describes the lines.

use super::{
    case::Case,
    error::AskError,
    proposed::{Proposed, addressed},
    queue::QuestionQueue,
    socket,
    state::within_rate,
};
use crate::{
    control::{Reply, Request},
    fitting::{Fitting, access},
    proposal::Proposal,
    run::{Denial, link::Propose},
};
use anyhow::Context as _;
use flask::domain_of;
use learn::{Bound, Judge, Line, fragment};
use profile::Documents;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Connections at once.
const MOST: usize = 8;
/// The longest line that is read: more than a proposal may have, as JSON writes it.
const MOST_BYTES: u64 = 64 << 10;
/// Requests of all connections in a minute.
const RATE: usize = 60;
/// Lines that a run may be granted unasked: each makes its policy longer.
const MOST_GRANTED: usize = 200;
/// Denials that are told at once.
const MOST_DENIALS: usize = 200;

/// Where proposals are heard.
pub(super) struct Desk {
    queue: Arc<QuestionQueue>,
    listener: UnixListener,
    bound: Option<Bound>,
    requests: Mutex<VecDeque<Instant>>,
    granted: AtomicUsize,
}

/// What came of a proposal.
enum Decided {
    Granted,
    Asked(u64),
}

impl Desk {
    /// Listens where the sandbox was told.
    pub(super) fn open(queue: &Arc<QuestionQueue>, propose: &Propose) -> anyhow::Result<Self> {
        let bound = propose.within.as_ref().map(|(name, texts)| {
            let documents = Documents::from_texts(name.clone(), texts)?;
            let variables = &queue.setup.variables;
            let compiled = queue.with_fitting(|fitting| {
                documents.compile(variables, &mut |names| fitting.resolve(names), &[])
            })?;
            anyhow::Ok(Bound::new(compiled)?)
        });
        let bound = bound.transpose().context("propose.within")?;
        socket::remove_stale(propose.socket.parent().unwrap_or(Path::new("/")));
        let listener = socket::bind(&propose.socket)
            .with_context(|| format!("cannot listen at `{}`", propose.socket.display()))?;
        let (queue, requests, granted) = (Arc::clone(queue), Mutex::default(), 0.into());
        Ok(Self { queue, listener, bound, requests, granted })
    }

    /// Serves for ever.
    pub(super) fn serve(self: &Arc<Self>) {
        let open = Arc::new(());
        for stream in self.listener.incoming().flatten() {
            if Arc::strong_count(&open) > MOST {
                continue;
            }
            let (desk, open, stream) = (Arc::clone(self), Arc::clone(&open), Arc::new(stream));
            // Without a thread it is not served.
            let _ = thread::Builder::new().name("proposals".into()).spawn(move || {
                let _ = desk.talk(&stream);
                drop(open);
            });
        }
    }

    fn talk(&self, stream: &Arc<UnixStream>) -> io::Result<()> {
        let mut writer = stream.try_clone()?;
        // Who does not read is not waited for.
        writer.set_write_timeout(Some(Duration::from_secs(5)))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = Vec::new();
            if reader.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if !line.ends_with(b"\n") {
                return writeln!(writer, "{}", refused("the line is too long"));
            }
            if !within_rate(&mut lock(&self.requests), RATE) {
                writeln!(writer, "{}", refused("too many requests in a minute"))?;
                continue;
            }
            // Asked each time: whoever has entered another domain since is not vouched for.
            let who = match runs::client(stream.as_fd()) {
                Ok(Some(client)) if client.run() == self.queue.setup.id => client,
                _ => return writeln!(writer, "{}", refused("this is for programs of the run")),
            };
            let domain = domain_of(who.context());
            match learn::request(&line) {
                Some(learn::Request::Denials) => {
                    let events: String =
                        self.denials(domain).iter().map(|event| format!("{event}\n")).collect();
                    writer.write_all(events.as_bytes())?;
                }
                Some(learn::Request::Propose(text)) => {
                    let pid = who.process().pid().cast_unsigned();
                    self.hear((&text, domain, pid), stream, &mut writer)?;
                }
                None => writeln!(writer, "{}", refused("no such request"))?,
            }
        }
    }

    /// What processes of a domain were denied, and the lines that would help.
    fn denials(&self, domain: &str) -> Vec<Value> {
        let Ok(Reply::Denials(all)) = self.queue.request(Request::Denials) else {
            return vec![refused("the run does not answer")];
        };
        let own = all.iter().filter(|denial| domain_of(&denial.record.scontext) == domain);
        let mut own: Vec<&Denial> = own.collect();
        own.sort_by_key(|denial| std::cmp::Reverse(denial.record.count));
        own.truncate(MOST_DENIALS);
        self.queue.with_fitting(|fitting| {
            let Ok(judge) = fitting.judge(&[]) else { return vec![refused("no profile")] };
            let (known, other): (Vec<&Denial>, Vec<&Denial>) =
                own.iter().partition(|denial| may_know(denial, fitting, &judge));
            let lines = Proposal::of(fitting, &known, &[]).map(|it| it.lines).unwrap_or_default();
            let mut events: Vec<Value> = known.iter().map(|it| event(it, true)).collect();
            events.extend(other.iter().map(|it| event(it, false)));
            let lines: Vec<String> = lines.iter().map(Line::alone).collect();
            events.push(json!({ "end": events.len(), "lines": lines }));
            events
        })
    }

    /// Says what comes of a proposal, and when.
    fn hear(
        &self,
        (text, domain, pid): (&str, &str, u32),
        stream: &Arc<UnixStream>,
        writer: &mut UnixStream,
    ) -> io::Result<()> {
        let named = Some(domain).filter(|domain| *domain != "main");
        let lines = match fragment(text, named) {
            Ok(lines) => lines,
            Err(error) => return writeln!(writer, "{}", refused(&error.to_string())),
        };
        match self.decide(&lines, pid, stream) {
            Ok(Decided::Granted) => {
                let lines: Vec<String> = lines.iter().map(Line::alone).collect();
                writeln!(writer, "{}", json!({ "granted": lines }))
            }
            Ok(Decided::Asked(number)) => {
                writeln!(writer, "{}", json!({ "asked": number }))?;
                let answer = self.queue.answer_to(number);
                writeln!(writer, "{}", json!({ "answered": { "asked": number, "answer": answer } }))
            }
            Err(why) => writeln!(writer, "{}", refused(&why.to_string())),
        }
    }

    /// Decides a proposal: by the bound, or by a person.
    fn decide(
        &self,
        lines: &[Line],
        pid: u32,
        stream: &Arc<UnixStream>,
    ) -> Result<Decided, AskError> {
        let queue = &self.queue;
        let seen = queue.with_fitting(|fitting| {
            let proposed = Proposed::of(fitting, lines)?;
            let covers = |bound: &Bound| {
                lines.iter().all(|line| bound.covers(line, &proposed.amended, &fitting.scope))
            };
            let is_covered = self.bound.as_ref().is_some_and(covers);
            Ok::<_, AskError>((proposed, is_covered))
        });
        let (mut proposed, is_covered) = seen?;
        let by = if is_covered { "granted by its bound" } else { "granted by a person" };
        for amendment in &mut proposed.amendments {
            amendment.proposed = Some(format!("proposed by [{pid}], {by}"));
        }
        let taken = queue.taken(&proposed.amendments).map_err(|_| AskError::Unjudged)?;
        if is_covered && taken.is_empty() {
            if self.granted.fetch_add(lines.len(), Ordering::Relaxed) >= MOST_GRANTED {
                return Err(AskError::GrantedTooMuch);
            }
            let given = addressed(&proposed.amendments);
            given.and_then(|it| queue.admit(&it, None)).map_err(|_| AskError::Secret)?;
            let what: Vec<String> = lines.iter().map(Line::alone).collect();
            let what = format!("proposed by [{pid}]: {}", what.join("; "));
            queue.granted(what, "the bound of the profile (propose.within)");
            return Ok(Decided::Granted);
        }
        let until = Instant::now() + queue.setup.timeout;
        let mut case = Case {
            number: 0,
            waiting: Vec::new(),
            program: "a program".into(),
            pid,
            wants: Vec::new(),
            class: String::new(),
            object: String::new(),
            lines: lines.to_vec(),
            amendments: Some(proposed.amendments),
            also: proposed.also,
            taken,
            secret: false,
            proposed: true,
            proposers: vec![Arc::clone(stream)],
            choices: Vec::new(),
            until,
        };
        case.choices = case.possible(&queue.setup);
        queue.propose(case).map(Decided::Asked)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: &str) -> Value {
    json!({ "refused": why })
}

/// Whether a program may know the name of what it was denied: it is no file that the profile keeps
/// back, and no secret. A link may have led there.
fn may_know(denial: &Denial, fitting: &Fitting, judge: &Judge) -> bool {
    let asked = access(&denial.record);
    let path = Path::new(&denial.record.object);
    !denial.record.object.starts_with('/')
        || !fitting.scope.secrets.is_one(path) && !judge.withholds(path, asked.domain())
}

/// For the program. Neither rules nor reasons: they name what the profile keeps back.
fn event(denial: &Denial, may_know: bool) -> Value {
    let record = &denial.record;
    json!({ "denial": {
        "program": record.program.rsplit('/').next(),
        "call": record.call,
        "class": record.tclass,
        "wants": record.missing,
        "object": may_know.then_some(&record.object),
        "count": record.count,
    }})
}

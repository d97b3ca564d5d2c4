//! Servers as settings of an experiment, images as its subjects.

use super::{IMAGES, Report, RunningServers, Server, WebError, client::Load};
use crate::{
    config::Kind,
    interrupt::Interrupt,
    machine::Machine,
    pairs::{
        Aim, Experiment, RawFile, Runner, RunnerError, Setting, Store, Subject, Took, Unit,
        engine::{self, Standing},
    },
};
use std::time::{Duration, Instant};

/// Requests under way under load.
pub(super) const UNDER_WAY: usize = 8;
/// Requests of one slice, by image, and what a slow server has for it.
const SLICES: [usize; 4] = [1500, 800, 400, 60];
const SLICE_TIME: Duration = Duration::from_millis(150);
/// Requests of one slice, one after the other.
const SINGLES: [usize; 4] = [200, 150, 100, 25];

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerLoad {
    pub(super) image: usize,
    pub(super) gray: bool,
    /// One request after the other, instead of eight at a time.
    pub(super) single: bool,
}

impl ServerLoad {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let kinds = [(false, false), (true, false), (false, true), (true, true)];
        kinds.into_iter().flat_map(|(gray, single)| {
            (0..IMAGES.len()).map(move |image| Self { image, gray, single })
        })
    }

    pub(super) fn name(self) -> String {
        let what = if self.gray { "gray" } else { "plain" };
        let how = if self.single { "one at a time" } else { "eight at a time" };
        format!("{} {what}, {how}", IMAGES[self.image].0)
    }

    fn subject(self) -> Subject {
        let times = if self.single { SINGLES[self.image] } else { SLICES[self.image] };
        let units = vec![Unit::Operation { name: self.name(), times: times as u32 }];
        Subject { name: self.name(), units, operations: times as f64 }
    }
}

/// A server that is asked.
struct Asking<'a>(&'a Server);

impl Runner for Asking<'_> {
    fn perform(&mut self, unit: &Unit, _: Duration) -> Result<Took, RunnerError> {
        let Unit::Operation { name, times } = unit else {
            return Err(RunnerError::Unit("a server is only asked".to_owned()));
        };
        let asked = ServerLoad::all().find(|asked| asked.name() == *name);
        let asked = asked.ok_or_else(|| RunnerError::Unit(format!("nothing is called {name}")))?;
        if !asked.gray && !self.0.serves_plain {
            return Err(RunnerError::Unit("plain files: as another row".to_owned()));
        }
        // Logs tell requests of one kind by this.
        let kind = if asked.single { "?one" } else { "" };
        let path = self.0.path(IMAGES[asked.image].0, asked.gray) + kind;
        let under_way = if asked.single { 1 } else { UNDER_WAY };
        let took = Load::open(self.0, &path, under_way).and_then(|mut load| {
            let clock = self.0.clock.as_ref().filter(|_| asked.single);
            let Some(clock) = clock else {
                return slice(self.0, &mut load, *times as usize, under_way);
            };
            let before = clock.told(&path)?;
            let took = slice(self.0, &mut load, *times as usize, under_way)?;
            let inside = clock.mean_since(before, &path)?;
            Ok(Took { inside_s: inside.map(|mean| mean * f64::from(*times)), ..took })
        });
        took.map_err(|error| RunnerError::Unit(error.to_string()))
    }
}

/// One slice, after a request on every connection that is not counted. A server too slow for all of
/// it is asked less, and what it took is what all of it would have taken.
pub(super) fn slice(
    server: &Server,
    load: &mut Load,
    times: usize,
    under_way: usize,
) -> std::io::Result<Took> {
    load.ask(under_way, under_way, Duration::MAX / 4)?;
    let (cpu, begun) = (server.cpu(), Instant::now());
    let done = load.ask(times, under_way, SLICE_TIME)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let cpu_s = server.cpu().saturating_sub(cpu).as_secs_f64();
    let factor = times as f64 / done.max(1) as f64;
    Ok(Took { wall_s: wall_s * factor, cpu_s: Some(cpu_s * factor), inside_s: None })
}

/// Measures servers until it is enough; keeps samples in `raw`, or continues what is there.
///
/// # Errors
///
/// [`WebError`], when samples cannot be kept. A server that fails is a row that says why.
pub fn measure(
    found: &RunningServers,
    aim: Aim,
    raw: Option<RawFile>,
    (interrupt, progress): (&Interrupt, &mut dyn FnMut(Standing<'_>)),
) -> Result<Report, WebError> {
    let setting = |server: &Server| Setting {
        name: server.name.clone(),
        description: server.description.clone(),
        kind: if server.name.starts_with("dewar") { Kind::Dewar } else { Kind::Peer },
    };
    let missing = found.missing.iter().map(|(name, why)| format!("{name} is left out: {why}"));
    let experiment = Experiment {
        name: "web".to_owned(),
        title: "web servers that turn images gray".to_owned(),
        unit: format!("requests for at most {} ms", SLICE_TIME.as_millis()),
        subjects: ServerLoad::all().map(ServerLoad::subject).collect(),
        settings: found.servers.iter().map(setting).collect(),
        aim,
        seed: 1999,
        machine: Machine::here(),
        notes: missing.collect(),
    };
    let store = Store::open(raw, experiment)?;
    let runner = |server| Box::new(Asking(server)) as Box<dyn Runner + '_>;
    let mut runners: Vec<_> = found.servers.iter().map(runner).collect();
    Ok(Report::new(engine::run(store, &mut runners, interrupt, progress)?))
}

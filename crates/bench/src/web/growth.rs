//! How the processor time of a request grows with what it should not depend on: open connections,
//! loaded plugins, rules of the policy.

use super::{
    IMAGES, Programs, Server, WebError,
    client::Load,
    own::Grown,
    runner::{UNDER_WAY, slice},
    server::directory,
    write_images,
};
use crate::{
    figure::{Curve, Drawing, Figure},
    interrupt::Interrupt,
    sheet::{Cell, Sheet},
    statistics::Summary,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Requests of one slice.
const SLICE: usize = 1000;

/// What grows, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// Connections that are open; requests go round between them.
    Connections,
    /// Plugins that are loaded; one is asked.
    Plugins,
    /// Rules of the policy, besides the usual ones.
    Rules,
}

/// One step of one curve.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// What has grown.
    pub growth: Growth,
    /// How far.
    pub count: usize,
    /// Processor time of the server for one request, in microseconds.
    pub cpu_us: Summary,
    /// Memory of the server, in KiB; what it shares with others is counted in part.
    pub resident_kib: u64,
}

/// All steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GrowthReport {
    /// By curve, in their order.
    pub steps: Vec<Step>,
}

impl Growth {
    const ALL: [Self; 3] = [Self::Connections, Self::Plugins, Self::Rules];

    const fn counts(self) -> &'static [usize] {
        match self {
            Self::Connections => &[1, 10, 100, 1000, 10_000],
            Self::Plugins => &[1, 10, 100, 1000],
            Self::Rules => &[10, 100, 1000, 10_000],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Connections => "open connections",
            Self::Plugins => "loaded plugins",
            Self::Rules => "rules more",
        }
    }

    const fn grown(self, count: usize) -> Grown {
        match self {
            Self::Connections => Grown { plugins: 0, rules: 0 },
            Self::Plugins => Grown { plugins: count - 1, rules: 0 },
            Self::Rules => Grown { plugins: 0, rules: count },
        }
    }
}

/// A server, and what asks it.
struct Point {
    count: usize,
    server: Server,
    load: Load,
    cpus: Vec<f64>,
}

impl GrowthReport {
    /// Measures every curve by so many rounds; the steps of a curve take turns.
    ///
    /// # Errors
    ///
    /// [`WebError`].
    pub fn measure(
        programs: &Programs,
        scratch: &Path,
        rounds: usize,
        (interrupt, progress): (&Interrupt, &mut dyn FnMut(&str)),
    ) -> Result<Self, WebError> {
        let most = getrlimit(Resource::Nofile).maximum;
        let raised = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
        raised.map_err(|error| WebError::system("cannot open many connections", error.into()))?;
        let root = directory(scratch, "root")?;
        write_images(&root)?;
        let mut report = Self::default();
        for growth in Growth::ALL {
            let mut points = Vec::new();
            for count in growth.counts() {
                progress(&format!("starting: {count} {}", growth.name()));
                points.push(point(programs, (scratch, &root), growth, *count)?);
            }
            for round in 0..=rounds {
                progress(&format!("{}: round {round} of {rounds}", growth.name()));
                for point in &mut points {
                    let under_way = UNDER_WAY;
                    let took = slice(&point.server, &mut point.load, SLICE, under_way);
                    let took =
                        took.map_err(|error| WebError::system(point.server.name.clone(), error))?;
                    // The first does not count.
                    let counts = took.cpu_s.filter(|_| round > 0);
                    point.cpus.extend(counts.map(|cpu| cpu * 1e6 / SLICE as f64));
                }
                if interrupt.happened() && round > 0 {
                    break;
                }
            }
            let steps = points.iter().filter_map(|point| {
                let (count, resident_kib) = (point.count, point.server.resident_kib());
                Summary::of(&point.cpus).map(|cpu_us| Step { growth, count, cpu_us, resident_kib })
            });
            report.steps.extend(steps);
        }
        Ok(report)
    }

    /// The steps as a table.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let columns = [
            ("what grows", 0, false),
            ("count", 0, true),
            ("CPU µs", 0, true),
            ("95 %", 0, false),
            ("of the first", 0, true),
            ("memory, MiB", 0, true),
        ];
        let mut sheet = Sheet::new("Processor time of a request as things grow", &columns);
        for step in &self.steps {
            let first = self.steps.iter().find(|it| it.growth == step.growth);
            let ratio = first.map_or(1.0, |first| step.cpu_us.median / first.cpu_us.median);
            let (low, high) = step.cpu_us.interval();
            let mib = step.resident_kib as f64 / 1024.0;
            sheet.push(vec![
                step.growth.name().into(),
                Cell::number(step.count.to_string(), step.count as f64),
                Cell::number(format!("{:.1}", step.cpu_us.median), step.cpu_us.median),
                format!("{low:.1} … {high:.1}").into(),
                Cell::number(format!("{ratio:.2} ×"), ratio),
                Cell::number(format!("{mib:.0}"), mib),
            ]);
        }
        sheet.notes.push(format!(
            "An isolated plugin turns the image of {} gray; at most {UNDER_WAY} requests are under way. Medians of slices of \
             {SLICE} requests, the steps of a curve in turn. With one connection, one request is under way, and the server \
             sleeps and wakes for each.",
            IMAGES[0].0
        ));
        sheet
    }

    /// How far the last step of each curve is from its first.
    #[must_use]
    pub fn headline(&self) -> String {
        let said = |growth: Growth| {
            let mut own = self.steps.iter().filter(|step| step.growth == growth);
            let (first, last) = (own.next()?, own.next_back()?);
            let ratio = last.cpu_us.median / first.cpu_us.median;
            Some(format!("{} {}: {ratio:.2} ×", last.count, growth.name()))
        };
        let said: Vec<String> = Growth::ALL.into_iter().filter_map(said).collect();
        format!(
            "Processor time of a request against the first step of each curve: {}.",
            said.join("; ")
        )
    }

    /// All curves.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let curve = |growth: Growth| {
            let own = self.steps.iter().filter(|step| step.growth == growth);
            let points = own.map(|step| (step.count as f64, step.cpu_us.median)).collect();
            Curve { name: growth.name().to_owned(), points }
        };
        Figure {
            title: "Processor time of a request as things grow".to_owned(),
            description: "Microseconds of the server for one request with an isolated plugin."
                .to_owned(),
            drawing: Drawing::Growth {
                axes: ["how many", "µs of processor time per request"].map(str::to_owned),
                curves: Growth::ALL.map(curve).to_vec(),
            },
        }
    }
}

fn point(
    programs: &Programs,
    (scratch, root): (&Path, &Path),
    growth: Growth,
    count: usize,
) -> Result<Point, WebError> {
    let scratch = directory(scratch, &format!("{} {count}", growth.name()))?;
    let server = programs.start_grown(&scratch, root, growth.grown(count))?;
    let connections = if growth == Growth::Connections { count } else { UNDER_WAY };
    let load = Load::open(&server, &server.path(IMAGES[0].0, true), connections);
    let load = load.map_err(|error| WebError::system(server.name.clone(), error))?;
    Ok(Point { count, server, load, cpus: Vec::new() })
}

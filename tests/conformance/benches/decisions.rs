//! Decisions on Debian's policy: ours and libsepol's in the same run, on questions made the same
//! way.
//!
//! `cargo bench -p conformance`. Prints medians and 99th percentiles of single calls, then
//! throughput of one and two threads, then what loading takes. Single calls are timed one by one,
//! less the time of reading the clock.

use conformance::{Oracle, debian_policy};
use flask::{Class, Question, SecurityServer};
use security_server::policy::Context;
use security_server::{ClassId, Engine, Server, policydb};
use std::hint::black_box;
use std::time::{Duration, Instant};

const QUESTIONS: usize = 20_000;

fn main() -> anyhow::Result<()> {
    let oracle = Oracle::build()?;
    let path = debian_policy()?;
    let bytes = std::fs::read(&path)?;
    println!("policy\t{}\t{} bytes", path.display(), bytes.len());
    let engine = Engine::new(policydb::read(&bytes)?);
    let sample = oracle.sample(&path, QUESTIONS, 3, false)?;
    let questions = questions(&engine, &sample)?;

    for round in 1..=3 {
        println!("round {round}");
        let theirs = oracle.run(&path, &["time", &QUESTIONS.to_string(), "3"])?;
        print!(
            "{}",
            theirs.lines().map(|line| format!("libsepol compute_av\t{line}\n")).collect::<String>()
        );
        single_calls("engine compute_av", &questions, |(source, target, class)| {
            black_box(engine.compute_av(source, target, *class));
        });
    }
    through_the_server(&bytes, &sample)?;
    loading(&oracle, &path, &bytes)
}

type Asked = (Context, Context, ClassId);

fn questions(engine: &Engine, sample: &str) -> anyhow::Result<Vec<Asked>> {
    let policy = engine.policy();
    let lines = sample.lines().filter_map(|line| line.strip_prefix("av\t"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let class = policy.class(fields[2]).unwrap_or(ClassId(0));
            Ok((policy.parse_context(fields[0])?, policy.parse_context(fields[1])?, class))
        })
        .collect()
}

/// Times every call on its own and prints median and 99th percentile.
fn single_calls<Q>(name: &str, questions: &[Q], ask: impl Fn(&Q)) {
    let clock = percentiles((0..10_000).map(|_| Instant::now().elapsed()).collect()).0;
    questions.iter().for_each(&ask);
    let time = |question: &Q| {
        let start = Instant::now();
        ask(question);
        start.elapsed().saturating_sub(clock)
    };
    let (median, p99) = percentiles(questions.iter().map(time).collect());
    println!("{name}\tmedian_ns\t{}\tp99_ns\t{}", median.as_nanos(), p99.as_nanos());
}

fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// The same through SIDs and the object managers' classes, by one thread and by two.
fn through_the_server(bytes: &[u8], sample: &str) -> anyhow::Result<()> {
    let server = Server::new(policydb::read(bytes)?)?;
    let lines = sample.lines().filter_map(|line| line.strip_prefix("av\t"));
    let mut questions = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        if let Some(tclass) = Class::by_name(fields[2]) {
            let (ssid, tsid) =
                (server.context_to_sid(fields[0])?, server.context_to_sid(fields[1])?);
            questions.push(Question { ssid, tsid, tclass });
        }
    }
    single_calls("server compute_av", &questions, |q| {
        let _ = black_box(server.compute_av(*q));
    });
    let mut rates = Vec::new();
    for threads in [1, 2, 1, 2, 1, 2] {
        rates.push((threads, throughput(&server, &questions, threads)));
    }
    for (threads, rate) in rates {
        println!("server throughput\tthreads\t{threads}\tdecisions_per_s\t{rate:.0}");
    }
    Ok(())
}

fn throughput(server: &Server, questions: &[Question], threads: usize) -> f64 {
    let rounds = 20;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for q in questions.iter().cycle().take(rounds * questions.len()) {
                    let _ = black_box(server.compute_av(*q));
                }
            });
        }
    });
    (threads * rounds * questions.len()) as f64 / start.elapsed().as_secs_f64()
}

fn loading(oracle: &Oracle, path: &std::path::Path, bytes: &[u8]) -> anyhow::Result<()> {
    let theirs = oracle.run(path, &["load", "9"])?;
    print!("{}", theirs.lines().map(|line| format!("libsepol load\t{line}\n")).collect::<String>());
    for _ in 0..9 {
        let start = Instant::now();
        let policy = policydb::read(bytes)?;
        let read = start.elapsed();
        let engine = Engine::new(policy);
        let all = start.elapsed();
        println!("ours load\tread_ms\t{:.2}\tall_ms\t{:.2}", ms(read), ms(all));
        black_box(engine);
    }
    println!(
        "ours after load\tindex_kib\t{}",
        Engine::new(policydb::read(bytes)?).index().bytes() / 1024
    );
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

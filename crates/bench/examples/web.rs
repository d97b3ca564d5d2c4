//! Measures web servers: `cargo run -p bench --example web -- PATH/TO/dewar-serve OUT [ROUNDS
//! [SECONDS]]`.

use bench::web::{Plan, figures, found, measure};
use std::{env, error::Error, fs, path::PathBuf, time::Duration};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args_os().skip(1);
    let (Some(dewar), Some(out)) = (args.next(), args.next()) else {
        return Err("name dewar-serve, and a directory for what is found".into());
    };
    let mut number =
        |or: u64| -> u64 { args.next().and_then(|it| it.to_str()?.parse().ok()).unwrap_or(or) };
    let (rounds, seconds) = (number(3) as usize, number(2));
    let out = PathBuf::from(out);
    let scratch = tempfile::tempdir()?;
    let found = found(&PathBuf::from(dewar), scratch.path())?;
    for (name, why) in &found.missing {
        eprintln!("{name} is left out: {why}");
    }
    let plan = Plan { rounds, time: Duration::from_secs(seconds), single: true };
    let rows = measure(&found.servers, &plan, &mut |what| eprintln!("{what}"))?;
    println!(
        "| server | image | | µs of processor | requests/s | µs of one request |\n|---|---|---|---|---|---|"
    );
    for row in &rows {
        let what = if row.gray { "gray" } else { "plain" };
        let single = row.single_us.map_or(String::new(), |it| format!("{:.0}", it.median));
        println!(
            "| {} | {} | {what} | {:.1} ({:.1}–{:.1}) | {:.0} | {single} |",
            row.server,
            row.image,
            row.cpu_us.median,
            row.cpu_us.lower_quartile,
            row.cpu_us.upper_quartile,
            row.rate.median
        );
    }
    fs::create_dir_all(&out)?;
    for (name, svg) in figures(&rows)? {
        fs::write(out.join(format!("web-{name}.svg")), svg)?;
    }
    Ok(fs::write(out.join("web.json"), serde_json::to_vec_pretty(&rows)?)?)
}

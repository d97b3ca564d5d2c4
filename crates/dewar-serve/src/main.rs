//! `dewar serve`: the web server.
#![forbid(unsafe_code)]

use anyhow::Context as _;
use clap::Parser;
use cli::{
    args::ServeArgs,
    failure::{self, Failed, Usage},
    output::{self, tell_line},
};
use serde_json::{Map, Value};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{path::PathBuf, process::ExitCode};
use web::{Config, Listen, PluginConfig, Server, ServerError};

/// The part of the command line that this program carries out.
#[derive(Debug, Parser)]
#[command(name = "dewar", bin_name = "dewar", version)]
enum Command {
    Serve(ServeArgs),
}

/// A plugin, as the command line says it.
fn plugin(text: &str) -> anyhow::Result<(String, PluginConfig)> {
    let wrong = |why: String| Usage(format!("--plugin {text}: {why}"));
    let (name, rest) = text.split_once('=').ok_or_else(|| wrong("write NAME=FILE".to_owned()))?;
    let mut parts = rest.split(',');
    let mut fields = Map::new();
    fields.insert("file".to_owned(), Value::from(parts.next().unwrap_or_default()));
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, "true"));
        let value = match value.parse::<u64>() {
            Ok(number) => Value::from(number),
            Err(_) if value == "true" || value == "false" => Value::from(value == "true"),
            Err(_) => Value::from(value),
        };
        fields.insert(key.to_owned(), value);
    }
    let config = serde_json::from_value(Value::Object(fields));
    let mut config: PluginConfig = config.map_err(|error| wrong(error.to_string()))?;
    if config.route.is_none() && config.media.is_none() {
        config.route = Some(format!("/{name}/"));
    }
    Ok((name.to_owned(), config))
}

/// What the command line, and the file that it names, say.
fn config(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = match (&args.config, &args.root) {
        (Some(path), _) => Config::read(path).map_err(|error| Usage(error.to_string()))?,
        (None, Some(root)) => Config::new(root.clone()),
        (None, None) => {
            return Err(Usage("name a directory, or a file by --config".to_owned()).into());
        }
    };
    let here = std::env::current_dir().context("there is no working directory")?;
    if let Some(root) = &args.root {
        config.root = here.join(root);
        // A directory that comes later is none now.
        std::fs::read_dir(&config.root).map_err(|error| {
            let root = root.display();
            Usage(format!(
                "cannot serve `{root}`: {error}; name a directory, or a file by --config"
            ))
        })?;
    }
    if !args.listen.is_empty() {
        let listen = |address: &String| Listen { address: address.clone(), ..Listen::default() };
        config.listen = args.listen.iter().map(listen).collect();
    }
    for text in &args.plugin {
        let (name, plugin) = plugin(text)?;
        let file = here.join(&plugin.file);
        config.plugins.insert(name, PluginConfig { file, ..plugin });
    }
    config.list |= args.list;
    config.workers = args.workers.map_or(config.workers, usize::from);
    let absolute =
        |path: &PathBuf| if path.as_os_str() == "-" { path.clone() } else { here.join(path) };
    config.access_log = args.access_log.as_ref().map(absolute).or(config.access_log);
    config.admin = args.admin.as_ref().map(absolute).or(config.admin);
    config.status = args.status.clone().or(config.status);
    config.policy.extend(args.policy.iter().map(|path| here.join(path)));
    Ok(config)
}

fn main() -> ExitCode {
    let done = match cli::help::parse::<Command>() {
        Ok(Command::Serve(args)) => serve(&args),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => return failure::mistake(&mistake),
    };
    done.map_or_else(failure::report, |()| ExitCode::SUCCESS)
}

/// Mistakes in what the server is told are wrong use, also addresses and directories that are none;
/// what the system refuses is not.
fn refused(error: ServerError) -> anyhow::Error {
    use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    let told = |kind| matches!(kind, InvalidInput | NotADirectory | NotFound);
    match error {
        ServerError::System { error: ref why, .. } if !told(why.kind()) => {
            Failed(error.to_string()).into()
        }
        error => Usage(error.to_string()).into(),
    }
}

fn serve(args: &ServeArgs) -> anyhow::Result<()> {
    // From here on they are ours: none is lost between the start and the wait.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let server = Server::start(config(args)?).map_err(refused)?;
    for address in server.addresses() {
        tell(&format!("listening at {address}"));
    }
    if let Some(address) = server.status() {
        tell(&format!("status at http://{address}/"));
    }
    for signal in &mut signals {
        if signal != SIGHUP {
            break;
        }
        match config(args).and_then(|config| server.reload(config).map_err(refused)) {
            Ok(left) => {
                left.iter().for_each(|what| tell(what));
                // What was said before is not as the configuration has it.
                tell(if left.is_empty() { "reloaded" } else { "reloaded, but for that" });
            }
            Err(error) => tell(&format!("everything stays as it was: {error:#}")),
        }
    }
    server.end();
    Ok(())
}

/// Says it on standard error.
fn tell(text: &str) {
    tell_line(format_args!("dewar serve: {text}"));
}

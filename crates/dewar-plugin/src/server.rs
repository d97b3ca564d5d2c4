//! `dewar plugin load|replace|unload|stats --server`: the plugins of a server that runs.

use anyhow::Context as _;
use cli::{
    args::plugin::{LoadArgs, PutArgs, ReplaceArgs, ServerArgs, StatsArgs, UnloadArgs},
    failure::{Failed, Usage},
    output,
};
use flask::visible;
use plugin_host::visible_lines;
use serde::Deserialize;
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// A server compiles what it is given before it answers.
const TIME: Duration = Duration::from_secs(60);

pub(crate) fn load(args: &LoadArgs) -> anyhow::Result<()> {
    put("POST", &args.put)
}

pub(crate) fn replace(args: &ReplaceArgs) -> anyhow::Result<()> {
    put("PUT", &args.put)
}

fn put(method: &str, args: &PutArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let wrong = |why: String| Usage(format!("{shown}: {why}"));
    let mut source = fs::read(&args.file)
        .map_err(|error| Usage(format!("cannot read plugin `{}`: {error}", args.file.display())))?;
    if args.file.extension().is_some_and(|end| end == "wat") {
        source = wat::parse_bytes(&source)
            .map_err(|error| wrong(visible_lines(&error.to_string())))?
            .into_owned();
    }
    let negotiate = args.negotiate.then(|| "true".to_owned());
    let fields = [
        ("kind", &args.kind),
        ("route", &args.route),
        ("type", &args.media),
        ("gives", &args.gives),
        ("negotiate", &negotiate),
        ("target", &args.target),
    ];
    let fields = fields
        .iter()
        .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={}", escaped(value))));
    let query = fields.collect::<Vec<_>>().join("&");
    let target = format!("/plugins/{}?{query}", escaped(&args.name));
    let target = target.trim_end_matches('?');
    show(&args.server, method, target, &source)
}

pub(crate) fn unload(args: &UnloadArgs) -> anyhow::Result<()> {
    show(&args.server, "DELETE", &format!("/plugins/{}", escaped(&args.name)), b"")
}

pub(crate) fn stats(args: &StatsArgs) -> anyhow::Result<()> {
    let target = match &args.name {
        Some(name) => format!("/plugins/{}", escaped(name)),
        None => "/status".to_owned(),
    };
    show(&args.server, "GET", &target, b"")
}

/// Shows the plugins of a server: for people, or as the JSON that it answers with.
pub(crate) fn list(server: &Path, json: bool) -> anyhow::Result<()> {
    let answer = answer(server, "GET", "/plugins", b"")?;
    let text = if json { shown(&answer) } else { table(&answer)? };
    Ok(output::print(text.as_bytes())?)
}

/// A plugin, as a server lists it.
#[derive(Deserialize)]
struct Listed {
    name: String,
    kind: Option<String>,
    route: Option<String>,
    target: String,
    version: u64,
    quarantined: bool,
    calls: u64,
    faults: u64,
    denied: u64,
}

/// The plugins of an answer, for people.
fn table(answer: &str) -> anyhow::Result<String> {
    let plugins: Vec<Listed> =
        serde_json::from_str(answer).context("the server's answer is no list of plugins")?;
    let mut text = match plugins.len() {
        1 => "1 plugin\n".to_owned(),
        count => format!("{count} plugins\n"),
    };
    for it in plugins {
        let kind = it.kind.as_deref().unwrap_or("plugin");
        let route = it.route.map(|route| format!(" for {route}")).unwrap_or_default();
        let state = if it.quarantined { ", in quarantine: not called" } else { "" };
        let told = format!(
            "{}: {kind}{route}, {}, version {}{state}; {} calls, {} faults, {} denied",
            it.name, it.target, it.version, it.calls, it.faults, it.denied
        );
        text += &(visible(&told) + "\n");
    }
    Ok(text)
}

/// Asks, and shows what is answered: on standard output, or as what was refused.
fn show(args: &ServerArgs, method: &str, target: &str, body: &[u8]) -> anyhow::Result<()> {
    let text = answer(&args.server, method, target, body)?;
    Ok(output::print(shown(&text).as_bytes())?)
}

/// Lines of a server that cannot steer the terminal.
fn shown(text: &str) -> String {
    text.lines().map(|line| visible(line) + "\n").collect()
}

/// What a server answers; what it refuses is an error.
fn answer(server: &Path, method: &str, target: &str, body: &[u8]) -> anyhow::Result<String> {
    let socket = server.display();
    let (status, text) = ask(server, method, target, body).with_context(|| {
        format!("no server answers at `{socket}`; `dewar serve --admin {socket} ROOT` makes it")
    })?;
    if (200..300).contains(&status) {
        return Ok(text);
    }
    let shown = shown(&text).trim_end().to_owned();
    Err(if status == 422 || status == 400 { Usage(shown).into() } else { Failed(shown).into() })
}

fn ask(socket: &Path, method: &str, target: &str, body: &[u8]) -> anyhow::Result<(u16, String)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIME))?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(64 << 20).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, text) = answer.split_once("\r\n\r\n").context("that is no answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.context("an answer without a status")?, text.to_owned()))
}

/// `text` as it can stand in a target.
fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    text.bytes()
        .map(
            |byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_listed_for_people() {
        let answer = r#"[{"name":"thumb","kind":"transform","route":"/*.png","target":"isolated",
            "version":3,"quarantined":true,"calls":7,"faults":2,"denied":1,"mean_us":0.5},
            {"name":"log\u001b[2J","target":"native","version":1,"quarantined":false,
            "calls":0,"faults":0,"denied":0}]"#;
        let text = table(answer).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2 plugins");
        assert_eq!(
            lines[1],
            "thumb: transform for /*.png, isolated, version 3, in quarantine: not called; 7 calls, 2 faults, 1 denied"
        );
        assert!(lines[2].starts_with(r"log\u001b[2J: plugin, native"), "{text}");
        assert!(table("{}").is_err());
    }
}

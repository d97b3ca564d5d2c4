//! What administration can be asked for.

use super::{metrics, reply::Reply, status};
use crate::{config::PluginConfig, plugins::PluginError, shared::Shared};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn get(shared: &Shared, target: &str) -> Reply {
    match target.split('?').next().unwrap_or_default() {
        "/" => {
            Reply { status: 200, media: "text/html; charset=utf-8", body: status::PAGE.to_owned() }
        }
        "/metrics" => Reply {
            status: 200,
            media: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::text(shared),
        },
        "/status" => Reply::json(&status::json(shared)),
        "/plugins" => Reply::json(&json!(status::plugins(shared))),
        path => match path.strip_prefix("/plugins/") {
            Some(name) => match status::plugin(shared, name) {
                Some(found) => Reply::json(&found),
                None => Reply::text(404, format!("there is no plugin `{name}`\n")),
            },
            None => Reply::text(404, "there is nothing here\n"),
        },
    }
}

pub(super) fn change(shared: &Shared, method: &str, target: &str, body: &[u8]) -> Reply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Some(name) = path.strip_prefix("/plugins/") else {
        return Reply::text(404, "there is nothing to change here\n");
    };
    let replace = match method {
        "POST" => false,
        "PUT" => true,
        "DELETE" if shared.plugins.remove(name) => {
            return Reply::text(200, format!("unloaded {name}\n"));
        }
        "DELETE" => return Reply::text(404, format!("there is no plugin `{name}`\n")),
        _ => return Reply::text(405, "POST loads, PUT replaces, DELETE unloads\n"),
    };
    let before = shared.plugins.all();
    let before = before.iter().find(|plugin| plugin.name == name).map(Arc::clone);
    let config = match (&before, query.is_empty()) {
        // Other code for the same.
        (Some(before), true) if replace => Ok(before.config.clone()),
        _ => config(query),
    };
    let put = config.and_then(|config| {
        shared.plugins.put(name, &config, body, Some(replace)).map_err(|error| refused(&error))
    });
    match put {
        Ok(remarks) => {
            let info = shared.plugins.host.list().into_iter().find(|info| info.name == name);
            let version = info.map_or(0, |info| info.version);
            let text = format!("{remarks}{name}: version {version} is in use\n");
            Reply::text(if replace { 200 } else { 201 }, text)
        }
        Err(reply) => reply,
    }
}

fn refused(error: &PluginError) -> Reply {
    let status = match error {
        PluginError::Name(_) => 409,
        _ => 422,
    };
    let text = error.to_string();
    Reply::text(status, format!("{}\n", text.trim_end()))
}

/// A plugin's configuration out of a query.
fn config(query: &str) -> Result<PluginConfig, Reply> {
    let mut fields = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let value = decoded(value).ok_or_else(|| Reply::text(400, "an escape is none\n"))?;
        let value = match value.parse::<u64>() {
            Ok(number) => json!(number),
            Err(_) if value == "true" || value == "false" => json!(value == "true"),
            Err(_) => json!(value),
        };
        fields.insert(key.to_owned(), value);
    }
    let config = serde_json::from_value(Value::Object(fields));
    config.map_err(|error| Reply::text(400, format!("{error}\n")))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            // Digits alone: a reader of numbers would take a sign, as in `%+1`.
            let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
            bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn an_escape_is_two_digits_and_the_text_is_utf8() {
        for (text, want) in [
            ("", Some("")),
            ("/a%2Fb%2fc", Some("/a/b/c")),
            ("%C3%A9+%25", Some("\u{e9}+%")),
            ("%+1", None),
            ("%-1", None),
            ("% 1", None),
            ("%1+", None),
            ("%4", None),
            ("%", None),
            ("%4\u{e9}", None),
            ("%g0", None),
            ("%ff", None),
        ] {
            assert_eq!(decoded(text).as_deref(), want, "{text}");
        }
    }
}

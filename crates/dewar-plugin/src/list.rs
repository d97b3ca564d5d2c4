//! `dewar plugin list`

use anyhow::Context as _;
use cli::{args::plugin::ListArgs, output};
use plugin_host::{Cache, CachedCode};
use serde_json::json;

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<()> {
    if let Some(server) = &args.server {
        return crate::server::list(server, args.json);
    }
    let path = args.cache.clone().or_else(Cache::user_path);
    let path = path.context("there is no home directory; name a cache by --cache")?;
    let cached = match path.try_exists() {
        Ok(false) => Vec::new(),
        _ => Cache::open(&path, Cache::DEFAULT_BYTES)?.list().context("cannot read the cache")?,
    };
    let text = if args.json {
        let rows = cached.iter().map(|code| {
            json!({
                "plugin": code.plugin, "bytes": code.bytes, "intact": code.intact,
                "age_s": age_s(code),
            })
        });
        output::json(&rows.collect::<Vec<_>>())?
    } else {
        let mut text = format!("{} plugins in {}\n", cached.len(), path.display());
        for code in &cached {
            let name = if code.intact { &code.plugin } else { "altered: will be compiled anew" };
            text += &format!("{:>9} bytes  used {:>8} s ago  {name}\n", code.bytes, age_s(code));
        }
        text
    };
    Ok(output::print(text.as_bytes())?)
}

fn age_s(code: &CachedCode) -> u64 {
    code.used.elapsed().unwrap_or_default().as_secs()
}

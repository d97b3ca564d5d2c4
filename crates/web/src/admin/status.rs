//! The state of a server, as people and programs see it.

use crate::{
    counters::{Count, Counters, PluginCounters},
    shared::Shared,
};
use serde_json::{Value, json};

/// A page that shows `/status`, anew each second.
pub(super) const PAGE: &str = include_str!("status.html");

/// What all workers have counted of a plugin.
pub(super) struct PluginTotals {
    pub(super) name: String,
    pub(super) target: &'static str,
    pub(super) version: u64,
    pub(super) quarantined: bool,
    pub(super) calls: u64,
    pub(super) faults: u64,
    pub(super) denied: u64,
    pub(super) nanos: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
}

pub(super) fn totals(shared: &Shared) -> Vec<PluginTotals> {
    let plugins = shared.plugins.all();
    let infos = shared.plugins.host.list().into_iter();
    let all = infos.filter_map(|info| {
        let plugin = plugins.iter().find(|plugin| plugin.name == info.name)?;
        let sum = |part: fn(&PluginCounters) -> &Count| -> u64 {
            plugin.counters.iter().map(|counters| part(counters).get()).sum()
        };
        Some(PluginTotals {
            target: info.target.name(),
            version: info.version,
            quarantined: info.quarantined,
            calls: sum(|it| &it.calls),
            faults: sum(|it| &it.faults),
            denied: sum(|it| &it.denied),
            nanos: sum(|it| &it.nanos),
            bytes_in: sum(|it| &it.bytes_in),
            bytes_out: sum(|it| &it.bytes_out),
            name: info.name,
        })
    });
    all.collect()
}

pub(super) fn plugins(shared: &Shared) -> Vec<Value> {
    let plugins = shared.plugins.all();
    let row = |it: PluginTotals| {
        let config = plugins.iter().find(|plugin| plugin.name == it.name);
        let config = config.map(|plugin| &plugin.config);
        json!({
            "name": it.name,
            "kind": config.map(|config| format!("{:?}", config.kind).to_lowercase()),
            "route": config.and_then(|config| config.route.clone()),
            "type": config.and_then(|config| config.media.clone()),
            "target": it.target,
            "version": it.version,
            "quarantined": it.quarantined,
            "calls": it.calls,
            "faults": it.faults,
            "denied": it.denied,
            "mean_us": if it.calls == 0 { 0.0 } else { it.nanos as f64 / it.calls as f64 / 1e3 },
            "bytes_in": it.bytes_in,
            "bytes_out": it.bytes_out,
        })
    };
    totals(shared).into_iter().map(row).collect()
}

/// One plugin, with what it logged last and was denied.
pub(super) fn plugin(shared: &Shared, name: &str) -> Option<Value> {
    let mut found = plugins(shared).into_iter().find(|it| it["name"] == name)?;
    found["log"] = json!(shared.plugins.host.log(name));
    Some(found)
}

pub(super) fn json(shared: &Shared) -> Value {
    let sum = |part: fn(&Counters) -> &Count| -> u64 {
        shared.counters.iter().map(|counters| part(counters).get()).sum()
    };
    let decisions = |stats: avc::Stats| json!({"hint": stats.hint, "cache": stats.cache, "server": stats.server});
    json!({
        "uptime_s": shared.begun.elapsed().as_secs(),
        "requests": sum(|it| &it.requests),
        "open": sum(|it| &it.open),
        "accepted": sum(|it| &it.accepted),
        "refused": sum(|it| &it.refused),
        "timeouts": sum(|it| &it.timeouts),
        "sent_bytes": sum(|it| &it.sent_bytes),
        "plugins": plugins(shared),
        "decisions": {
            "requests": decisions(shared.manager.stats()),
            "plugins": decisions(shared.plugins.host.avc_stats()),
        },
        "denials": shared.manager.denials(),
        "complaints": shared.complaints(),
    })
}

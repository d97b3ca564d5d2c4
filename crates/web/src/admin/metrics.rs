//! Counters, as Prometheus reads them.

use super::status::{PluginTotals, totals};
use crate::{
    counters::{BUCKETS, Count, Counters},
    shared::Shared,
};
use std::{fmt::Write as _, sync::atomic::Ordering::Relaxed};

pub(super) fn text(shared: &Shared) -> String {
    let mut out = String::new();
    let sum = |part: fn(&Counters) -> &Count| -> u64 {
        shared.counters.iter().map(|counters| part(counters).get()).sum()
    };
    let mut plain = |name: &str, kind: &str, help: &str, value: u64| {
        // Writing to a `String` does not fail.
        let _ = write!(
            out,
            "# HELP dewar_{name} {help}\n# TYPE dewar_{name} {kind}\ndewar_{name} {value}\n"
        );
    };
    plain("connections_total", "counter", "Connections taken.", sum(|it| &it.accepted));
    plain(
        "connections_refused_total",
        "counter",
        "Connections beyond the limit.",
        sum(|it| &it.refused),
    );
    plain("connections_open", "gauge", "Connections now.", sum(|it| &it.open));
    plain("timeouts_total", "counter", "Connections whose time was over.", sum(|it| &it.timeouts));
    plain("sent_bytes_total", "counter", "Bytes of content answered.", sum(|it| &it.sent_bytes));
    plain(
        "log_lines_lost_total",
        "counter",
        "Lines of the log that nobody took.",
        sum(|it| &it.log_lost),
    );
    let images = shared.images.load(Relaxed) as u64;
    plain("image_bytes", "gauge", "Bytes of files kept for plugins, and compressed.", images);
    out += "# HELP dewar_requests_total Requests answered, by status.\n# TYPE dewar_requests_total counter\n";
    for class in 1..6 {
        let count: u64 = shared.counters.iter().map(|it| it.statuses[class].get()).sum();
        let _ = writeln!(out, "dewar_requests_total{{status=\"{class}xx\"}} {count}");
    }
    times(shared, &mut out);
    plugins(shared, &mut out);
    decisions(shared, &mut out);
    out
}

fn times(shared: &Shared, out: &mut String) {
    *out += "# HELP dewar_service_seconds Time from a request's last byte to its answer's.\n\
             # TYPE dewar_service_seconds histogram\n";
    let mut count = 0;
    for bucket in 0..BUCKETS {
        count += shared.counters.iter().map(|it| it.times[bucket].get()).sum::<u64>();
        let up_to = (1_u64 << bucket) as f64 / 1e6;
        let _ = writeln!(out, "dewar_service_seconds_bucket{{le=\"{up_to}\"}} {count}");
    }
    let sum: u64 = shared.counters.iter().map(|it| it.service_us.get()).sum();
    let _ = write!(
        out,
        "dewar_service_seconds_bucket{{le=\"+Inf\"}} {count}\ndewar_service_seconds_sum {}\n\
         dewar_service_seconds_count {count}\n",
        sum as f64 / 1e6
    );
}

fn plugins(shared: &Shared, out: &mut String) {
    let all = totals(shared);
    let mut rows = |name: &str, kind: &str, help: &str, value: &dyn Fn(&PluginTotals) -> f64| {
        let _ =
            write!(out, "# HELP dewar_plugin_{name} {help}\n# TYPE dewar_plugin_{name} {kind}\n");
        for it in &all {
            let _ = writeln!(out, "dewar_plugin_{name}{{plugin=\"{}\"}} {}", it.name, value(it));
        }
    };
    rows("version", "gauge", "Version in use.", &|it| it.version as f64);
    rows(
        "quarantined",
        "gauge",
        "1 if it is not called any more, at all or on something.",
        &|it| f64::from(it.quarantined),
    );
    rows("calls_total", "counter", "Calls.", &|it| it.calls as f64);
    rows("faults_total", "counter", "Calls without a reply.", &|it| it.faults as f64);
    rows("denied_total", "counter", "Requests that policy keeps from it.", &|it| it.denied as f64);
    rows("seconds_total", "counter", "Time in calls.", &|it| it.nanos as f64 / 1e9);
    rows("bytes_in_total", "counter", "Bytes that it was given.", &|it| it.bytes_in as f64);
    rows("bytes_out_total", "counter", "Bytes that it replied.", &|it| it.bytes_out as f64);
}

fn decisions(shared: &Shared, out: &mut String) {
    *out += "# HELP dewar_decisions_total Decisions, by where they were found.\n\
             # TYPE dewar_decisions_total counter\n";
    for (who, stats) in
        [("requests", shared.manager.stats()), ("plugins", shared.plugins.host.avc_stats())]
    {
        for (place, count) in
            [("hint", stats.hint), ("cache", stats.cache), ("server", stats.server)]
        {
            let _ =
                writeln!(out, "dewar_decisions_total{{of=\"{who}\",found=\"{place}\"}} {count}");
        }
    }
}

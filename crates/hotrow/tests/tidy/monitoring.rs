//! The dashboard and the alert rules ask for metrics and labels that exist.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hotrow_gateway::metrics::{Lag, METRICS};

use crate::read;

/// The type of each metric, and the labels that its lines have here.
fn metrics() -> HashMap<String, (String, BTreeSet<String>)> {
    METRICS.pack_known.set(1); // as if the hotrow schema were installed
    METRICS.traffic.of("shop", "ann").packed.inc();
    let owner = Arc::new(());
    METRICS.servers.set("10.0.0.5:5432".to_owned(), &owner, true);
    METRICS.replica_lags.set("10.0.0.6:5432".to_owned(), Lag { milliseconds: 1, bytes: 1 });
    let page = METRICS.render();
    let mut metrics = HashMap::new();
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').unwrap();
            metrics.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, labels)) = line.split_once('{') {
            let base = name.strip_suffix("_bucket").unwrap_or(name);
            let base = base.strip_suffix("_sum").or(base.strip_suffix("_count")).unwrap_or(base);
            let labels = labels.split('}').next().unwrap().split(',');
            let names = labels.map(|label| label.split('=').next().unwrap().to_owned());
            metrics.get_mut(base).unwrap_or_else(|| panic!("{name} has no type")).1.extend(names);
        }
    }
    metrics
}

/// The names of metrics in a text, with what follows each of them.
fn named(text: &str) -> Vec<(String, String)> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = text.match_indices("hotrow_").map(|(start, _)| {
        let name: String = text[start..].chars().take_while(|c| is_part(*c)).collect();
        let rest = text[start + name.len()..].chars().take(200).collect();
        (name, rest)
    });
    names.collect()
}

#[test]
fn the_dashboard_and_the_alerts_use_metrics_and_labels_that_exist() {
    let metrics = metrics();
    let mut used = BTreeSet::new();
    for file in ["packaging/grafana/dashboard.json", "packaging/grafana/alerts.yml"] {
        let text = read(file).replace("\\\"", "\"");
        for (name, rest) in named(&text) {
            let is_histogram = |base: &&str| metrics.get(*base).is_some_and(|(kind, _)| kind == "histogram");
            let part = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let base = part.filter(is_histogram).unwrap_or(&name);
            let (_, labels) =
                metrics.get(base).unwrap_or_else(|| panic!("{file}: there is no metric {name}"));
            used.insert(base.to_owned());
            let selector = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
            for label in selector.split(',').filter_map(|part| part.split(['=', '!']).next()) {
                let exists = labels.contains(label) || label == "instance" || label.is_empty();
                assert!(exists, "{file}: {name} has no label {label}");
            }
        }
    }
    assert!(used.len() > 20, "the files were read: {used:?}");
    for shown in ["hotrow_replica_lag_seconds", "hotrow_replica_fallbacks_total"] {
        assert!(used.contains(shown), "neither the dashboard nor the alerts have {shown}");
    }
}

#[test]
fn alerts_name_a_gateway_that_is_down_and_an_outage_without_clients() {
    let alerts = read("packaging/grafana/alerts.yml");
    for rule in ["up{job=\"hotrow\"} == 0", "absent(up{job=\"hotrow\"})", "expr: hotrow_server_up == 0"] {
        assert!(alerts.contains(rule), "{rule}");
    }
}

#[test]
fn the_dashboard_is_json_whose_panels_do_not_overlap() {
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("packaging/grafana/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let place = |panel: &serde_json::Value| {
        ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("each panel has a place"))
    };
    for (number, panel) in panels.iter().enumerate() {
        let [x, y, width, height] = place(panel);
        assert!(x + width <= 24, "{} is beside the board", panel["title"]);
        for other in &panels[..number] {
            let [left, top, wide, high] = place(other);
            let is_beside = x + width <= left || left + wide <= x;
            let is_above = y + height <= top || top + high <= y;
            assert!(is_beside || is_above, "{} covers {}", panel["title"], other["title"]);
        }
    }
}

#[test]
fn every_metric_is_documented() {
    let page = read("docs/operating.md");
    for name in metrics().keys() {
        assert!(page.contains(name), "docs/operating.md does not name {name}");
    }
}

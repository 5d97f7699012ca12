//! The hosts that have served, as a gateway hands them over to its successor: a text for an environment variable.

use hotrow_connect::config::hosts::ServedLast;
use hotrow_core::limits;
use hotrow_core::replica::History;
use serde::{Deserialize, Serialize};

use super::routes::Routes;

#[derive(Serialize, Deserialize)]
struct Entry {
    server: String,
    address: String,
    cluster: Option<String>,
    timeline: Option<u32>,
}

impl Routes {
    /// The hosts that have served.
    pub fn hand_over(&self) -> String {
        let entries = self.servers().filter_map(|server| {
            let ServedLast { address, history } = server.upstream.hosts.served_last()?;
            let (cluster, timeline) = history.map(|history| (history.cluster, history.timeline)).unzip();
            Some(Entry { server: server.name.clone(), address, cluster, timeline })
        });
        let mut lines = String::new();
        for entry in entries {
            let line = serde_json::to_string(&entry).unwrap_or_default();
            if lines.len() + line.len() < limits::HANDED_OVER_BYTES_MAX {
                lines.push_str(&line);
                lines.push('\n');
            }
        }
        lines
    }

    /// Takes over what the previous gateway has handed over. What cannot be read is left out: it may be of another version.
    pub fn take_over(&self, lines: &str) {
        for Entry { server, address, cluster, timeline } in
            lines.lines().filter_map(|line| serde_json::from_str(line).ok())
        {
            let history = cluster.zip(timeline).map(|(cluster, timeline)| History { cluster, timeline });
            if let Some(here) = self.servers().find(|here| here.name == server) {
                here.upstream.hosts.inherit(&ServedLast { address, history });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hotrow_connect::net::Address;

    use super::*;

    fn routes() -> Routes {
        Routes::single("host=a,b user=ann".parse().unwrap(), Vec::new())
    }

    #[test]
    fn the_next_gateway_begins_with_the_host_that_has_served() {
        let (before, after) = (routes(), routes());
        assert_eq!(before.hand_over(), "");
        let history = History { cluster: "7".to_owned(), timeline: 2 };
        let hosts = |routes: &Routes| routes.first().server.upstream.hosts.clone();
        hosts(&before).served(&Address::Tcp("b".into(), 5432), Some(&history));
        after.take_over(&format!("{}not JSON\n", before.hand_over()));
        assert_eq!(hosts(&after).served_last(), hosts(&before).served_last());
        assert_eq!(after.hand_over(), before.hand_over());
    }
}

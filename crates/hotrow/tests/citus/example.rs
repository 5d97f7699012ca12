//! The files of `examples/citus`, without containers: the settings load, the SQL runs, and the gateway packs statements on nodes.

use std::path::Path;
use std::process::Command;

use hotrow_postgres::Cluster;
use hotrow_testkit::{Gateway, citus, config, connect, until};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/citus");

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(FOLDER).join(name)).unwrap()
}

/// The values that Compose reads, if Python can read YAML here.
fn compose() -> Option<serde_json::Value> {
    let program = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let path = Path::new(FOLDER).join("compose.yaml");
    let has_yaml = Command::new("python3")
        .args(["-c", "import yaml"])
        .output()
        .is_ok_and(|tried| tried.status.success());
    if !has_yaml {
        eprintln!("not run: Python with PyYAML is not installed (Debian's package python3-yaml)");
        return None;
    }
    let output = Command::new("python3").args(["-c", program]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_compose_file_names_files_that_exist_and_nodes_of_the_cluster() {
    let Some(compose) = compose() else { return };
    let services = compose["services"].as_object().unwrap();
    for service in services.values() {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let path = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(Path::new(FOLDER).join(path).is_file(), "{path}");
        }
    }
    let build = &services["gateway"]["build"];
    let context = Path::new(FOLDER).join(build["context"].as_str().unwrap());
    assert!(context.join(build["dockerfile"].as_str().unwrap()).is_file());
    for node in ["coordinator", "worker1", "worker2"] {
        assert_eq!(services[node]["image"], services["setup"]["image"], "{node}");
        assert!(file("cluster.sql").contains(&format!("'{node}', 5432")), "{node}");
    }
    assert!(file("hotrow.toml").contains("@coordinator:5432/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_load_and_the_sql_makes_a_cluster_with_lanes_to_nodes() {
    let Some(binaries) = citus() else { return };
    let node = |label: &str| Cluster::node(&binaries, label, |builder| builder).unwrap();
    let nodes = ["coordinator", "worker1", "worker2"].map(|name| (name, node(name)));
    let here = |text: String| {
        nodes.iter().fold(text, |text, (name, server)| {
            let local = format!("127.0.0.1', {}", server.port());
            text.replace(&format!("{name}', 5432"), &local).replace(
                &format!("postgres:example@{name}:5432"),
                &format!("postgres@127.0.0.1:{}", server.port()),
            )
        })
    };
    let direct = connect(&config(nodes[0].1.port())).await;
    direct.batch_execute(&here(file("cluster.sql"))).await.unwrap();
    direct.batch_execute(&file("tables.sql")).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = here(file("hotrow.toml")).replace("/etc/hotrow/", &format!("{FOLDER}/"));
    let path = folder.path().join("hotrow.toml");
    std::fs::write(&path, settings).unwrap();
    let hba = format!("{FOLDER}/hba.conf");
    let options = ["--config", path.to_str().unwrap(), "--hba-file", &hba];
    let gateway = Gateway::in_front_of(&nodes[0].1.url(), &options);
    let client = connect(gateway.config().password("example")).await;
    until("the update runs in a lane to a node", async || {
        let updated = client.execute("update accounts set balance = balance + 1 where id = 7", &[]).await;
        assert_eq!(updated.unwrap(), 1);
        gateway.metric("packed_units_total") > 0
    })
    .await;
    let refused = hotrow_testkit::try_connect(gateway.config().password("wrong")).await;
    assert_eq!(refused.err().as_ref().map(hotrow_testkit::sqlstate), Some("28P01"));
}

//! The systemd units, and the commands of the documentation that install them, fit each other.

use crate::read;

/// The values of a setting of a unit, in order.
fn values(unit: &str, name: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_service_runs_as_a_user_whose_group_can_read_protected_files() {
    let (unit, page) = (read("packaging/hotrow.service"), read("docs/operating.md"));
    assert_eq!(values(&unit, "User"), ["hotrow"]);
    assert_eq!(values(&unit, "Group"), ["hotrow"]);
    for absent in ["DynamicUser", "ConfigurationDirectory"] {
        assert!(values(&unit, absent).is_empty(), "{absent} makes files of another user");
    }
    for command in [
        "useradd --system --user-group",
        "install -d -o root -g hotrow -m 0750 /etc/hotrow",
        "install -o root -g hotrow -m 0640",
        "/etc/systemd/system/",
    ] {
        assert!(page.contains(command), "docs/operating.md does not say: {command}");
    }
}

#[test]
fn a_reload_of_the_service_checks_the_files_of_its_start_first() {
    let unit = read("packaging/hotrow.service");
    let [start] = values(&unit, "ExecStart").try_into().unwrap();
    let [check, reload] = values(&unit, "ExecReload").try_into().unwrap();
    assert_eq!(check, start.replace("hotrow serve", "hotrow serve --check"));
    assert!(reload.contains("-HUP $MAINPID"));
}

/// systemd does not wait for a process that it has not started. `make test-deb` tries it.
#[test]
fn a_stop_of_the_service_waits_for_a_successor() {
    let [stop] = values(&read("packaging/hotrow.service"), "ExecStop").try_into().unwrap();
    assert!(stop.contains("kill $MAINPID && while kill -0 $MAINPID"), "{stop}");
}

#[test]
fn sockets_below_run_hotrow_outlive_a_restart_of_the_service() {
    let unit = read("packaging/hotrow.service");
    assert_eq!(values(&unit, "RuntimeDirectory"), ["hotrow"]);
    assert_eq!(values(&unit, "RuntimeDirectoryPreserve"), ["yes"]);
}

#[test]
fn the_service_keeps_its_restrictions() {
    let unit = read("packaging/hotrow.service");
    for (name, value) in [
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("RemoveIPC", "yes"),
        ("RestrictSUIDSGID", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("UMask", "0077"),
    ] {
        assert_eq!(values(&unit, name), [value], "{name}");
    }
}

/// The words of a file that begin as the environment variables of the gateway do.
fn variables(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("HOTROW_"));
    words.collect()
}

#[test]
fn the_image_the_chart_and_compose_set_variables_that_exist() {
    let settings = read("crates/hotrow/src/settings.rs");
    for file in [
        "packaging/Containerfile",
        "packaging/compose/compose.yaml",
        "packaging/chart/templates/deployment.yaml",
        "packaging/chart/values.yaml",
    ] {
        let text = read(file);
        let used = variables(&text);
        assert!(!used.is_empty(), "{file} sets no variable");
        for name in used {
            let exists = name == "HOTROW_CONFIG" || settings.contains(&format!("\"{name}\""));
            assert!(exists, "{file}: {name} is not a setting");
        }
    }
}

#[test]
fn the_chart_reserves_settings_that_exist() {
    let schema: serde_json::Value =
        serde_json::from_str(&read("packaging/chart/values.schema.json")).unwrap();
    let reserved = schema["properties"]["settings"]["propertyNames"]["not"]["enum"].as_array().unwrap();
    let settings = read("crates/hotrow/src/settings.rs");
    for name in reserved.iter().map(|name| name.as_str().unwrap()) {
        let is_table = settings.contains(&format!("pub {name}: Vec<"));
        assert!(is_table || settings.contains(&format!("\n    {name} \"HOTROW_")), "{name} is not a setting");
    }
}

#[test]
fn the_image_and_the_chart_have_the_same_user_and_probe() {
    let (image, chart) = (read("packaging/Containerfile"), read("packaging/chart/templates/deployment.yaml"));
    assert!(image.contains("USER 65532:65532\n"));
    for line in ["runAsUser: 65532", "runAsGroup: 65532", "fsGroup: 65532"] {
        assert!(chart.contains(line), "the chart does not have {line}");
    }
    assert!(image.contains("CMD [\"/usr/bin/hotrow\", \"health\"]"));
    assert_eq!(chart.matches("command: [/usr/bin/hotrow, health]").count(), 2, "live and ready");
    assert!(image.contains("distroless"), "the probe needs no shell, so neither does the image");
}

/// The number after `name: ` in a file of YAML.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}")).trim_end_matches('s').parse().unwrap()
}

#[test]
fn a_container_is_not_killed_while_its_clients_finish() {
    let values = read("packaging/chart/values.yaml");
    let (before, drain) = (number(&values, "preStopSeconds"), number(&values, "drainSeconds"));
    assert!(
        before > drain,
        "Services learn in {before} s that the pod stops, and its clients have {drain} s"
    );
    let default = hotrow_core::limits::DRAIN_TIMEOUT_MS / 1000;
    assert!(number(&read("packaging/compose/compose.yaml"), "stop_grace_period") > default);
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = read("packaging/chart/Chart.yaml");
    for line in [
        concat!("version: ", env!("CARGO_PKG_VERSION")),
        concat!("appVersion: \"", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(chart.lines().any(|one| one.starts_with(line)), "Chart.yaml does not have {line}");
    }
}

#[test]
fn compose_mounts_files_that_exist_and_prometheus_has_the_token() {
    let folder = "packaging/compose";
    let compose = read(&format!("{folder}/compose.yaml"));
    let mounts = compose.lines().filter_map(|line| line.trim().strip_prefix("- ")?.strip_suffix(":ro"));
    let mounts: Vec<&str> = mounts.filter_map(|mount| mount.split(':').next()).collect();
    assert!(mounts.len() > 7, "{mounts:?}");
    for file in mounts {
        assert!(
            crate::root().join(folder).join(file).is_file(),
            "compose.yaml mounts {file}, which does not exist"
        );
    }
    let token = read(&format!("{folder}/metrics-token"));
    assert_eq!(read(&format!("{folder}/tokens")), format!("read-only {token}"));
    assert!(
        read(&format!("{folder}/prometheus.yaml")).contains("job_name: hotrow"),
        "the alerts name this job"
    );
}

#[test]
fn the_workflow_of_a_release_runs_the_script_that_anybody_can_run() {
    assert!(read(".github/workflows/release.yml").contains("run: packaging/release.sh\n"));
    let script = read("packaging/release.sh");
    for part in ["deb.sh", "rpm.sh", "sbom.py", "packaging/chart", "sha256sum"] {
        assert!(script.contains(part), "release.sh does not use {part}");
    }
}

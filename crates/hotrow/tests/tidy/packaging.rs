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

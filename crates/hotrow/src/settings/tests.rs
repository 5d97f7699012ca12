//! The settings: their list, which source wins, and the errors of wrong ones.

use super::*;

fn with_upstream() -> Settings {
    Settings { upstream: Some("postgres://ann@127.0.0.1/shop".to_owned()), ..Settings::default() }
}

#[test]
fn there_are_at_most_38_settings_and_each_has_a_unit() {
    let table = Settings::table();
    assert!(table.len() <= 38);
    assert!(table.iter().all(|setting| !setting.unit.is_empty() && !setting.meaning.is_empty()));
    for (setting, variable) in table.iter().zip(Settings::variables()) {
        assert_eq!(variable, format!("HOTROW_{}", setting.name.to_uppercase()));
    }
}

#[test]
fn flags_win_over_the_file() {
    let directory = std::env::temp_dir().join(format!("hotrow-settings-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("hotrow.toml");
    std::fs::write(&path, "lanes = 2\nheld_wait_ms = 7\n").unwrap();
    let settings = Settings { lanes: Some(3), ..with_upstream() };
    let config = settings.resolve(Some(&path)).unwrap().config;
    assert_eq!((config.lanes, config.held_wait), (3, Duration::from_millis(7)));
    std::fs::write(&path, "lane = 2\n").unwrap();
    let error = with_upstream().resolve(Some(&path)).err().unwrap().to_string();
    assert!(error.contains("hotrow.toml:1: unknown field `lane`"), "{error}");
    assert!(error.contains("hotrow help config"), "{error}");
    std::fs::write(&path, "pack = true\nlanes = 0\n").unwrap();
    let error = with_upstream().resolve(Some(&path)).err().unwrap().to_string();
    assert!(error.contains("hotrow.toml:2: lanes is 0"), "{error}");
    std::fs::write(&path, "pack = true\nheld_wait_ms = \"5s\"\n").unwrap();
    let error = with_upstream().resolve(Some(&path)).err().unwrap().to_string();
    assert!(
        error.contains(":2: held_wait_ms: ") && error.contains("a whole number of milliseconds"),
        "{error}"
    );
    std::fs::write(&path, "pack = true\nlanes = 0\n").unwrap();
    let flags = Settings { lanes: Some(0), ..with_upstream() };
    let error = flags.resolve(Some(&path)).err().unwrap().to_string();
    assert!(!error.contains("hotrow.toml"), "the flag is wrong, not the file: {error}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn settings_that_need_a_restart_are_reported() {
    let table = Settings::table();
    for name in NEEDS_RESTART {
        assert!(table.iter().any(|setting| setting.name == name), "{name}");
    }
    let resolved = |settings: Settings| settings.resolve(None).unwrap();
    let before = resolved(with_upstream());
    let settings = Settings { workers: Some(2), lanes: Some(2), ..with_upstream() };
    assert_eq!(before.needs_restart_for(&resolved(settings)), ["workers"]);
    assert!(before.needs_restart_for(&resolved(with_upstream())).is_empty());
}

#[test]
fn a_wrong_setting_is_refused_with_its_remedy() {
    let message = |settings: Settings| settings.resolve(None).err().unwrap().to_string();
    assert!(message(Settings::default()).contains("--upstream"));
    assert!(message(Settings { lanes: Some(0), ..with_upstream() }).contains("1 to 64"));
    let format = message(Settings { log_format: Some("xml".into()), ..with_upstream() });
    assert!(format.contains("text or json"), "{format}");
    let http = |address: &str| message(Settings { http: Some(address.into()), ..with_upstream() });
    assert!(http("8080").contains("HOST:PORT"));
    assert!(http("0.0.0.0:8080").contains("--http-token-file"));
}

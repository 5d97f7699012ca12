//! Finds out whether the settings file has a password that other users of this machine can read.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hotrow_connect::config::UpstreamConfig;
use hotrow_mysql_client::Upstream;

use super::Settings;

/// A warning about the file with these settings, if it has a password and every user of this machine can read it.
pub fn warning(path: &Path, in_file: &Settings) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o004 != 0 && has_password(in_file)).then(|| {
        format!(
            "the settings file {} has a password, and every user of this machine can read it (mode {:04o}); run chmod 640, and chgrp to the group of the gateway's user",
            path.display(),
            mode & 0o7777
        )
    })
}

fn has_password(settings: &Settings) -> bool {
    let single = settings.upstream.iter().chain(&settings.replicas).map(String::as_str);
    let tables = settings.server.iter();
    let of_tables = tables.flat_map(|server| [Some(&server.url), server.replicas.as_ref()]);
    let urls = single.chain(of_tables.flatten().map(|url| url.text()));
    let in_url = |url: &str| {
        url.parse::<UpstreamConfig>().is_ok_and(|url| url.password.is_some())
            || url.parse::<Upstream>().is_ok_and(|url| !url.password.bytes().is_empty())
    };
    urls.into_iter().any(in_url) || settings.database.iter().any(|database| database.password.is_some())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::super::AnyResolved;
    use super::*;

    #[test]
    fn a_file_with_a_password_that_others_can_read_gets_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotrow.toml");
        let warned = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match Settings::default().resolve_any(Some(&path)).unwrap_or_else(|error| panic!("{error}")) {
                AnyResolved::Postgres(resolved) => resolved.warning,
                AnyResolved::Mysql(resolved) => resolved.warning,
            }
        };
        let [with, without] = ["host=a user=ann password=p4ss", "host=a user=ann"];
        let single = |url: &str| format!("upstream = \"{url}\"\n");
        let tables = |url: &str, password: &str| {
            format!(
                "[[server]]\nname = \"s\"\nurl = \"{url}\"\n[[database]]\nname = \"*\"\nserver = \"s\"\n{password}"
            )
        };
        let warning = warned(&single(with), 0o644).unwrap();
        assert!(warning.contains("hotrow.toml") && warning.contains("0644") && !warning.contains("p4ss"));
        assert!(warned("upstream = \"postgres://ann:p4ss@a/shop\"\n", 0o604).is_some());
        assert!(warned("upstream = \"mysql://ann:p4ss@a/shop\"\n", 0o604).is_some());
        assert!(warned("upstream = \"mysql://ann@a/shop\"\n", 0o604).is_none());
        assert!(warned(&tables(with, ""), 0o644).is_some());
        assert!(warned(&tables(without, "user = \"x\"\npassword = \"p4ss\"\n"), 0o644).is_some());
        for (text, mode) in [
            (single(with), 0o640),
            (single(with), 0o600),
            (single(without), 0o644),
            (tables(without, ""), 0o644),
        ] {
            assert_eq!(warned(&text, mode), None, "{text} {mode:o}");
        }
    }
}

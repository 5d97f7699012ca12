//! Downloads server binaries from Maven Central for machines without PostgreSQL: one version, one pinned checksum
//! for each platform, one cached copy. It never runs anything that does not match its checksum.
use crate::{Binaries, Error, Progress, home, unpack};
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};
use std::env::consts::{ARCH, OS};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::tls::{RootCerts, TlsConfig};

const REPOSITORY: &str = "https://repo1.maven.org/maven2";

/// The version of the artifacts. The version of PostgreSQL is the same without the last number.
const VERSION: &str = "17.11.0";

/// Each platform with its names in Rust and in the artifacts, and the SHA-256 of its jar.
const RELEASES: [(&str, &str, &str, &str); 4] = [
    ("linux", "x86_64", "linux-amd64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    ("linux", "aarch64", "linux-arm64v8", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
    ("macos", "x86_64", "darwin-amd64", "d464ff178e9860ba204662ac23fa547504b7fd392392ff2fb92e3fd73b5bdb64"),
    (
        "macos",
        "aarch64",
        "darwin-arm64v8",
        "a1c2786acb0c398f9b2d76806fc52f5dc8b222cbc8e9383a9b9702084daaf3a5",
    ),
];

/// Four times the largest jar (macOS, 62 MB), so that a broken mirror cannot fill the disk.
const LARGEST: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(900);

/// An archive and its expected checksum.
struct Artifact {
    repository: String,
    platform: &'static str,
    sha256: &'static str,
}

/// The pinned binaries for this machine, from the cache or downloaded into it.
pub(crate) fn pinned(progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
    let (_, _, platform, sha256) = *RELEASES
        .iter()
        .find(|(os, arch, _, _)| (*os, *arch) == (OS, ARCH))
        .ok_or_else(|| Error::Platform { platform: format!("{OS} on {ARCH}") })?;
    let repository = std::env::var("HOTROW_MAVEN_URL").unwrap_or_else(|_| REPOSITORY.to_owned());

    let mut tried = Vec::new();
    for home in home::candidates() {
        match home::open(&home, "binaries") {
            Ok(cache) => return Artifact { repository, platform, sha256 }.cached_in(&cache, progress),
            Err(error) => tried.push(format!("{}: {error}", home.display())),
        }
    }
    Err(Error::NoHome { tried: tried.join("; ") })
}

impl Artifact {
    /// Only one download runs at a time: a second process finds the result of the first.
    fn cached_in(&self, cache: &Path, progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
        let home = cache.join(format!("postgresql-{VERSION}-{}", self.platform));
        if home.is_dir() {
            return Binaries::in_dir(&home.join("bin"));
        }
        let turn = cache.join(".hotrow.lock");
        let _turn = File::create(&turn)
            .and_then(|file| Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into()))
            .map_err(Error::folder(&turn, "locked"))?;
        if home.is_dir() {
            return Binaries::in_dir(&home.join("bin"));
        }

        let attempt = Attempt::new(cache.join("unfinished"))?;
        let (jar, tree) = (attempt.path.join("server.jar"), attempt.path.join("tree"));
        self.download(&jar, progress)?;
        unpack::jar(&jar, &tree).map_err(|error| Error::Archive { reason: error.to_string() })?;
        // This check precedes the rename, so binaries that cannot run here (for example, because of another libc)
        // are not kept.
        Binaries::in_dir(&tree.join("bin"))?;
        fs::rename(&tree, &home).map_err(Error::folder(&home, "created"))?;
        Binaries::in_dir(&home.join("bin"))
    }

    fn url(&self) -> String {
        let name = format!("embedded-postgres-binaries-{}", self.platform);
        let repository = self.repository.trim_end_matches('/');
        format!("{repository}/io/zonky/test/postgres/{name}/{VERSION}/{name}-{VERSION}.jar")
    }

    /// Writes the jar to `file`. Returns an error if its checksum is wrong.
    fn download(&self, file: &Path, mut progress: impl FnMut(Progress)) -> Result<(), Error> {
        let url = self.url();
        let failed = |reason: String| Error::Download { url: url.clone(), reason };
        let mut response = agent().get(&url).call().map_err(|error| failed(error.to_string()))?;
        let total = response.body().content_length();
        let mut body = response.body_mut().with_config().limit(LARGEST).reader();

        let mut out = File::create(file).map_err(Error::folder(file, "created"))?;
        let (mut hash, mut received, mut chunk) = (Sha256::new(), 0, vec![0; 64 << 10]);
        loop {
            let length = body.read(&mut chunk).map_err(|error| failed(error.to_string()))?;
            if length == 0 {
                break;
            }
            hash.update(&chunk[..length]);
            out.write_all(&chunk[..length]).map_err(Error::folder(file, "written"))?;
            received += length as u64;
            progress(Progress { received, total });
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != self.sha256 {
            return Err(Error::Checksum { url, expected: self.sha256.to_owned(), found });
        }
        Ok(())
    }
}

/// Uses the system's certificates, so that a company's own certificate authority works.
fn agent() -> ureq::Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(DOWNLOAD_TIMEOUT))
        .build()
        .into()
}

/// The folder of a download under way. It is removed at the end, regardless of the result.
struct Attempt {
    path: PathBuf,
}

impl Attempt {
    /// The caller holds the lock, so an existing folder belongs to a process that was killed.
    fn new(path: PathBuf) -> Result<Attempt, Error> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::folder(&path, "removed")(error));
            }
            _ => {}
        }
        fs::create_dir(&path).map_err(Error::folder(&path, "created"))?;
        Ok(Attempt { path })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests;

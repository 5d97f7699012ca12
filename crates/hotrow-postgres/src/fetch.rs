//! Downloads server binaries from Maven Central for machines without PostgreSQL, and for tests of several versions: one release of
//! each major version, one pinned checksum for each platform, one cached copy. It never runs anything that does not match its
//! checksum.
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

/// Each platform with its names in Rust and in the artifacts.
const PLATFORMS: [(&str, &str, &str); 4] = [
    ("linux", "x86_64", "linux-amd64"),
    ("linux", "aarch64", "linux-arm64v8"),
    ("macos", "x86_64", "darwin-amd64"),
    ("macos", "aarch64", "darwin-arm64v8"),
];

/// The major version for machines without PostgreSQL. All platforms have it.
const DEFAULT: u32 = 17;

/// The version of the artifacts, the platform, and the SHA-256 of the jar, of one release for each major version. The version of
/// PostgreSQL is the same without the last number.
const RELEASES: [(&str, &str, &str); 15] = [
    ("14.24.0", "linux-amd64", "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4"),
    ("15.19.0", "linux-amd64", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
    ("15.19.0", "linux-arm64v8", "95baf4bd4af31b91b3050118df59388ed0064756b556b850669e0300aa7b9911"),
    ("15.19.0", "darwin-amd64", "11d0a55e26f4c74c6ea6c72c5e4e6ac959b29a06cc6da5e5ac8162f9fd9f8055"),
    ("15.19.0", "darwin-arm64v8", "9bfc44d3f50298bb14fa125da4b67a36f382f8134ab2fc95349b72bcd5ec4e87"),
    ("16.15.0", "linux-amd64", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"),
    ("16.15.0", "linux-arm64v8", "f846a9989d686b7977d6eca9bc9d8b2b69e3f70c7eb60e032197d9c574a6136c"),
    ("16.15.0", "darwin-amd64", "1229188b99515d2160d5cb6222bc96d9c5f3a248268df3bc2dfe0047e6c233d8"),
    ("16.15.0", "darwin-arm64v8", "65b953905f0a4d46030767a6b44a52360170d69a7985f1b02aa435f2f6256a83"),
    ("17.11.0", "linux-amd64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    ("17.11.0", "linux-arm64v8", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
    ("17.11.0", "darwin-amd64", "d464ff178e9860ba204662ac23fa547504b7fd392392ff2fb92e3fd73b5bdb64"),
    ("17.11.0", "darwin-arm64v8", "a1c2786acb0c398f9b2d76806fc52f5dc8b222cbc8e9383a9b9702084daaf3a5"),
    ("18.6.0", "linux-amd64", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
    ("18.6.0", "darwin-amd64", "690941008aac9ee360820fde9bb7870a4f3dcac5e9e2f9e45e42333a436ad0f9"),
];

/// Four times the largest jar (macOS, 62 MB), so that a broken mirror cannot fill the disk.
const LARGEST: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(900);

/// An archive and its expected checksum.
struct Artifact {
    repository: String,
    version: &'static str,
    platform: &'static str,
    sha256: &'static str,
}

/// The pinned binaries for this machine, from the cache or downloaded into it.
pub(crate) fn pinned(progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
    of_version(DEFAULT, progress)
}

/// The same for a major version.
pub(crate) fn of_version(version: u32, progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
    let (version, platform, sha256) = release(version, OS, ARCH)
        .ok_or_else(|| Error::Platform { platform: format!("{OS} on {ARCH}"), version })?;
    let repository = std::env::var("HOTROW_MAVEN_URL").unwrap_or_else(|_| REPOSITORY.to_owned());

    let mut tried = Vec::new();
    for home in home::candidates() {
        match home::open(&home, "binaries") {
            Ok(cache) => {
                return Artifact { repository, version, platform, sha256 }.cached_in(&cache, progress);
            }
            Err(error) => tried.push(format!("{}: {error}", home.display())),
        }
    }
    Err(Error::NoHome { tried: tried.join("; ") })
}

/// The pinned release of this major version for a platform, by its names in Rust.
fn release(version: u32, os: &str, arch: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let (_, _, platform) =
        PLATFORMS.into_iter().find(|(its_os, its_arch, _)| (*its_os, *its_arch) == (os, arch))?;
    RELEASES.into_iter().find(|(pinned, its_platform, _)| {
        pinned.split('.').next() == Some(version.to_string().as_str()) && *its_platform == platform
    })
}

impl Artifact {
    /// Only one download runs at a time: a second process finds the result of the first.
    fn cached_in(&self, cache: &Path, progress: impl FnMut(Progress)) -> Result<Binaries, Error> {
        let home = cache.join(format!("postgresql-{}-{}", self.version, self.platform));
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
        let version = self.version;
        format!("{repository}/io/zonky/test/postgres/{name}/{version}/{name}-{version}.jar")
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

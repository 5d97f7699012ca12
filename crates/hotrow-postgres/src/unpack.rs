//! Unpacks an archive of Maven Central: a jar (zip) with one `.txz` (xz, tar) that contains `bin`, `lib` and
//! `share`. It is called only after the checksum of the archive was verified.
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Unpacks the jar's server into `tree`, which must not exist yet. The files are readable for the account that
/// servers run as.
pub(crate) fn jar(jar: &Path, tree: &Path) -> Result<(), Box<dyn Error>> {
    let mut zip = zip::ZipArchive::new(File::open(jar)?)?;
    let found = zip.file_names().flatten().find(|name| name.ends_with(".txz"));
    let name = found.ok_or("it has no .txz")?.into_owned();
    let tar = lzma_rust2::XzReader::new(zip.by_name(&name)?, false);

    fs::create_dir(tree)?;
    let mut archive = tar::Archive::new(tar);
    // The files get the current time, so that programs that clean caches by age do not remove them.
    archive.set_preserve_mtime(false);
    archive.unpack(tree)?;

    // The archive has no entries for some directories, so the umask determined their permissions.
    for entry in fs::read_dir(tree)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    fs::set_permissions(tree, Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// A jar like the real ones: a manifest and a `.txz` whose `bin` contains these programs.
    pub(crate) fn fake_jar(programs: &[(&str, &str)]) -> Vec<u8> {
        let xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
        let mut tar = tar::Builder::new(xz);
        for (name, text) in programs {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, format!("bin/{name}"), text.as_bytes()).unwrap();
        }
        let txz = tar.into_inner().unwrap().finish().unwrap();

        let mut jar = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        for (name, bytes) in
            [("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n".as_slice()), ("server.txz", &txz)]
        {
            jar.start_file(name, options).unwrap();
            jar.write_all(bytes).unwrap();
        }
        jar.finish().unwrap().into_inner()
    }

    #[test]
    fn the_programs_are_unpacked_and_can_run() {
        let root = tempfile::tempdir().unwrap();
        let (file, tree) = (root.path().join("a.jar"), root.path().join("tree"));
        fs::write(&file, fake_jar(&[("postgres", "#!/bin/sh\n"), ("initdb", "")])).unwrap();
        jar(&file, &tree).unwrap();
        assert_eq!(fs::read_to_string(tree.join("bin/postgres")).unwrap(), "#!/bin/sh\n");
        for path in ["bin/postgres", "bin/initdb", "bin", ""] {
            assert_eq!(fs::metadata(tree.join(path)).unwrap().permissions().mode() & 0o777, 0o755, "{path}");
        }
    }

    #[test]
    fn another_kind_of_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.jar");
        fs::write(&file, "<html>not found</html>").unwrap();
        assert!(jar(&file, &root.path().join("tree")).is_err());

        let mut empty = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        empty.add_directory("META-INF", zip::write::SimpleFileOptions::default()).unwrap();
        fs::write(&file, empty.finish().unwrap().into_inner()).unwrap();
        assert!(jar(&file, &root.path().join("tree")).unwrap_err().to_string().contains("no .txz"));
    }
}

//! The folder of a run: its totals, its report, and the evidence of a fault.

use super::answers::Record;
use super::totals::{FORMAT, Totals};
use hotrow_bench::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file with the totals.
const STATE: &str = "state.json";

/// A run's folder.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Opens or creates the folder.
    pub fn open(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(Error::file("create", path))?;
        Ok(Self { path: std::path::absolute(path).map_err(Error::file("find", path))? })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The totals of the rounds that were checked, if the run has begun.
    pub fn totals(&self) -> Result<Option<Totals>, Error> {
        let path = self.path.join(STATE);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let totals: Totals = serde_json::from_str(&text)
            .map_err(|error| Error::file("read", &path)(std::io::Error::other(error)))?;
        if totals.format != FORMAT {
            let reason =
                format!("its format is {}, this version has {FORMAT}; use another --folder", totals.format);
            return Err(Error::file("continue", &path)(std::io::Error::other(reason)));
        }
        Ok(Some(totals))
    }

    /// Writes the totals.
    pub fn keep(&self, totals: &Totals) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(totals).expect("the totals are numbers and texts");
        self.write(STATE, &text)
    }

    /// Writes a file so that it has its old or its new text after a crash.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(Error::file("write", &path))
    }

    /// Writes the evidence of a fault into a folder of its own: the message, the logs, and each request with its answer.
    pub fn keep_evidence(
        &self,
        fault: &str,
        logs: &[(String, String)],
        records: &[Vec<Record>],
    ) -> Result<PathBuf, Error> {
        let folder = self.path.join("evidence");
        fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
        let mut requests = String::from("client,number,kind,key,outcome,value,version\n");
        for (client, records) in (1..).zip(records) {
            for (number, record) in (1..).zip(records) {
                let Record { kind, key, outcome, values: [value, version] } = record;
                requests += &format!("{client},{number},{kind:?},{key},{outcome:?},{value},{version}\n");
            }
        }
        let fault = format!("{fault}\n");
        let files = [("fault.txt", fault.as_str()), ("requests.csv", requests.as_str())].into_iter();
        for (name, text) in files.chain(logs.iter().map(|(name, text)| (name.as_str(), text.as_str()))) {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Error::file("write", &path))?;
        }
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::{RunFolder, STATE};
    use crate::billion::plan::Goal;
    use crate::billion::totals::Totals;

    #[test]
    fn totals_are_read_back_and_other_formats_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(&parent.path().join("run")).unwrap();
        assert_eq!(folder.totals().unwrap(), None);
        let mut totals = Totals::new(Goal { statements: 5, kills: 1 }, "2026-01-31".into());
        for rounds in 1..3 {
            totals.rounds = rounds;
            folder.keep(&totals).unwrap();
            assert_eq!(folder.totals().unwrap().unwrap(), totals);
        }
        totals.format = 0;
        folder.keep(&totals).unwrap();
        assert!(folder.totals().unwrap_err().to_string().contains("another --folder"));
        std::fs::write(folder.path().join(STATE), "{").unwrap();
        folder.totals().unwrap_err();
    }

    #[test]
    fn evidence_has_every_request() {
        use crate::billion::answers::{Outcome, Record};
        use crate::billion::work::Kind;
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path()).unwrap();
        let record = Record { kind: Kind::Update, key: 1, outcome: Outcome::Done, values: [7, 0] };
        let logs = [("server.log".to_owned(), "killed".to_owned())];
        let evidence = folder.keep_evidence("two values", &logs, &[vec![], vec![record]]).unwrap();
        let read = |name| std::fs::read_to_string(evidence.join(name)).unwrap();
        assert_eq!(read("fault.txt"), "two values\n");
        assert!(read("requests.csv").ends_with("\n2,1,Update,1,Done,7,0\n"));
        assert_eq!(read("server.log"), "killed");
    }
}

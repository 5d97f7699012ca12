//! `hotrow convert`: settings of this program from the configuration of another pooler. The modules below decide; this
//! file reads and writes files.

mod access;
mod advice;
mod ini;
mod output;
mod pgbouncer;
mod pgcat;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hotrow_auth::{Hba, Secret, Users};
use output::{ACCESS_FILE, Converted, USERS_FILE};

/// `hotrow convert`
#[derive(clap::Args)]
#[command(
    after_help = "Standard error has one line for each setting that has no counterpart or works differently, with what to do.\n\
    With --output, the access file and the users file that the settings name are written beside them.\n\n\
    Example: hotrow convert /etc/pgbouncer/pgbouncer.ini --output /etc/hotrow/hotrow.toml\n\
    then: hotrow serve --config /etc/hotrow/hotrow.toml"
)]
pub struct Args {
    /// pgbouncer.ini, or pgcat.toml
    file: PathBuf,
    /// Write the settings to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file that would be replaced.
    #[error(
        "{} exists, and nothing was written: move it away, or name a file in another folder with --output", .0.display()
    )]
    Exists(PathBuf),
    /// PgBouncer's file.
    #[error("{}: {error}", path.display())]
    Ini {
        /// Its path.
        path: PathBuf,
        /// The line and the reason.
        error: ini::Error,
    },
    /// pgcat's file.
    #[error("{}: {error}", path.display())]
    Toml {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: Box<toml::de::Error>,
    },
    /// A file of something else.
    #[error("{} is neither an .ini file of PgBouncer nor a .toml file of pgcat", .0.display())]
    Kind(PathBuf),
    /// Nothing to convert.
    #[error("{} names no database that can be converted; the lines above say why", .0.display())]
    NoDatabase(PathBuf),
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let path = args.file;
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| Error::Read { path: path.to_owned(), error })
    };
    let text = read(&path)?;
    let mut converted = match path.extension().and_then(|extension| extension.to_str()) {
        Some("ini") => from_pgbouncer(&path, &text)?,
        Some("toml") => {
            pgcat::convert(&text).map_err(|error| Error::Toml { path: path.clone(), error: error.into() })?
        }
        _ => return Err(Error::Kind(path)),
    };
    let folder = args.output.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let beside = |name: &str| std::path::absolute(folder.join(name)).unwrap_or_else(|_| folder.join(name));
    let access = converted.access.join("\n") + "\n";
    let mut files = Vec::new();
    if !converted.access.is_empty() {
        converted.set("hba_file", beside(ACCESS_FILE).display().to_string());
        files.push((beside(ACCESS_FILE), access));
    }
    if !converted.users.is_empty() {
        converted.set("users_file", beside(USERS_FILE).display().to_string());
        files.push((beside(USERS_FILE), converted.users_file()));
    }
    let settings = converted.settings(&path.display().to_string());
    for note in &converted.notes {
        eprintln!("{}", crate::visible_lines(&format!("{}: {}: {}", path.display(), note.place, note.text)));
    }
    if !converted.has_databases() {
        return Err(Error::NoDatabase(path));
    }
    match args.output {
        Some(output) => {
            files.push((output, settings));
            if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
                return Err(Error::Exists(path.clone()));
            }
            files.iter().try_for_each(|(path, text)| write(path, text))?;
        }
        None => {
            for (path, text) in &files {
                eprintln!("write this file, or convert with --output:\n{}:", path.display());
                // The users file has passwords.
                let shown = if path.ends_with(USERS_FILE) { "(users and passwords)\n" } else { text };
                eprint!("{shown}");
            }
            let path = PathBuf::from("standard output");
            std::io::stdout().write_all(settings.as_bytes()).map_err(|error| Error::Write { path, error })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn from_pgbouncer(path: &Path, text: &str) -> Result<Converted, Error> {
    let wrong = |error| Error::Ini { path: path.to_owned(), error };
    // PgBouncer reads the files that it names from its working directory.
    let named = |key: &str| {
        let entries = ini::read(text).unwrap_or_default();
        let entry = entries.into_iter().rfind(|entry| entry.section == "pgbouncer" && entry.key == key);
        entry.map(|entry| entry.value).filter(|value| !value.is_empty())
    };
    let users = named("auth_file").and_then(|file| std::fs::read_to_string(file).ok());
    let (users, problem) = match users.as_deref().map(Users::parse) {
        Some(Ok(users)) => (users.into_secrets().collect(), None),
        Some(Err(error)) => (Vec::new(), Some(format!("the gateway cannot use the file: {error}"))),
        None => (
            Vec::new(),
            named("auth_file").map(|_| {
                "the file cannot be read here: passwords of auth_user were not looked up".to_owned()
            }),
        ),
    };
    let password_of = |wanted: &str| {
        let secret = users.iter().find(|(user, _)| user == wanted).map(|(_, secret)| secret);
        match secret {
            Some(Secret::Plain(password)) => Some(String::from_utf8_lossy(password.bytes()).into_owned()),
            _ => None,
        }
    };
    let mut converted = pgbouncer::convert(text, &password_of).map_err(wrong)?;
    if let Some(problem) = problem {
        converted.note("auth_file", problem);
    }
    let list = named("auth_hba_file").and_then(|file| std::fs::read_to_string(file).ok());
    if let Some(Err(error)) = list.as_deref().map(Hba::parse) {
        converted.note("auth_hba_file", format!("the gateway cannot use the file: {error}"));
    }
    Ok(converted)
}

/// Writes a file that other users cannot read: it can have passwords.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let written = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Error::Write { path: path.to_owned(), error })
}

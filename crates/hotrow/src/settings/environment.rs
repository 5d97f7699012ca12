//! Settings from environment variables: a value that cannot be read and a variable that is not a setting are errors.

use std::path::PathBuf;
use std::str::FromStr;

use hotrow_core::pack_mode::PackMode;

use super::Settings;

/// What each variable of this program begins with.
const PREFIX: &str = "HOTROW_";
/// Variables that are not settings of the gateway: those of other commands, of the examples and of the tests.
const OTHERS: [&str; 11] = [
    "HOTROW_CONFIG",
    "HOTROW_PREDECESSOR",
    "HOTROW_CITUS_BIN",
    "HOTROW_CITUS_SECONDS",
    "HOTROW_PG_BIN",
    "HOTROW_MAVEN_URL",
    "HOTROW_URL",
    "HOTROW_SEED",
    "HOTROW_GOLDEN",
    "HOTROW_FAULT_SECONDS",
    "HOTROW_FLUSH_DELAY_FILE",
];
const OTHER_PREFIXES: [&str; 3] = ["HOTROW_TEST_", "HOTROW_DIFFERENTIAL_", "HOTROW_DOCTOR_"];

/// Why the environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value cannot be read.
    #[error(
        "the environment variable {variable} is {value:?} and must be {expected}; see: hotrow help config"
    )]
    Value {
        variable: &'static str,
        value: String,
        /// What can be read.
        expected: String,
    },
    /// A variable is not a setting.
    #[error(
        "the environment variable {0} is not a setting: remove it or correct its name; see: hotrow help config"
    )]
    Unknown(String),
}

/// A type of settings.
pub trait Value: FromStr {
    /// Says which values can be read.
    fn expected(unit: &str) -> String;
}

impl Value for u64 {
    fn expected(unit: &str) -> String {
        super::whole_number_of(unit)
    }
}

impl Value for bool {
    fn expected(_: &str) -> String {
        "true or false".to_owned()
    }
}

impl Value for PackMode {
    fn expected(_: &str) -> String {
        "true, false, shadow or deferred".to_owned()
    }
}

impl Value for String {
    fn expected(_: &str) -> String {
        "a text".to_owned()
    }
}

impl Value for PathBuf {
    fn expected(_: &str) -> String {
        "a path".to_owned()
    }
}

/// Reads the value of a flag.
pub fn flag<T: Value>(unit: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| text.parse().map_err(|_| format!("it must be {}; see: hotrow help config", T::expected(unit)))
}

/// The environment of this process. A variable that is not text is no setting.
pub fn of_process() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Reads one variable of the environment.
pub fn read<T: Value>(
    environment: &[(String, String)],
    variable: &'static str,
    unit: &str,
) -> Result<Option<T>, Error> {
    let Some((_, value)) = environment.iter().find(|(name, _)| name == variable) else { return Ok(None) };
    let wrong = |_| Error::Value { variable, value: value.clone(), expected: T::expected(unit) };
    value.parse().map(Some).map_err(wrong)
}

/// Whether all variables that begin as settings do are settings.
pub fn check_names<'n>(mut names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
    let known = Settings::variables();
    match names.find(|name| is_ours(name) && !known.contains(name)) {
        Some(name) => Err(Error::Unknown(name.to_owned())),
        None => Ok(()),
    }
}

/// Whether a variable could only be meant as a setting. Kubernetes and Docker set variables such as `HOTROW_PORT` and
/// `HOTROW_SERVICE_HOST` for every container beside a service of the name `hotrow`.
fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
        && !OTHERS.contains(&name)
        && !OTHER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !name.contains("_SERVICE_")
        && !name.contains("_PORT")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files_below(&path, files),
                false => files.push(path),
            }
        }
    }

    #[test]
    fn variables_of_other_programs_of_the_project_do_not_stop_the_gateway() {
        let mut files = Vec::new();
        files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
        let known = Settings::variables();
        let mut found = 0;
        for path in files {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for rest in ["var(\"", "var_os(\"", "getenv(\""].iter().flat_map(|read| text.split(read).skip(1))
            {
                let name = rest.split('"').next().unwrap_or_default();
                if name.starts_with(PREFIX) {
                    found += 1;
                    assert!(known.contains(&name) || !is_ours(name), "{}: {name}", path.display());
                }
            }
        }
        assert!(found > 10, "{found} variables");
    }

    fn with(variables: &[(&str, &str)]) -> Result<Settings, Error> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_names(variables.iter().map(|(name, _)| name.as_str()))?;
        Settings { held_wait_ms: Some(7), ..Settings::default() }.or_variables(&variables)
    }

    #[test]
    fn a_flag_wins_over_the_environment() {
        let settings = with(&[("HOTROW_LANES", "3"), ("HOTROW_HELD_WAIT_MS", "wrong")]).unwrap();
        assert_eq!((settings.lanes, settings.held_wait_ms), (Some(3), Some(7)));
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        let message = |name, value| with(&[(name, value)]).unwrap_err().to_string();
        let lanes = message("HOTROW_LANES", "abc");
        assert!(
            lanes.contains("HOTROW_LANES is \"abc\" and must be a whole number of connections"),
            "{lanes}"
        );
        assert!(message("HOTROW_HELD_IDLE_MS", "5s").contains("a whole number of milliseconds"));
        assert!(message("HOTROW_PACK", "7").contains("true, false, shadow or deferred"));
    }

    #[test]
    fn an_unknown_variable_is_refused_unless_another_program_sets_it() {
        let error = with(&[("HOTROW_LANE", "3")]).unwrap_err().to_string();
        assert!(error.contains("HOTROW_LANE is not a setting"), "{error}");
        for name in ["HOTROW_PORT_5432_TCP", "HOTROW_SERVICE_HOST", "HOTROW_SEED", "HOTROW_TEST_LOG", "PATH"]
        {
            assert!(with(&[(name, "3")]).is_ok(), "{name}");
        }
    }
}

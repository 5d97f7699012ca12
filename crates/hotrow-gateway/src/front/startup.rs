//! A client's startup packet, read as PostgreSQL reads it: the user, the database, the client's name, and the
//! parameters for the server.

use crate::console;
use hotrow_core::classify::Switch;
use hotrow_core::limits::IDENTIFIER_BYTES_MAX;
use hotrow_core::session::{self, SwitchValues};
use hotrow_wire::backend::Problem;

/// A client's startup parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// The user; empty if the packet names none.
    pub user: String,
    /// The database, which is the user's name if the packet names none.
    pub database: String,
    /// Whether the client asks for the console. A packet that names no database never does.
    pub console: bool,
    /// The client's name for itself, if the packet has one.
    pub application_name: Option<String>,
    /// The values of the gateway's own settings. If one has several, the last one counts. The server does not get them.
    pub switches: Vec<(Switch, String)>,
    /// User, database and settings for the server, without the client's name.
    pub parameters: Vec<(String, String)>,
}

impl Startup {
    /// From the parameters of the packet, which has each name once.
    pub fn new(parameters: &[(String, String)]) -> Self {
        let get = |wanted: &str| {
            parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| cut(value).to_owned())
        };
        let user = get("user").unwrap_or_default();
        let named = get("database").filter(|database| !database.is_empty());
        let console = named.as_deref() == Some(console::DATABASE);
        let database = named.unwrap_or_else(|| user.clone());
        let (mut application_name, mut switches, mut others) = (None, Vec::new(), Vec::new());
        for (name, value) in parameters {
            if name.eq_ignore_ascii_case("application_name") {
                application_name = Some(value.clone());
            } else if let Some(switch) = switch(name) {
                switches.push((switch, value.clone()));
            } else if name == "options" {
                let (options, in_options) = without_switches(value);
                switches.splice(0..0, in_options); // a parameter of its own overrides an option
                if !options.is_empty() {
                    others.push((name.clone(), options));
                }
            } else if !matches!(name.as_str(), "user" | "database") {
                others.push((name.clone(), value.clone()));
            }
        }
        others.push(("user".to_owned(), user.clone()));
        others.push(("database".to_owned(), database.clone()));
        Startup { user, database, console, application_name, switches, parameters: others }
    }

    /// The values of the gateway's own settings. Fails for a value that the setting cannot have.
    pub fn switch_values(&self) -> Result<SwitchValues, Problem> {
        let mut values = SwitchValues::default();
        for (switch, value) in &self.switches {
            let wrong = || Problem { fatal: true, ..session::wrong_value(*switch) };
            values.set(switch.value(value).ok_or_else(wrong)?);
        }
        Ok(values)
    }
}

fn switch(name: &str) -> Option<Switch> {
    Switch::named(&name.to_ascii_lowercase())
}

/// The options without the gateway's own settings, and their values: `-c NAME=VALUE`, `-cNAME=VALUE` or `--NAME=VALUE`, separated by
/// whitespace that no backslash precedes.
fn without_switches(options: &str) -> (String, Vec<(Switch, String)>) {
    let mut words: Vec<String> = Vec::new();
    let (mut is_open, mut is_escaped) = (false, false);
    for character in options.chars() {
        if character.is_ascii_whitespace() && !is_escaped {
            is_open = false;
            continue;
        }
        if !std::mem::replace(&mut is_open, true) {
            words.push(String::new());
        }
        is_escaped = character == '\\' && !is_escaped;
        words.last_mut().expect("a word is open").push(character);
    }
    let value = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Some((switch(name)?, value.to_owned()))
    };
    let (mut kept, mut found) = (Vec::new(), Vec::new());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let own = word.strip_prefix("--").or(word.strip_prefix("-c").filter(|rest| !rest.is_empty()));
        if let Some(value) = own.and_then(value) {
            found.push(value);
        } else if word == "-c"
            && let Some(value) = words.peek().and_then(|next| value(next))
        {
            words.next();
            found.push(value);
        } else {
            kept.push(word);
        }
    }
    if found.is_empty() { (options.to_owned(), found) } else { (kept.join(" "), found) }
}

fn cut(name: &str) -> &str {
    let end = (0..=name.len().min(IDENTIFIER_BYTES_MAX)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use hotrow_core::pack_mode::PackMode;

    use super::*;

    fn startup(pairs: &[(&str, &str)]) -> Startup {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Startup::new(&pairs.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn without_a_database_the_database_has_the_users_name() {
        for pairs in [&[("user", "ann")][..], &[("database", ""), ("user", "ann")]] {
            let startup = startup(pairs);
            assert_eq!((&*startup.user, &*startup.database), ("ann", "ann"), "{pairs:?}");
            let parameters =
                [("user", "ann"), ("database", "ann")].map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(startup.parameters, parameters);
        }
    }

    #[test]
    fn settings_of_the_gateway_stay_in_it() {
        const DEFAULT: SwitchValues = SwitchValues { pack: PackMode::Deferred, reads_from_replica: false };
        let replica = Some(SwitchValues { reads_from_replica: true, ..DEFAULT });
        let off = Some(SwitchValues { pack: PackMode::Off, ..DEFAULT });
        let shadow = Some(SwitchValues { pack: PackMode::Shadow, ..DEFAULT });
        for (name, value, values, rest) in [
            ("hotrow.reads", "replica", replica, None),
            ("Hotrow.Pack", "off", off, None),
            ("hotrow.pack", "shadow", shadow, None),
            ("hotrow.pack", "banana", None, None),
            ("options", "-c hotrow.reads=replica", replica, None),
            ("options", "-c hotrow.pack=on --hotrow.pack=0", off, None),
            ("options", "-chotrow.reads=primary -c work_mem=1MB", Some(DEFAULT), Some("-c work_mem=1MB")),
            ("options", " --Hotrow.Reads=x  -c a.b=c\\ d", None, Some("-c a.b=c\\ d")),
            (
                "options",
                "-c x.y=\\ hotrow.reads=replica",
                Some(DEFAULT),
                Some("-c x.y=\\ hotrow.reads=replica"),
            ),
            ("options", "-c  work_mem=1MB", Some(DEFAULT), Some("-c  work_mem=1MB")),
            ("options", "-c", Some(DEFAULT), Some("-c")),
        ] {
            let one = startup(&[("user", "ann"), (name, value)]);
            assert_eq!(one.switch_values().ok(), values, "{value}");
            let options = one.parameters.iter().find(|(name, _)| name == "options");
            assert_eq!(options.map(|(_, value)| value.as_str()), rest, "{value}");
            assert!(one.parameters.iter().all(|(name, _)| switch(name).is_none()));
        }
        for order in [[0, 1, 2], [2, 1, 0]] {
            let pairs = [("user", "ann"), ("hotrow.pack", "off"), ("options", "-c hotrow.pack=on")];
            let both = startup(&order.map(|index| pairs[index]));
            assert_eq!(both.switch_values().ok(), off, "a parameter of its own overrides an option");
        }
    }

    #[test]
    fn only_a_client_that_names_the_console_reaches_it() {
        assert!(startup(&[("user", "ann"), ("database", "hotrow")]).console);
        assert!(startup(&[("user", "hotrow"), ("database", "hotrow")]).console);
        assert!(!startup(&[("user", "hotrow")]).console);
        assert!(!startup(&[("user", "hotrow"), ("database", "")]).console);
    }

    #[test]
    fn the_clients_name_is_found_in_any_case_and_long_names_are_cut() {
        let long = "é".repeat(40);
        let startup = startup(&[("user", &long), ("APPLICATION_NAME", "till"), ("work_mem", "1MB")]);
        assert_eq!(startup.application_name.as_deref(), Some("till"));
        assert_eq!(startup.user, "é".repeat(31));
        assert_eq!(startup.parameters[0].0, "work_mem");
        assert_eq!(startup.parameters.len(), 3);
    }
}

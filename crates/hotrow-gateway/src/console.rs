//! The commands of the admin console, and the texts of its help and hints.

/// The name of the database that stands for the console.
pub const DATABASE: &str = "hotrow";

/// The topics of SHOW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The hottest keys, and the blocked ones.
    Keys,
    /// Connected clients.
    Clients,
    /// Lanes and their state.
    Lanes,
    /// Replicas, with their lag.
    Replicas,
    /// Units that wait or run in lanes.
    Units,
    /// Statement shapes with the number of packed and passed-through executions and the reasons.
    Statements,
    /// The sums over all shapes.
    StatementTotals,
    /// What would have been packed in shadow mode.
    Shadow,
    /// Pools by user, database and settings, with the settings in force for them.
    PoolSettings,
    /// The current settings.
    Config,
    /// Clients and connections by user and database.
    Pools,
    Databases,
    /// Connections to the server.
    Servers,
    /// Numbers of units, bytes and times by database, with averages.
    Stats,
    /// The same without averages.
    StatsTotals,
    StatsAverages,
    /// The numbers of databases, pools, clients and connections.
    Lists,
    /// The gateway's version.
    Version,
    /// The list of commands.
    Help,
}

/// All topics with their keywords and descriptions.
pub const TOPICS: [(Topic, &str, &str); 19] = [
    (Topic::Keys, "KEYS", "the hottest rows, now and since the start, and who holds a blocked one"),
    (Topic::Clients, "CLIENTS", "connected clients, with their state and backend"),
    (Topic::Lanes, "LANES", "the lanes, with their connection, queue and pace"),
    (Topic::Replicas, "REPLICAS", "the replicas, with their lag and the reads that they have answered"),
    (Topic::Units, "UNITS", "units that wait or run in lanes"),
    (Topic::Statements, "STATEMENTS", "statement shapes, with counts and reasons for passing through"),
    (Topic::StatementTotals, "STATEMENT_TOTALS", "the sums over all shapes, listed or not"),
    (
        Topic::Shadow,
        "SHADOW",
        "what would have been packed in shadow mode, and the commits that this would save",
    ),
    (
        Topic::PoolSettings,
        "POOL_SETTINGS",
        "pools by user, database and settings, with what is in force for them",
    ),
    (Topic::Config, "CONFIG", "the current settings"),
    (Topic::Pools, "POOLS", "clients and connections by user and database, as in PgBouncer"),
    (Topic::Databases, "DATABASES", "databases and their connections, as in PgBouncer"),
    (Topic::Servers, "SERVERS", "connections to the server"),
    (Topic::Stats, "STATS", "units, bytes and times by database, as in PgBouncer"),
    (Topic::StatsTotals, "STATS_TOTALS", "the same without averages"),
    (Topic::StatsAverages, "STATS_AVERAGES", "the averages since the start"),
    (Topic::Lists, "LISTS", "numbers of databases, pools, clients and connections, as in PgBouncer"),
    (Topic::Version, "VERSION", "the gateway's version"),
    (Topic::Help, "HELP", "this list"),
];

/// The other commands with their descriptions.
pub const COMMANDS: [(&str, &str); 7] = [
    ("PAUSE [database]", "hold new work; returns when all connections to the server are closed"),
    ("RESUME [database]", "continue after PAUSE or KILL"),
    ("RECONNECT [database]", "replace the connections to the server with new ones"),
    ("KILL [database]", "disconnect all clients, then hold new ones until RESUME"),
    ("KILL_CLIENT process_id", "disconnect one client"),
    ("RELOAD", "read the settings file again, then reconnect"),
    ("SHUTDOWN", "finish the work under way, then stop"),
];

/// A console command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Show(Topic),
    /// PAUSE of one database, or of all.
    Pause(Option<String>),
    /// RESUME of one database, or of all.
    Resume(Option<String>),
    /// RECONNECT of one database, or of all.
    Reconnect(Option<String>),
    /// KILL of the clients of one database, or of all.
    Kill(Option<String>),
    /// KILL_CLIENT with the process ID that the client was told.
    KillClient(u32),
    Reload,
    Shutdown,
    /// A command that drivers send before or around a query. The console answers it like the server and does
    /// nothing.
    Ignored(IgnoredCommand),
    Empty,
}

/// A command that drivers send and that the console ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredCommand {
    /// Begins a transaction. Console commands cannot be rolled back.
    Begin,
    /// Ends the transaction.
    Commit,
    /// Ends the transaction without undoing anything.
    Rollback,
    /// Changes a setting.
    Set,
}

/// The commands that a user can run on the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All commands.
    Admin,
    /// SHOW, and the commands that drivers send before and around it.
    Reader,
}

/// The users with access to the console, from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// Users who can run all commands. If the list is not set, only the gateway's own user can.
    pub admins: Option<Vec<String>>,
    /// Users who can run SHOW. If the list is not set, all users on this machine can.
    pub readers: Option<Vec<String>>,
}

impl Users {
    /// The access of this user, who connects from this machine or from another one. `own` is the gateway's
    /// own user.
    pub fn access(&self, user: &str, is_local: bool, own: &str) -> Option<Access> {
        let names = |list: &[String]| list.iter().any(|name| name == user);
        if self.admins.as_deref().map_or(user == own, names) {
            Some(Access::Admin)
        } else if self.readers.as_deref().map_or(is_local, names) {
            Some(Access::Reader)
        } else {
            None
        }
    }
}

/// The names of a setting, separated by commas.
pub fn name_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Command {
    /// The keyword of a command that only administrators can run.
    pub fn admin_keyword(&self) -> Option<&'static str> {
        match self {
            Command::Pause(_) => Some("PAUSE"),
            Command::Resume(_) => Some("RESUME"),
            Command::Reconnect(_) => Some("RECONNECT"),
            Command::Kill(_) => Some("KILL"),
            Command::KillClient(_) => Some("KILL_CLIENT"),
            Command::Reload => Some("RELOAD"),
            Command::Shutdown => Some("SHUTDOWN"),
            Command::Show(_) | Command::Ignored(_) | Command::Empty => None,
        }
    }
}

/// A command that the console does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown console command {0:?}")]
pub struct UnknownCommand(pub String);

/// The hint after an unknown command.
pub fn hint() -> String {
    let topics: Vec<&str> = TOPICS.iter().map(|(_, word, _)| *word).collect();
    let commands: Vec<&str> = COMMANDS.iter().map(|(words, _)| *words).collect();
    format!("Available commands: SHOW {}, {}.", topics.join(" | "), commands.join(", "))
}

/// Parses one command, with or without a semicolon at its end.
pub fn parse(text: &str) -> Result<Command, UnknownCommand> {
    let unknown = || UnknownCommand(text.trim().chars().take(100).collect());
    let text_only = text.trim().trim_end_matches(';').trim_end();
    let words: Vec<&str> = text_only.split_whitespace().collect();
    let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let rest = text_only.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    let name = || if rest.is_empty() { Ok(None) } else { database(rest).map(Some).ok_or_else(unknown) };
    Ok(match upper.as_slice() {
        [] => Command::Empty,
        ["SHOW", topic] => {
            let found = TOPICS.iter().find(|(_, word, _)| word == topic);
            Command::Show(found.ok_or_else(unknown)?.0)
        }
        ["HELP"] => Command::Show(Topic::Help),
        ["PAUSE", ..] => Command::Pause(name()?),
        ["RESUME", ..] => Command::Resume(name()?),
        ["RECONNECT", ..] => Command::Reconnect(name()?),
        ["KILL", ..] => Command::Kill(name()?),
        ["KILL_CLIENT", id] => Command::KillClient(id.parse().map_err(|_| unknown())?),
        ["RELOAD"] => Command::Reload,
        ["SHUTDOWN"] => Command::Shutdown,
        ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Command::Ignored(IgnoredCommand::Begin),
        ["COMMIT" | "END", ..] => Command::Ignored(IgnoredCommand::Commit),
        ["ROLLBACK" | "ABORT", ..] => Command::Ignored(IgnoredCommand::Rollback),
        ["SET", _, ..] if rest.contains('=') || words.len() > 2 => Command::Ignored(IgnoredCommand::Set),
        _ => return Err(unknown()),
    })
}

/// The commands of a text, split at semicolons outside quotes.
pub fn split(text: &str) -> Vec<&str> {
    let (mut commands, mut start, mut quote) = (Vec::new(), 0, None);
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (None, ';') => {
                commands.push(&text[start..index]);
                start = index + 1;
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    commands.push(&text[start..]);
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// A name as SQL reads it: in lower case unless it is quoted. None if the text is not one name.
fn database(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return (!text.contains(char::is_whitespace)).then(|| text.to_lowercase());
    };
    let name = quoted.strip_suffix('"')?;
    (!name.replace("\"\"", "").contains('"')).then(|| name.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_in_any_case_with_or_without_a_semicolon() {
        assert_eq!(parse("SHOW CLIENTS"), Ok(Command::Show(Topic::Clients)));
        assert_eq!(parse(" show  statements ; "), Ok(Command::Show(Topic::Statements)));
        assert_eq!(parse("help;"), Ok(Command::Show(Topic::Help)));
        assert_eq!(parse("pause"), Ok(Command::Pause(None)));
        assert_eq!(parse("Pause Shop;"), Ok(Command::Pause(Some("shop".into()))));
        assert_eq!(parse("resume \"My\"\"Shop\""), Ok(Command::Resume(Some("My\"Shop".into()))));
        assert_eq!(parse("kill  \"two  words\" ;"), Ok(Command::Kill(Some("two  words".into()))));
        assert_eq!(parse("RECONNECT shop"), Ok(Command::Reconnect(Some("shop".into()))));
        assert_eq!(parse("kill shop"), Ok(Command::Kill(Some("shop".into()))));
        assert_eq!(parse("KILL_CLIENT 1073741824;"), Ok(Command::KillClient(1_073_741_824)));
        assert_eq!(parse("reload"), Ok(Command::Reload));
        assert_eq!(parse("SHUTDOWN;"), Ok(Command::Shutdown));
        assert_eq!(parse(" ;"), Ok(Command::Empty));
        for (_, word, _) in TOPICS {
            assert!(parse(&format!("show {word}")).is_ok(), "{word}");
        }
    }

    #[test]
    fn without_lists_the_gateways_own_user_is_admin_and_local_users_are_readers() {
        let users = Users::default();
        assert_eq!(users.access("gate", false, "gate"), Some(Access::Admin));
        assert_eq!(users.access("ann", true, "gate"), Some(Access::Reader));
        assert_eq!(users.access("ann", false, "gate"), None);
    }

    #[test]
    fn a_list_replaces_its_default() {
        let users = Users { admins: Some(name_list("ann, bob")), readers: Some(name_list("carl")) };
        assert_eq!(users.access("bob", false, "gate"), Some(Access::Admin));
        assert_eq!(users.access("carl", false, "gate"), Some(Access::Reader));
        assert_eq!(users.access("gate", true, "gate"), None);
        let nobody = Users { admins: Some(name_list("")), readers: Some(name_list(" , ")) };
        assert_eq!(nobody.access("", true, "gate"), None);
    }

    #[test]
    fn commands_are_for_administrators() {
        for (words, _) in COMMANDS {
            let word = words.split(' ').next().unwrap();
            let text = words.replace("[database]", "shop").replace("process_id", "7");
            assert_eq!(parse(&text).unwrap().admin_keyword(), Some(word));
        }
        for text in ["show clients", "begin", "set a = b", ""] {
            assert_eq!(parse(text).unwrap().admin_keyword(), None, "{text}");
        }
    }

    #[test]
    fn commands_that_drivers_send_are_ignored() {
        for (text, command) in [
            ("BEGIN", IgnoredCommand::Begin),
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", IgnoredCommand::Begin),
            ("commit", IgnoredCommand::Commit),
            ("ROLLBACK", IgnoredCommand::Rollback),
            ("SET extra_float_digits = 3", IgnoredCommand::Set),
            ("set extra_float_digits=3", IgnoredCommand::Set),
            ("set client_encoding to 'utf8'", IgnoredCommand::Set),
            ("SET application_name = 'PostgreSQL JDBC Driver'", IgnoredCommand::Set),
        ] {
            assert_eq!(parse(text), Ok(Command::Ignored(command)), "{text}");
        }
    }

    #[test]
    fn an_unknown_command_gets_a_hint_with_all_commands() {
        for text in [
            "SHOW",
            "SHOW TABLES",
            "show clients now",
            "select 1",
            "pause a b",
            "kill_client",
            "kill_client ann",
            "pause \"a",
            "pause \"a\" \"b\"",
            "reload all",
            "SET",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let hint = hint();
        assert!(hint.contains("CLIENTS | LANES") && hint.contains("PAUSE [database]"), "{hint}");
    }

    #[test]
    fn a_text_can_have_several_commands() {
        assert_eq!(split("begin; show clients;"), ["begin", " show clients"]);
        assert_eq!(split("pause \"a;b\"; set x = 'a;b'"), ["pause \"a;b\"", " set x = 'a;b'"]);
        assert!(split(" ; ").is_empty());
    }
}

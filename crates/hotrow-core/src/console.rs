//! The words of the admin console: what an operator may say to the gateway, and what is told to whom says anything else.

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Who is connected.
    Clients,
    /// The lanes and how they do.
    Lanes,
    /// What waits or runs in lanes now.
    Units,
    /// What was packed and what was not, and why, by shape.
    Statements,
    /// Users and databases.
    Pools,
    /// The settings in force.
    Config,
    /// Which version this is.
    Version,
    /// All these words.
    Help,
}

/// All topics with their words and what they show.
pub const TOPICS: [(Topic, &str, &str); 8] = [
    (Topic::Clients, "CLIENTS", "who is connected, in which state, with which backend"),
    (Topic::Lanes, "LANES", "the lanes: connection, queue, pace"),
    (Topic::Units, "UNITS", "what waits or runs in lanes now"),
    (Topic::Statements, "STATEMENTS", "why statements were packed or not, by shape, with counts"),
    (Topic::Pools, "POOLS", "users and databases, with what is different for them"),
    (Topic::Config, "CONFIG", "the settings in force"),
    (Topic::Version, "VERSION", "which version this is"),
    (Topic::Help, "HELP", "this list"),
];

/// The other commands and what they do.
pub const COMMANDS: [(&str, &str); 5] = [
    ("PAUSE [database]", "let nothing new through; done when all connections to the server are closed"),
    ("RESUME [database]", "go on"),
    ("RECONNECT [database]", "make new connections to the server instead of those that there are"),
    ("RELOAD", "read the settings file again, and reconnect"),
    ("SHUTDOWN", "finish what is under way, then stop"),
];

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// SHOW.
    Show(Topic),
    /// PAUSE of one database, or of all.
    Pause(Option<String>),
    /// RESUME of one database, or of all.
    Resume(Option<String>),
    /// RECONNECT of one database, or of all.
    Reconnect(Option<String>),
    /// RELOAD.
    Reload,
    /// SHUTDOWN.
    Shutdown,
    /// What drivers say before or around a query, and what the server would answer; nothing is done.
    Ignored(IgnoredCommand),
    /// Nothing.
    Empty,
}

/// What drivers say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredCommand {
    /// A transaction begins, in which nothing can be undone.
    Begin,
    /// It ends.
    Commit,
    /// It ends, and nothing is undone.
    Rollback,
    /// A setting.
    Set,
}

/// What a user may do on the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Admin,
    /// SHOW, and what drivers say before and around it.
    Reader,
}

/// The users whom the settings let onto the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// The users who may give every command; without a list, only the gateway's own user.
    pub admins: Option<Vec<String>>,
    /// The users who may look; without a list, all users on this machine.
    pub readers: Option<Vec<String>>,
}

impl Users {
    /// What this user may do, who connects from this machine or from another one. `own` is the gateway's own user.
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

/// The user names of a setting, with commas between them.
pub fn user_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Command {
    /// The word of a command that only administrators may give.
    pub fn admin_keyword(&self) -> Option<&'static str> {
        match self {
            Command::Pause(_) => Some("PAUSE"),
            Command::Resume(_) => Some("RESUME"),
            Command::Reconnect(_) => Some("RECONNECT"),
            Command::Reload => Some("RELOAD"),
            Command::Shutdown => Some("SHUTDOWN"),
            Command::Show(_) | Command::Ignored(_) | Command::Empty => None,
        }
    }
}

/// Nothing that the console knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway's console does not know {0:?}")]
pub struct UnknownCommand(pub String);

/// What to say instead.
pub fn hint() -> String {
    let topics: Vec<&str> = TOPICS.iter().map(|(_, word, _)| *word).collect();
    let commands: Vec<&str> = COMMANDS.iter().map(|(words, _)| *words).collect();
    format!("Say SHOW {}, or {}.", topics.join(" | "), commands.join(", "))
}

/// Takes one command, with or without a semicolon behind it.
pub fn parse(text: &str) -> Result<Command, UnknownCommand> {
    let unknown = || UnknownCommand(text.trim().chars().take(100).collect());
    let text_only = text.trim().trim_end_matches(';').trim_end();
    let words: Vec<&str> = text_only.split_whitespace().collect();
    let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let name = || match words.get(1..).unwrap_or_default() {
        [] => Ok(None),
        [name] => database(name).map(Some).ok_or_else(unknown),
        _ => Err(unknown()),
    };
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
        ["RELOAD"] => Command::Reload,
        ["SHUTDOWN"] => Command::Shutdown,
        ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Command::Ignored(IgnoredCommand::Begin),
        ["COMMIT" | "END", ..] => Command::Ignored(IgnoredCommand::Commit),
        ["ROLLBACK" | "ABORT", ..] => Command::Ignored(IgnoredCommand::Rollback),
        ["SET", _, _, ..] => Command::Ignored(IgnoredCommand::Set),
        _ => return Err(unknown()),
    })
}

/// The commands of a text, by the semicolons that are not within quotes.
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

/// A name as SQL reads it: in lower case unless it is quoted.
fn database(word: &str) -> Option<String> {
    match word.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"').map(|name| name.replace("\"\"", "\"")),
        None => Some(word.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_with_or_without_a_semicolon() {
        assert_eq!(parse("SHOW CLIENTS"), Ok(Command::Show(Topic::Clients)));
        assert_eq!(parse(" show  statements ; "), Ok(Command::Show(Topic::Statements)));
        assert_eq!(parse("help;"), Ok(Command::Show(Topic::Help)));
        assert_eq!(parse("pause"), Ok(Command::Pause(None)));
        assert_eq!(parse("Pause Shop;"), Ok(Command::Pause(Some("shop".into()))));
        assert_eq!(parse("resume \"My\"\"Shop\""), Ok(Command::Resume(Some("My\"Shop".into()))));
        assert_eq!(parse("RECONNECT shop"), Ok(Command::Reconnect(Some("shop".into()))));
        assert_eq!(parse("reload"), Ok(Command::Reload));
        assert_eq!(parse("SHUTDOWN;"), Ok(Command::Shutdown));
        assert_eq!(parse(" ;"), Ok(Command::Empty));
        for (_, word, _) in TOPICS {
            assert!(parse(&format!("show {word}")).is_ok(), "{word}");
        }
    }

    #[test]
    fn without_lists_the_gateways_own_user_commands_and_users_of_this_machine_look() {
        let users = Users::default();
        assert_eq!(users.access("gate", false, "gate"), Some(Access::Admin));
        assert_eq!(users.access("ann", true, "gate"), Some(Access::Reader));
        assert_eq!(users.access("ann", false, "gate"), None);
    }

    #[test]
    fn a_list_replaces_its_default() {
        let users = Users { admins: Some(user_list("ann, bob")), readers: Some(user_list("carl")) };
        assert_eq!(users.access("bob", false, "gate"), Some(Access::Admin));
        assert_eq!(users.access("carl", false, "gate"), Some(Access::Reader));
        assert_eq!(users.access("gate", true, "gate"), None);
        let nobody = Users { admins: Some(user_list("")), readers: Some(user_list(" , ")) };
        assert_eq!(nobody.access("", true, "gate"), None);
    }

    #[test]
    fn commands_are_for_administrators() {
        for (words, _) in COMMANDS {
            let word = words.split(' ').next().unwrap();
            assert_eq!(parse(word).unwrap().admin_keyword(), Some(word));
        }
        for text in ["show clients", "begin", "set a = b", ""] {
            assert_eq!(parse(text).unwrap().admin_keyword(), None, "{text}");
        }
    }

    #[test]
    fn what_drivers_say_does_no_harm() {
        for (text, command) in [
            ("BEGIN", IgnoredCommand::Begin),
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", IgnoredCommand::Begin),
            ("commit", IgnoredCommand::Commit),
            ("ROLLBACK", IgnoredCommand::Rollback),
            ("SET extra_float_digits = 3", IgnoredCommand::Set),
            ("SET application_name = 'PostgreSQL JDBC Driver'", IgnoredCommand::Set),
        ] {
            assert_eq!(parse(text), Ok(Command::Ignored(command)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_told_the_words() {
        for text in [
            "SHOW",
            "SHOW TABLES",
            "show clients now",
            "select 1",
            "pause a b",
            "pause \"a",
            "reload all",
            "SET",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let hint = hint();
        assert!(hint.contains("SHOW CLIENTS | LANES") && hint.contains("PAUSE [database]"), "{hint}");
    }

    #[test]
    fn a_text_may_hold_several() {
        assert_eq!(split("begin; show clients;"), ["begin", " show clients"]);
        assert_eq!(split("pause \"a;b\"; set x = 'a;b'"), ["pause \"a;b\"", " set x = 'a;b'"]);
        assert!(split(" ; ").is_empty());
    }
}

//! The user file, in PgBouncer's `userlist.txt` format: a user and a secret per line, both in double quotes.

use std::collections::HashMap;

use crate::limits;
use zeroize::Zeroizing;

use crate::stored::Secret;

#[derive(Clone, Debug, Default)]
pub struct Users(HashMap<String, Secret>);

/// The reason why a user file is rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UsersError {
    /// An invalid line. It can contain a password and is not repeated in the message.
    #[error("line {0} is invalid: write \"user\" \"password\" and double any quote inside")]
    Syntax(usize),
    /// A user occurs twice.
    #[error("line {0} names a user for the second time: remove one of the lines")]
    Twice(usize),
    /// Too many users.
    #[error(
        "there are more than {} users: use auth_query to read their secrets from the server",
        limits::USERS_MAX
    )]
    TooMany,
}

impl Users {
    /// Parses a user file. Lines that begin with `;` or `#` are comments. Text after the secret is ignored.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            let syntax = || UsersError::Syntax(index + 1);
            let (user, rest) = quoted(line).ok_or_else(syntax)?;
            let (secret, _) = quoted(rest.trim_start()).ok_or_else(syntax)?;
            if user.is_empty() {
                return Err(syntax());
            }
            // A user without a secret can authenticate with other methods, but not with a password.
            let Some(secret) = Secret::parse(&secret) else { continue };
            if users.insert(user.to_string(), secret).is_some() {
                return Err(UsersError::Twice(index + 1));
            }
            if users.len() > limits::USERS_MAX {
                return Err(UsersError::TooMany);
            }
        }
        Ok(Users(users))
    }

    /// All accounts.
    pub fn into_secrets(self) -> impl Iterator<Item = (String, Secret)> {
        self.0.into_iter()
    }
}

/// A quoted text at the front, and the text after it.
fn quoted(text: &str) -> Option<(Zeroizing<String>, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut value = Zeroizing::new(String::with_capacity(rest.len()));
    loop {
        let (front, behind) = rest.split_once('"')?;
        value.push_str(front);
        match behind.strip_prefix('"') {
            Some(behind) => {
                value.push('"');
                rest = behind;
            }
            None => return Some((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Password;

    #[test]
    fn the_file_format_of_pgbouncer_is_accepted() {
        let text = "; comment\n\n# another\n\"ann\" \"hunter2\"\n \"b\"\"ob\"\t\"x\"\"y z\" more\r\n\"cert\" \"\"\n\
                    \"old\" \"md5a3556571e93b0d20722ba62be61e8c2d\"\n";
        let users = Users::parse(text).unwrap().0;
        let plain = |text: &str| Some(Secret::Plain(Password::new(text.into())));
        assert_eq!(users.get("ann").cloned(), plain("hunter2"));
        assert_eq!(users.get("b\"ob").cloned(), plain("x\"y z"));
        assert!(matches!(users.get("old"), Some(Secret::Md5(_))));
        assert_eq!(users.len(), 3, "a user with an empty secret has none");
    }

    #[test]
    fn errors_contain_the_line_and_no_secret() {
        for (text, error) in [
            ("\"ann\" \"x\"\nann hunter2", UsersError::Syntax(2)),
            ("\"ann\" hunter2", UsersError::Syntax(1)),
            ("\"ann\" \"hunter2", UsersError::Syntax(1)),
            ("\"\" \"hunter2\"", UsersError::Syntax(1)),
            ("\"ann\" \"hunter2\"\n\n\"ann\" \"hunter3\"", UsersError::Twice(3)),
        ] {
            let found = Users::parse(text).unwrap_err();
            assert!(!found.to_string().contains("hunter"), "{found}");
            assert_eq!(found, error, "{text}");
        }
        let many: String = (0..=limits::USERS_MAX).map(|n| format!("\"u{n}\" \"x\"\n")).collect();
        assert_eq!(Users::parse(&many).unwrap_err(), UsersError::TooMany);
    }
}

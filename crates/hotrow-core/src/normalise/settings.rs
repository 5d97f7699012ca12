//! Finds the values of settings in a text: the words after SET, which need no quotes. It reads one part of the text after
//! another, and rather takes a name for a value than a value for a name.

/// A part of a text. Spaces and comments are left out.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// A name or keyword without quotes.
    Word(&'a str),
    /// A name in double quotes.
    QuotedName,
    /// A string, a number or a parameter.
    Literal,
    /// Any other character.
    Sign(char),
}

/// The statement that is being read.
#[derive(Clone, Copy, Default, PartialEq)]
enum Statement {
    /// Its first word comes next.
    #[default]
    Begins,
    Set,
    /// ALTER or CREATE, which can contain SET.
    Definition,
    /// Any other.
    Other,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    /// Outside of an assignment.
    #[default]
    Outside,
    /// After SET, or after SESSION or LOCAL.
    AfterSet,
    /// In the setting's name.
    Name,
    /// Where a value is expected.
    Value,
    AfterValue,
}

/// The state between two parts.
#[derive(Default)]
pub(super) struct Settings {
    statement: Statement,
    place: Place,
}

impl Settings {
    /// Reads the next part, and says whether it is the value of a setting. Literals are values anyway.
    pub(super) fn is_value(&mut self, part: Part<'_>) -> bool {
        let is = |word: &str| matches!(part, Part::Word(own) if own.eq_ignore_ascii_case(word));
        if matches!(part, Part::Sign(';')) {
            *self = Settings::default();
            return false;
        }
        if self.statement == Statement::Begins {
            self.statement = match () {
                () if is("set") => Statement::Set,
                () if is("alter") || is("create") => Statement::Definition,
                () => Statement::Other,
            };
            if self.statement == Statement::Set {
                self.place = Place::AfterSet;
            }
            return false;
        }
        let is_name = matches!(part, Part::Word(_) | Part::QuotedName);
        let is_value = is_name
            && match self.place {
                Place::Value => !is("default"),
                Place::AfterValue => self.statement == Statement::Set,
                Place::Outside | Place::AfterSet | Place::Name => false,
            };
        self.place = match (self.place, part) {
            (Place::AfterSet, _) if is("session") || is("local") => Place::AfterSet,
            (Place::AfterSet, _) if is("role") || is("authorization") => Place::Value,
            // The name can begin with such a word: `local.tenant`.
            (Place::AfterSet, Part::Sign('.')) => Place::Name,
            (Place::AfterSet, _) if is_name => Place::Name,
            (Place::Name, Part::Sign('=')) => Place::Value,
            (Place::Name, _) if is("to") || is("zone") => Place::Value,
            (Place::Name, Part::Sign('.')) => Place::Name,
            (Place::Name, _) if is_name => Place::Name,
            (Place::Value, Part::Sign(_)) => Place::Value,
            (Place::Value, _) => Place::AfterValue,
            (Place::AfterValue, Part::Sign(_)) => Place::Value,
            (Place::AfterValue, _) if self.statement == Statement::Set => Place::AfterValue,
            _ if self.statement == Statement::Definition && is("set") => Place::AfterSet,
            _ => Place::Outside,
        };
        is_value
    }
}

#[cfg(test)]
mod tests {
    use crate::normalise::without_values;

    #[test]
    fn values_of_settings_are_hidden_without_quotes_too() {
        for (sql, expected) in [
            ("SET my.x TO acme", "SET my.x TO ?"),
            ("set local my.tenant = acme", "set local my.tenant = ?"),
            ("set session \"my\".\"x\" to \"Acme Ltd\"", "set session \"my\".\"x\" to ?"),
            ("set my.x = 'acme', other", "set my.x = ?, ?"),
            ("set my.x /* to a */ = e'it\\'s acme'", "set my.x = ?"),
            ("set my.x to - 5", "set my.x to - ?"),
            ("set my.x to acme-corp.example", "set my.x to ?-?.?"),
            ("set my.x to acme corp", "set my.x to ? ?"),
            ("set my.x to $1", "set my.x to $1"),
            ("set search_path to shop, public; select a from b", "set search_path to ?, ?; select a from b"),
            ("begin; set local my.x to acme; commit", "begin; set local my.x to ?; commit"),
            ("set time zone utc", "set time zone ?"),
            ("set role tenant_acme", "set role ?"),
            ("set session authorization tenant_acme", "set session authorization ?"),
            ("set my.x to default", "set my.x to default"),
            ("set local.x to acme", "set local.x to ?"),
            ("set session local.x = acme, b", "set session local.x = ?, ?"),
            ("set transaction.x to acme", "set transaction.x to ?"),
            ("set session constraints.x to acme", "set session constraints.x to ?"),
            ("alter role ann set session.x to acme", "alter role ann set session.x to ?"),
            (
                "alter role ann in database shop set my.x to acme",
                "alter role ann in database shop set my.x to ?",
            ),
            ("alter system set my.x = acme", "alter system set my.x = ?"),
            (
                "create function f() returns int set my.x = acme, b set my.y to c language sql as 'select 1'",
                "create function f() returns int set my.x = ?, ? set my.y to ? language sql as ?",
            ),
        ] {
            assert_eq!(without_values(sql, 200), expected, "{sql}");
        }
    }

    #[test]
    fn names_that_are_no_values_stay() {
        for sql in [
            "update t set a = b, c = d where e = f",
            "insert into t select a from b on conflict (a) do update set a = excluded.a",
            "explain update t set a = b",
            "set transaction isolation level serializable, read only",
            "set session characteristics as transaction read write",
            "set constraints all deferred",
            "alter table t alter column a set not null, alter column b set data type text",
            "alter table t set schema other",
            "create table t (a int references b on delete set null on update cascade, c int)",
            "reset my.x",
            "show my.x",
        ] {
            assert_eq!(without_values(sql, 200), sql);
        }
    }
}

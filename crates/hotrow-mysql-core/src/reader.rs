//! The tokens and the grammar of the statements that can be packed. Both are much smaller than the server's, so that a text which
//! is read here means the same to the server in every `sql_mode` and character set: only ASCII, no backslash, no double quote, no
//! comment, no variable, and no function but `now()`.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name without quotes, or a keyword.
    Word(&'a str),
    /// The same right before a parenthesis. The server takes some names as those of its own functions only then: with a blank
    /// between, they can be names of stored functions.
    Call(&'a str),
    /// A name in backticks.
    Quoted(&'a str),
    /// Digits, with or without a decimal point.
    Number(&'a str),
    /// The text between quotes, with doubled quotes inside.
    Text(&'a str),
    /// An operator, a parenthesis, a comma or a point.
    Sign(&'a str),
}

/// A text without the semicolon that can end it.
pub fn without_end(text: &str) -> &str {
    let text = text.trim_ascii_end();
    text.strip_suffix(';').unwrap_or(text)
}

/// The tokens of a text. None if it has anything else.
pub fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_ascii());
    while let Some(first) = rest.bytes().next() {
        let (token, length) = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let length = end(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let is_call = rest[length..].starts_with('(');
                let token = if is_call { Token::Call } else { Token::Word };
                (token(&rest[..length]), length)
            }
            b'0'..=b'9' => {
                let length = end(rest, |byte| byte.is_ascii_digit() || byte == b'.');
                let after = rest.as_bytes().get(length).copied().unwrap_or(b' ');
                // 1e5, 0x1 and 1a are other things.
                if after.is_ascii_alphanumeric() || after == b'_' || rest[..length].ends_with('.') {
                    return None;
                }
                (Token::Number(&rest[..length]), length)
            }
            b'`' => {
                let length = rest[1..].find('`')?;
                (Token::Quoted(&rest[1..=length]), length + 2)
            }
            b'\'' => {
                let length = text_end(rest)?;
                (Token::Text(&rest[1..length - 1]), length)
            }
            _ => {
                let signs = ["<=", ">=", "<>", "!=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ",", "."];
                let sign = signs.into_iter().find(|sign| rest.starts_with(sign))?;
                let is_comment = rest.starts_with("--") || rest.starts_with("/*");
                (Token::Sign((!is_comment).then_some(sign)?), sign.len())
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_ascii_start();
    }
    let is_plain = text.is_ascii() && !text.contains(['\\', '\0']);
    is_plain.then_some(tokens)
}

fn end(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len())
}

/// The length of a text in quotes.
fn text_end(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text[at..].find('\'')? + 1;
        if !text[at..].starts_with('\'') {
            return Some(at);
        }
        at += 1;
    }
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Update,
    Delete,
    Insert,
    Replace,
}

/// What stands for all columns.
pub const ALL: &str = "*";

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal<'a> {
    Integer(&'a str),
    Text(&'a str),
}

/// Columns, each with its value.
pub type Equals<'a> = Vec<(&'a str, Literal<'a>)>;

/// A statement on one table.
#[derive(Debug)]
pub struct Statement<'a> {
    pub kind: Kind,
    pub database: Option<&'a str>,
    pub table: &'a str,
    /// The columns that it compares with a literal, or gives a literal, at the top level: of each row that it inserts.
    pub rows: Vec<Equals<'a>>,
    /// The columns that it assigns. For INSERT: on a duplicate key.
    pub assigned: Vec<&'a str>,
    /// The columns that it returns.
    pub returned: Vec<&'a str>,
    /// All columns that it names apart from those.
    pub columns: Vec<&'a str>,
    /// Whether it calculates with integers only, without a division.
    pub is_integral: bool,
}

/// Reads a statement. None if its form is not the one of a statement that can be packed.
pub fn read(text: &str) -> Option<Statement<'_>> {
    let tokens = tokens(without_end(text))?;
    let mut parser = Parser { tokens: &tokens, columns: Vec::new() };
    let statement = parser.statement()?;
    let is_integral = |token: &Token<'_>| match token {
        Token::Text(_) | Token::Sign("/") => false,
        Token::Number(digits) => !digits.contains('.'),
        Token::Call(name) => !name.eq_ignore_ascii_case("now"),
        _ => true,
    };
    let is_integral = tokens.iter().all(is_integral) && statement.returned.is_empty();
    (parser.tokens.is_empty()).then_some(Statement { is_integral, ..statement })
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    columns: Vec<&'a str>,
}

/// Words that the server does not read as the name of a column without quotes, or that begin something else.
const RESERVED: [&str; 34] = [
    "and",
    "or",
    "not",
    "is",
    "null",
    "in",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "set",
    "where",
    "values",
    "value",
    "on",
    "duplicate",
    "key",
    "update",
    "limit",
    "order",
    "returning",
    "default",
    "current_user",
    "current_role",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "interval",
    "binary",
];

impl<'a> Parser<'_, 'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    /// Takes this keyword or sign, if it is next.
    fn takes(&mut self, wanted: &str) -> bool {
        let is_it = match self.tokens.first() {
            Some(Token::Word(word) | Token::Call(word)) => word.eq_ignore_ascii_case(wanted),
            Some(Token::Sign(sign)) => *sign == wanted,
            _ => false,
        };
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect(&mut self, wanted: &str) -> Option<()> {
        self.takes(wanted).then_some(())
    }

    fn name(&mut self) -> Option<&'a str> {
        match self.next()? {
            Token::Word(word) | Token::Call(word) => {
                (!RESERVED.iter().any(|one| one.eq_ignore_ascii_case(word))).then_some(word)
            }
            Token::Quoted(name) => Some(name),
            _ => None,
        }
    }

    fn table(&mut self) -> Option<(Option<&'a str>, &'a str)> {
        let first = self.name()?;
        if self.takes(".") { Some((Some(first), self.name()?)) } else { Some((None, first)) }
    }

    fn statement(&mut self) -> Option<Statement<'a>> {
        if self.takes("update") {
            let (database, table) = self.table()?;
            self.expect("set")?;
            let assigned = self.assignments(false)?;
            let rows = vec![self.conditions()?];
            return Some(self.finish(Kind::Update, database, table, rows, assigned));
        }
        if self.takes("delete") {
            self.expect("from")?;
            let (database, table) = self.table()?;
            let rows = vec![self.conditions()?];
            let statement = self.finish(Kind::Delete, database, table, rows, Vec::new());
            return self.returning(statement);
        }
        let kind = if self.takes("replace") { Kind::Replace } else { Kind::Insert };
        if kind == Kind::Insert {
            self.expect("insert")?;
        }
        self.expect("into")?;
        let (database, table) = self.table()?;
        let rows = self.rows()?;
        let mut assigned = Vec::new();
        if kind == Kind::Insert && self.takes("on") {
            for word in ["duplicate", "key", "update"] {
                self.expect(word)?;
            }
            assigned = self.assignments(true)?;
        }
        let statement = self.finish(kind, database, table, rows, assigned);
        self.returning(statement)
    }

    /// `returning id, item.stock`
    fn returning(&mut self, statement: Statement<'a>) -> Option<Statement<'a>> {
        let mut returned = Vec::new();
        if self.takes("returning") {
            loop {
                returned.push(if self.takes(ALL) { ALL } else { self.returned(statement.table)? });
                if !self.takes(",") {
                    break;
                }
            }
        }
        Some(Statement { returned, ..statement })
    }

    /// A column, which can be written with its table.
    fn returned(&mut self, table: &str) -> Option<&'a str> {
        let first = self.name()?;
        if !self.takes(".") {
            return Some(first);
        }
        if first == table { self.name() } else { None }
    }

    fn finish(
        &mut self,
        kind: Kind,
        database: Option<&'a str>,
        table: &'a str,
        rows: Vec<Equals<'a>>,
        assigned: Vec<&'a str>,
    ) -> Statement<'a> {
        Statement {
            kind,
            database,
            table,
            rows,
            assigned,
            returned: Vec::new(),
            columns: std::mem::take(&mut self.columns),
            is_integral: false,
        }
    }

    /// `(a, b) values (1, 'x'), (2, 'y')`
    fn rows(&mut self) -> Option<Vec<Equals<'a>>> {
        self.expect("(")?;
        let mut names = vec![self.name()?];
        while self.takes(",") {
            names.push(self.name()?);
        }
        for word in [")", "values"] {
            self.expect(word)?;
        }
        let mut rows = vec![self.row(&names)?];
        while self.takes(",") {
            rows.push(self.row(&names)?);
        }
        self.columns.extend(names);
        Some(rows)
    }

    fn row(&mut self, names: &[&'a str]) -> Option<Equals<'a>> {
        self.expect("(")?;
        let mut equals = Vec::new();
        for (place, name) in names.iter().enumerate() {
            if place > 0 {
                self.expect(",")?;
            }
            if let Operand::Literal(literal) = self.expression(false, 0)? {
                equals.push((*name, literal));
            }
        }
        self.expect(")")?;
        Some(equals)
    }

    fn assignments(&mut self, in_insert: bool) -> Option<Vec<&'a str>> {
        let mut assigned = Vec::new();
        loop {
            let column = self.name()?;
            self.expect("=")?;
            self.expression(in_insert, 0)?;
            assigned.push(column);
            self.columns.push(column);
            if !self.takes(",") {
                return Some(assigned);
            }
        }
    }

    /// `where a = 1 and b >= 2`
    fn conditions(&mut self) -> Option<Vec<(&'a str, Literal<'a>)>> {
        self.expect("where")?;
        let mut equals = Vec::new();
        loop {
            let left = self.expression(false, 0)?;
            let Token::Sign(sign) = self.next()? else { return None };
            if !["=", "<", ">", "<=", ">=", "<>", "!="].contains(&sign) {
                return None;
            }
            let right = self.expression(false, 0)?;
            if let (Operand::Column(column), "=", Operand::Literal(literal)) = (left, sign, right) {
                equals.push((column, literal));
            }
            if !self.takes("and") {
                return Some(equals);
            }
        }
    }

    fn expression(&mut self, in_insert: bool, depth: usize) -> Option<Operand<'a>> {
        let first = self.term(in_insert, depth)?;
        let mut is_alone = true;
        while ["+", "-", "*", "/"].into_iter().any(|sign| self.takes(sign)) {
            self.term(in_insert, depth)?;
            is_alone = false;
        }
        Some(if is_alone { first } else { Operand::Other })
    }

    fn term(&mut self, in_insert: bool, depth: usize) -> Option<Operand<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        if self.takes("null") {
            return Some(Operand::Other);
        }
        if in_insert && self.takes("values") {
            self.expect("(")?;
            let column = self.name()?;
            self.columns.push(column);
            self.expect(")")?;
            return Some(Operand::Other);
        }
        match *self.tokens.first()? {
            Token::Sign("-") => {
                self.next();
                self.term(in_insert, depth + 1)?;
                Some(Operand::Other)
            }
            Token::Sign("(") => {
                self.next();
                self.expression(in_insert, depth + 1)?;
                self.expect(")")?;
                Some(Operand::Other)
            }
            Token::Sign(_) => None,
            Token::Number(digits) => {
                self.next();
                let is_integer = !digits.contains('.');
                Some(if is_integer { Operand::Literal(Literal::Integer(digits)) } else { Operand::Other })
            }
            Token::Text(text) => {
                self.next();
                Some(Operand::Literal(Literal::Text(text)))
            }
            Token::Call(_) => {
                for part in ["now", "(", ")"] {
                    self.expect(part)?;
                }
                Some(Operand::Other)
            }
            Token::Word(_) | Token::Quoted(_) => {
                let name = self.name()?;
                self.columns.push(name);
                Some(Operand::Column(name))
            }
        }
    }
}

/// What an expression is.
#[derive(Debug)]
enum Operand<'a> {
    Column(&'a str),
    Literal(Literal<'a>),
    Other,
}

/// Parentheses in parentheses.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_by_key_are_read() {
        let text =
            "UPDATE `shop`.item SET stock = stock - 1, note='it''s', at=now() WHERE id = 7 AND stock >= 1;";
        let update = read(text).unwrap();
        assert_eq!((update.kind, update.database, update.table), (Kind::Update, Some("shop"), "item"));
        assert_eq!(update.rows, [[("id", Literal::Integer("7"))]]);
        assert_eq!(update.assigned, ["stock", "note", "at"]);
        let delete = read("delete from t where a='x' and b = 1 and a < b").unwrap();
        assert_eq!(delete.rows, [[("a", Literal::Text("x")), ("b", Literal::Integer("1"))]]);
        assert!(!delete.is_integral);
        let insert =
            read("insert into t(id, n) values (1, -2) on duplicate key update n = n + values(n)").unwrap();
        assert_eq!((insert.rows[0].len(), insert.assigned, insert.is_integral), (1, vec!["n"], true));
        for other in ["a / 2", "1.5", "now()", "''"] {
            let text = format!("update t set a = {other} where id = 1");
            assert!(!read(&text).unwrap().is_integral, "{text}");
        }
    }

    #[test]
    fn rows_are_read() {
        let insert =
            read("insert into t (id, n) values (1, -2), (3, 4) on duplicate key update n = values(n)")
                .unwrap();
        let (one, three) = (Literal::Integer("1"), Literal::Integer("3"));
        assert_eq!(insert.rows, [vec![("id", one)], vec![("id", three), ("n", Literal::Integer("4"))]]);
    }

    #[test]
    fn returned_columns_are_read() {
        fn returned(text: &str) -> Vec<&str> {
            read(text).unwrap().returned
        }
        assert_eq!(returned("delete from t where id = 1 returning id, `t`.n, *"), ["id", "n", "*"]);
        let replace = read("replace into t (id) values (1) returning T").unwrap();
        assert_eq!((replace.kind, replace.returned, replace.is_integral), (Kind::Replace, vec!["T"], false));
        assert!(read("replace into t (id) values (1)").unwrap().is_integral);
    }

    #[test]
    fn everything_else_is_not_read() {
        for text in [
            "update t set a = 1",
            "update t set a = 1 where id = 1 limit 1",
            "update t set a = 1 where id = 1 or id = 2",
            "update t set a = rand() where id = 1",
            "update t set a = now () where id = 1",
            "update t set a = now where id = 1; ;",
            "update t set a = `now`() where id = 1",
            "update t set a = last_insert_id(a + 1) where id = 1",
            "update t set a = @x where id = 1",
            "update t set a = \"x\" where id = 1",
            "update t set a = 'x\\'' where id = 1",
            "update t set a = _latin1'x' where id = 1",
            "update t set a = 1e5 where id = 1",
            "update t set a = 0x41 where id = 1",
            "update t set a = 1 where id = 1 -- x",
            "update t set a = 1 where id = 1 # x",
            "update t set a = /*! 1 + */ 1 where id = 1",
            "update t set a = 'x' 'y' where id = 1",
            "update t set a = (select 1) where id = 1",
            "update t, u set a = 1 where id = 1",
            "update t set a = default where id = 1",
            "update t set a = current_user where id = 1",
            "delete from t where id = 1 returning id + 1",
            "delete from t where id = 1 returning id x",
            "delete from t where id = 1 returning u.id",
            "delete from t where id = 1 returning",
            "update t set a = 1 where id = 1 returning id",
            "replace into t (id) values (1) on duplicate key update id = 1",
            "replace t (id) values (1)",
            "insert ignore into t (id) values (1) returning id",
            "insert into t values (1)",
            "insert into t (id) values (1), (2),",
            "insert into t (id) values (1), (2, 3)",
            "insert into t (id) values (1) (2)",
            "insert into t (id, n) values (1, 2), (3)",
            "insert ignore into t (id) values (1)",
            "update t set a = 'é' where id = 1",
            "update t set a = 1 where id = 1; delete from t",
            "select 1",
            "",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(
            read(&format!("update t set a = {}1{} where id = 1", "(".repeat(99), ")".repeat(99))).is_none()
        );
    }
}

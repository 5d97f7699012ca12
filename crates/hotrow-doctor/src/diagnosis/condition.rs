//! The columns that the WHERE of a statement compares with values: those of an index that finds its rows. The text is only looked
//! at, because the server has accepted it.

/// A word, an operator or a sign of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a keyword; a name in quotes is never a keyword.
    Word { text: String, quoted: bool },
    /// Operator characters that belong together.
    Operator(String),
    /// Any other sign, or a value.
    Other(char),
}

/// Keywords that end a WHERE.
const ENDS: [&str; 13] = [
    "group",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "returning",
    "having",
    "window",
    "union",
    "intersect",
    "except",
    "on",
];
/// Keywords that compare a column with a value that comes after them.
const COMPARES: [&str; 4] = ["in", "like", "between", "is"];
/// Statements whose conditions can be about several tables.
const SEVERAL: [&str; 3] = ["join", "using", "with"];

/// The columns with `=` or IN first, then those of other comparisons. None if the statement has no such condition, or if it is
/// about several tables.
pub fn columns(statement: &str) -> Vec<String> {
    let tokens = tokens(statement);
    let is = |token: &Token, words: &[&str]| matches!(token, Token::Word { text, quoted: false } if words.contains(&text.as_str()));
    let selects = tokens.iter().filter(|token| is(token, &["select", "where"])).count();
    let from = tokens.iter().skip_while(|token| !is(token, &["from"])).skip(1);
    let comma = from.take_while(|token| !is(token, &["where"])).any(|token| *token == Token::Other(','));
    if selects > 2 || comma || tokens.iter().any(|token| is(token, &SEVERAL)) {
        return Vec::new();
    }
    let mut condition = tokens.iter().skip_while(|token| !is(token, &["where"])).skip(1);
    let condition: Vec<&Token> = condition.by_ref().take_while(|token| !is(token, &ENDS)).collect();
    let (mut equal, mut others): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for two in condition.windows(2) {
        let [Token::Word { text: name, quoted }, next] = two else { continue };
        if !quoted && (["and", "or", "not", "any", "all", "null"].contains(&name.as_str())) {
            continue;
        }
        let list = match next {
            Token::Operator(operator) if operator == "=" => &mut equal,
            Token::Operator(operator) if ["<", ">", "<=", ">="].contains(&operator.as_str()) => &mut others,
            next if is(next, &["in"]) => &mut equal,
            next if is(next, &COMPARES) => &mut others,
            _ => continue,
        };
        list.push(name.clone());
    }
    let mut found: Vec<String> = Vec::new();
    for name in equal.into_iter().chain(others) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn tokens(statement: &str) -> Vec<Token> {
    let is_operator = |c: char| "=<>!~*+-/%^&|#@?".contains(c);
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = Vec::new();
    let mut letters = statement.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut take = |wanted: &dyn Fn(char) -> bool| {
            let mut text = letter.to_string();
            text.extend(std::iter::from_fn(|| letters.next_if(|c| wanted(*c))));
            text
        };
        match letter {
            '"' => {
                let text = take(&|c| c != '"').split_off(1);
                letters.next();
                found.push(Token::Word { text, quoted: true });
            }
            '\'' => {
                take(&|c| c != '\'');
                letters.next();
                found.push(Token::Other('\''));
            }
            '$' => {
                take(&|c| c.is_ascii_digit());
                found.push(Token::Other('$'));
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                found.push(Token::Word { text: take(&is_name).to_lowercase(), quoted: false });
            }
            letter if is_operator(letter) => found.push(Token::Operator(take(&is_operator))),
            letter if letter.is_whitespace() => {}
            letter => found.push(Token::Other(letter)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn compared_columns_are_found_those_with_equality_first() {
        for (statement, expected) in [
            ("select sum(amount) from orders where customer = $1", &["customer"][..]),
            (
                "SELECT * FROM orders o WHERE o.created < $1 AND o.Customer = $2 ORDER BY id",
                &["customer", "created"],
            ),
            (
                "update orders set amount = $1 where \"My Column\" = $2 and state in ($3, $4)",
                &["My Column", "state"],
            ),
            ("delete from orders where created between $1 and $2 returning id", &["created"]),
            ("select id from orders where note like $1 and paid is null limit $2", &["note", "paid"]),
            ("select id from orders where customer = any ($1) and customer = $2", &["customer"]),
            ("select id from orders where note = 'a where b = c'", &["note"]),
        ] {
            assert_eq!(columns(statement), expected, "{statement}");
        }
    }

    #[test]
    fn statements_of_several_tables_and_without_a_comparison_have_none() {
        for statement in [
            "select count(*) from orders",
            "select 1 from orders o join item i on i.id = o.item where i.name = $1",
            "select 1 from orders o, item i where i.id = o.item",
            "select 1 from orders where item in (select id from item where name = $1)",
            "select 1 from orders where lower(note) ~ $1",
            "where",
        ] {
            assert!(columns(statement).is_empty(), "{statement}: {:?}", columns(statement));
        }
    }
}

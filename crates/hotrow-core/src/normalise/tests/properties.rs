//! Tests arbitrary texts: no panic, and the same tokens after the literals are put back. Single cases are in
//! `mod`.

use proptest::prelude::*;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::*;

/// The tokens of a text without white space, comments and a final semicolon. `None` if the tokeniser cannot
/// read it, or if it takes the beginning of a comment for part of an operator.
fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().ok()?;
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let misread = |token: &Token| matches!(token, Token::CustomBinaryOperator(op) if op.contains("--") || op.contains("/*"));
    if tokens.iter().any(misread) {
        return None;
    }
    if tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    // `date 'x'` and `'x'::date` are the same here.
    let mut at = 1;
    while at < tokens.len() {
        if let [Token::Word(name), Token::SingleQuotedString(_)] = &tokens[at - 1..=at]
            && ["date", "interval"].contains(&&*name.value)
        {
            tokens.swap(at - 1, at);
            tokens.insert(at, Token::DoubleColon);
        }
        at += 1;
    }
    Some(tokens)
}

/// Puts the literals back in the place of the parameters.
fn with_literals(shape: &Shape<'_>) -> Vec<Token> {
    let mut literals = shape.literals();
    let mut tokens = tokens(shape.shape).unwrap_or_else(|| panic!("cannot be read: {}", shape.shape));
    for token in &mut tokens {
        // The tokeniser calls `?` and `@a` placeholders too.
        let Token::Placeholder(name) = token else { continue };
        if name.strip_prefix('$').is_none_or(|number| number.parse::<u16>().is_err()) {
            continue;
        }
        let literal = literals.next().unwrap_or_else(|| panic!("no literal for {name} in {}", shape.shape));
        let value = String::from_utf8(literal.value.to_vec()).unwrap();
        *token = match literal.type_oid {
            UNSPECIFIED => Token::SingleQuotedString(value),
            _ => Token::Number(value, false),
        };
    }
    assert_eq!(literals.len(), 0);
    tokens
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "select",
            "from",
            "where",
            "and",
            "or",
            "in",
            "values",
            "set",
            "limit",
            "order by",
            "group by",
            "as",
            "interval",
            "date",
            "coalesce",
            "count",
            "t",
            "a1",
            "\"Q\"",
            "is",
            "null",
            "collate",
            "on conflict",
            "do update",
            "insert into",
            "between",
            "like",
            "e",
            "u",
            "not",
            "case",
            "when",
            "then",
            "else",
            "end",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            "(", ")", "[", "]", ",", ".", "=", "<", "-", "+", "::", "*", "/", "||", "->>", "--x\n",
            "/* c */", "/*", "*/", ";", "$$", "$a$", "\n", "\t", "'", "\"", "$1", "&", "\\",
        ])
        .prop_map(str::to_owned),
        "[0-9]{1,11}".prop_map(|digits| digits),
        "[0-9]{0,3}\\.[0-9]{1,3}(e[0-9])?",
        "'[a-z ü]{0,4}(''[a-z]{0,3})?'",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_causes_a_panic(sql in any::<String>()) {
        let mut normaliser = Normaliser::new();
        let shape = normaliser.run(&sql);
        prop_assert!(shape.signature.len() > shape.shape.len());
    }

    #[test]
    fn putting_the_literals_back_gives_the_same_tokens(
        fragments in prop::collection::vec(fragment(), 0..24),
        glue in prop::collection::vec(prop::bool::ANY, 24),
    ) {
        let mut sql = "select ".to_owned();
        for (fragment, glued) in fragments.iter().zip(glue) {
            sql.push_str(fragment);
            if !glued {
                sql.push(' ');
            }
        }
        let mut normaliser = Normaliser::new();
        let shape = normaliser.run(&sql);
        if !shape.verbatim && let Some(original) = tokens(&sql) {
            prop_assert_eq!(with_literals(&shape), original, "{} -> {}", sql, shape.shape);
        }
    }
}

//! The words that decide whether a literal can be taken out of the text. They do not tell what a statement
//! means.

/// The effect of an unquoted word on the literals after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// An expression can start here. A literal that follows is an operand.
    Operand,
    /// Begins a clause in which numbers are positions in the select list.
    Positions,
    /// Begins ON CONFLICT, whose predicate must match an index's predicate literally.
    Predicate,
    /// Ends a clause of positions. An expression can start here.
    Frees,
    /// Ends any such clause. A name follows.
    Ends,
    /// FETCH FIRST or NEXT. A number can follow, and a parenthesis makes it a function.
    Count,
    /// A function whose arguments keep their types if a literal becomes a parameter of the literal's type: none of its parameters
    /// is of type "any" or names an object.
    Typed,
    /// A function with parameters of type "any". A string there is text.
    Any,
    /// Any other word: a name, a type or a function.
    Other,
}

impl Role {
    /// An expression can start after the word.
    pub(super) fn precedes_operand(self) -> bool {
        matches!(self, Self::Operand | Self::Frees | Self::Count)
    }

    /// A parenthesis after the word makes it a function or a type whose literals must stay.
    pub(super) fn is_callable(self) -> bool {
        matches!(self, Self::Other | Self::Ends | Self::Count | Self::Positions | Self::Predicate)
    }
}

/// Folds ASCII letters into `buffer`. `None` for words longer than any relevant word.
fn fold<'a>(word: &[u8], buffer: &'a mut [u8; 12]) -> Option<&'a [u8]> {
    let folded = buffer.get_mut(..word.len())?;
    folded.copy_from_slice(word);
    folded.make_ascii_lowercase();
    Some(folded)
}

/// The role of a word before a literal or a parenthesis.
pub(super) fn role(word: &[u8]) -> Role {
    let mut buffer = [0; 12];
    match fold(word, &mut buffer).unwrap_or_default() {
        b"and" | b"or" | b"not" | b"in" | b"like" | b"ilike" | b"between" | b"symmetric" | b"then"
        | b"else" | b"when" | b"case" | b"values" | b"returning" | b"select" | b"on" | b"as" | b"join"
        | b"lateral" | b"all" | b"any" | b"some" | b"exists" | b"materialized" => Role::Operand,
        b"first" | b"next" => Role::Count,
        b"order" | b"group" | b"distinct" => Role::Positions,
        b"conflict" => Role::Predicate,
        b"where" | b"from" | b"limit" | b"offset" | b"fetch" | b"having" | b"union" | b"except"
        | b"intersect" => Role::Frees,
        b"do" | b"set" => Role::Ends,
        b"concat" | b"concat_ws" | b"format" => Role::Any,
        b"coalesce" | b"greatest" | b"least" | b"nullif" | b"abs" | b"ceil" | b"floor" | b"round"
        | b"trunc" | b"mod" | b"lower" | b"upper" | b"initcap" | b"md5" | b"length" | b"char_length"
        | b"lpad" | b"rpad" | b"btrim" | b"ltrim" | b"rtrim" | b"repeat" | b"replace" | b"reverse"
        | b"split_part" | b"strpos" | b"substr" | b"substring" | b"left" | b"right" | b"translate"
        | b"date_part" | b"date_trunc" | b"to_char" | b"to_date" | b"to_number" | b"to_timestamp" => {
            Role::Typed
        }
        _ => Role::Other,
    }
}

/// Whether a string behind this word is a constant of the type with this name: `date '2020-01-01'`.
pub(super) fn is_type_of_constants(word: &[u8]) -> bool {
    if !(4..=11).contains(&word.len()) || !matches!(word[0] | 0x20, b'd' | b'i' | b't') {
        return false; // a cheap first check
    }
    let mut buffer = [0; 12];
    matches!(
        fold(word, &mut buffer).unwrap_or_default(),
        b"date" | b"interval" | b"time" | b"timestamp" | b"timestamptz"
    )
}

/// Whether this word behind a constant belongs to it: `interval '5' day`.
pub(super) fn is_unit(word: &[u8]) -> bool {
    let mut buffer = [0; 12];
    matches!(
        fold(word, &mut buffer).unwrap_or_default(),
        b"year" | b"month" | b"day" | b"hour" | b"minute" | b"second"
    )
}

/// A cheap first check that avoids the comparison for most words: whether this word can change the clause.
pub(super) fn may_turn_clause(word: &[u8]) -> bool {
    (2..=9).contains(&word.len())
        && matches!(
            word[0] | 0x20,
            b'o' | b'g' | b'd' | b'c' | b'w' | b'f' | b'l' | b'h' | b'u' | b'e' | b'i' | b's'
        )
}

/// Only these statements have literals that can become parameters and that change often.
pub(super) fn starts_query(word: &[u8]) -> bool {
    let mut buffer = [0; 12];
    matches!(
        fold(word, &mut buffer).unwrap_or_default(),
        b"select" | b"insert" | b"update" | b"delete" | b"with" | b"values"
    )
}

/// After a string literal, these words need the literal itself and not a parameter of unknown type.
pub(super) fn needs_literal_before(word: &[u8]) -> bool {
    let mut buffer = [0; 12];
    matches!(
        fold(word, &mut buffer).unwrap_or_default(),
        b"is" | b"isnull" | b"notnull" | b"collate" | b"uescape"
    )
}

//! One text for two forms of the schema. A migration is the text of the hotrow schema in one schema, and of its copies and
//! functions in a distributed one. Where they differ, it has both texts: `{{one}}here{{many}}there{{end}}`. Either of the
//! two can be missing. A line with a single mark is omitted.
//!
//! `hotrow.` is the schema of a shard in the second text. `{{pack}}.` is the schema that all shards share, in names that clients
//! know. Other `{{...}}` in the second text stand for what only the node knows: see `distribute/shard.rs`.

use std::borrow::Cow;

/// The hotrow schema that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pack {
    /// The hotrow schema in one schema.
    One,
    /// A distributed hotrow schema.
    Many,
}

const MARKS: [(&str, Option<Pack>); 3] =
    [("{{one}}", Some(Pack::One)), ("{{many}}", Some(Pack::Many)), ("{{end}}", None)];

/// The text for a pack.
pub fn text(source: &'static str, pack: Pack) -> Cow<'static, str> {
    if !source.contains("{{") {
        return Cow::Borrowed(source);
    }
    let (mut out, mut rest, mut only) = (String::with_capacity(source.len()), source, None);
    let next = |text: &str| {
        let places = MARKS.into_iter().filter_map(|(mark, only)| Some((text.find(mark)?, mark, only)));
        places.min_by_key(|(place, ..)| *place)
    };
    while let Some((place, mark, becomes)) = next(rest) {
        let (before, found) = rest.split_at(place);
        if only.is_none_or(|only| only == pack) {
            out.push_str(before);
        }
        rest = &found[mark.len()..];
        let begins_line = source[..source.len() - found.len()].ends_with('\n');
        if begins_line {
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        only = becomes;
    }
    out.push_str(rest);
    Cow::Owned(if pack == Pack::One { out.replace("{{pack}}", "hotrow") } else { out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pack_has_its_own_text() {
        let source = "{{pack}}.a{{one}} b{{many}} c{{end}};\n{{many}}\nd\n{{end}}\ne{{one}}f{{end}}\n";
        assert_eq!(text(source, Pack::One), "hotrow.a b;\nef\n");
        assert_eq!(text(source, Pack::Many), "{{pack}}.a c;\nd\ne\n");
    }
}

//! The server's description of a prepared statement: a ParameterDescription, and a RowDescription or NoData.

use bytes::Bytes;
use hotrow_wire::Reader;
use hotrow_wire::backend::tag;
use hotrow_wire::{Error, split};

/// Bytes of a column's origin: the OID of its table, and its number there.
const ORIGIN_BYTES: usize = 6;
/// Bytes of its type, size, modifier and format.
const TYPE_BYTES: usize = 12;

/// The types of the parameters, four bytes each.
pub fn parameter_types(description: &Bytes) -> Option<Bytes> {
    let frame = split(description, |_| usize::MAX).ok().flatten()?;
    frame.body().get(2..).map(|types| description.slice_ref(types))
}

/// Whether a statement with the first description can be run for one with the second. Parameters, and names and types of columns are
/// the same. The tables can be others: a prepared statement goes on after its table was dropped and created anew, and so does one
/// that the server itself plans again.
pub fn are_alike(one: &[u8], other: &[u8]) -> bool {
    compare(one, other).unwrap_or(false)
}

fn compare(mut one: &[u8], mut other: &[u8]) -> Result<bool, Error> {
    loop {
        let (a, b) = match (split(one, |_| usize::MAX)?, split(other, |_| usize::MAX)?) {
            (Some(a), Some(b)) if a.tag == b.tag => (a, b),
            (None, None) => return Ok(one == other),
            _ => return Ok(false),
        };
        let are_alike = match a.tag {
            tag::ROW_DESCRIPTION => have_like_columns(a.body(), b.body())?,
            _ => a.bytes == b.bytes,
        };
        if !are_alike {
            return Ok(false);
        }
        (one, other) = (&one[a.bytes.len()..], &other[b.bytes.len()..]);
    }
}

fn have_like_columns(one: &[u8], other: &[u8]) -> Result<bool, Error> {
    let (mut one, mut other) = (Reader::new(one), Reader::new(other));
    let columns = one.u16()?;
    if other.u16()? != columns {
        return Ok(false);
    }
    for _ in 0..columns {
        if column(&mut one)? != column(&mut other)? {
            return Ok(false);
        }
    }
    one.end()?;
    other.end()?;
    Ok(true)
}

/// The name and the type of the next column.
fn column<'a>(columns: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8]), Error> {
    let name = columns.cstr()?;
    columns.bytes(ORIGIN_BYTES)?;
    Ok((name, columns.bytes(TYPE_BYTES)?))
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};
    use hotrow_wire::put_frame;

    use super::*;

    /// A statement with one parameter and one column.
    fn described(parameter: u32, name: &str, origin: (u32, u16), of_type: u32) -> Bytes {
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, b't', |out| {
            out.put_u16(1);
            out.put_u32(parameter);
        });
        put_frame(&mut bytes, tag::ROW_DESCRIPTION, |out| {
            out.put_u16(1);
            out.extend_from_slice(name.as_bytes());
            out.put_u8(0);
            out.put_u32(origin.0);
            out.put_u16(origin.1);
            out.put_u32(of_type);
            out.extend_from_slice(&[0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        });
        bytes.freeze()
    }

    #[test]
    fn descriptions_are_alike_if_only_the_tables_differ() {
        let one = described(23, "n", (16_400, 2), 20);
        for (is_alike, other) in [
            (true, described(23, "n", (16_400, 2), 20)),
            (true, described(23, "n", (16_500, 2), 20)),
            (true, described(23, "n", (16_400, 1), 20)),
            (false, described(20, "n", (16_400, 2), 20)),
            (false, described(23, "m", (16_400, 2), 20)),
            (false, described(23, "n", (16_400, 2), 23)),
            (false, one.slice(..11)),
            (false, one.slice(..one.len() - 1)),
            (false, [&one[..], &one[..]].concat().into()),
        ] {
            assert_eq!(are_alike(&one, &other), is_alike, "{other:?}");
            assert_eq!(are_alike(&other, &one), is_alike, "{other:?}");
        }
        assert_eq!(parameter_types(&one).as_deref(), Some(&[0, 0, 0, 23][..]));
    }
}

//! Properties: written packets are read unchanged, in any pieces, and no bytes panic.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::capabilities::{CONNECT_ATTRS, CONNECT_WITH_DB, LOCAL_FILES, PLUGIN_AUTH, PROTOCOL_41, RELAYED};
use crate::command::{Command, ReplyShape};
use crate::handshake::{Greeting, Response, Switch};
use crate::message::{Err, Ok as OkPacket};
use crate::packet::{self, PAYLOAD_BYTES_MAX};
use crate::reply::{Progress, ReplyReader};
use crate::scan::{Scanned, Scanner};
use crate::{Reader, WireError, native};

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8..=255, 0..40)
}

fn scan(bytes: &[u8]) -> Vec<Scanned> {
    let (mut scanner, mut rest, mut found) = (Scanner::default(), bytes, Vec::new());
    while !rest.is_empty() {
        let (read, packet) = scanner.feed(rest);
        rest = &rest[read..];
        found.extend(packet);
    }
    found
}

fn packets(payloads: &[&[u8]]) -> Vec<Scanned> {
    let mut out = BytesMut::new();
    payloads.iter().fold(1, |sequence, payload| packet::put(&mut out, sequence, payload));
    scan(&out)
}

/// The index of the packet that ends the reply, and whether it is an error.
fn end(shape: ReplyShape, deprecates_eof: bool, payloads: &[&[u8]]) -> Option<(usize, bool)> {
    let mut reader = ReplyReader::new(shape, deprecates_eof).unwrap();
    packets(payloads).iter().enumerate().find_map(|(at, packet)| match reader.packet(packet).unwrap() {
        Progress::Ended { is_error, .. } => Some((at, is_error)),
        Progress::Continues => None,
    })
}

proptest! {
    #[test]
    fn payloads_are_read_unchanged_in_any_pieces(
        payloads in vec(vec(any::<u8>(), 0..300), 1..6), cuts in vec(1_usize..50, 1..200),
    ) {
        let mut out = BytesMut::new();
        payloads.iter().fold(0, |sequence, payload| packet::put(&mut out, sequence, payload));
        let (mut arrived, mut taken, mut rest) = (BytesMut::new(), Vec::new(), &out[..]);
        let (mut scanner, mut scanned) = (Scanner::default(), Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*cut));
            arrived.extend_from_slice(now);
            while let Some(packet) = packet::take(&mut arrived, 1000).unwrap() {
                taken.push(packet.payload.to_vec());
            }
            let mut piece = now;
            while !piece.is_empty() {
                let (read, packet) = scanner.feed(piece);
                piece = &piece[read..];
                scanned.extend(packet.map(|packet| (packet.length, packet.head().to_vec())));
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&taken, &payloads);
        let heads: Vec<_> = payloads.iter().map(|payload| (payload.len(), payload[..payload.len().min(96)].to_vec())).collect();
        prop_assert_eq!(scanned, heads);
        prop_assert!(scanner.is_between());
    }

    #[test]
    fn a_greeting_is_read_unchanged(
        version in text(), thread in any::<u32>(), nonce in vec(1_u8..=255, 20), capabilities in any::<u32>(),
        collation in any::<u8>(), status in any::<u16>(), extended in any::<u32>(), plugin in text(),
    ) {
        let plugin = if capabilities & PLUGIN_AUTH == 0 { Vec::new() } else { plugin };
        let greeting = Greeting { version, thread, nonce, capabilities, collation, status, extended, plugin };
        prop_assert_eq!(Greeting::read(&greeting.payload()), Ok(greeting.clone()));
        let limited = greeting.limited_to(RELAYED);
        prop_assert_eq!(limited.capabilities & LOCAL_FILES, 0);
        prop_assert_eq!((limited.capabilities & 1, limited.extended), (1, 0));
    }

    #[test]
    fn a_response_is_read_unchanged(
        flags in any::<u32>(), packet_bytes_max in any::<u32>(), collation in any::<u8>(), user in text(),
        proof in text(), database in option::of(text()), plugin in option::of(text()),
        attributes in option::of(vec(any::<u8>(), 0..400)),
    ) {
        let of = |bit, is_there: bool| if is_there { bit } else { 0 };
        let capabilities = flags & !(CONNECT_WITH_DB | PLUGIN_AUTH | CONNECT_ATTRS)
            | PROTOCOL_41
            | of(CONNECT_WITH_DB, database.is_some())
            | of(PLUGIN_AUTH, plugin.is_some())
            | of(CONNECT_ATTRS, attributes.is_some());
        let response = Response { capabilities, packet_bytes_max, collation, user, proof, database, plugin, attributes };
        prop_assert_eq!(Response::read(&response.payload()), Ok(response));
    }

    #[test]
    fn an_error_is_read_unchanged(code in any::<u16>(), message in "[ -~]{0,80}") {
        let error = Err { code, sqlstate: "42000".to_owned(), message };
        prop_assert!(OkPacket::read(&error.payload()).is_err());
        prop_assert_eq!(Err::read(&error.payload()), Ok(error));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200), shape in 0_usize..5, deprecates_eof in any::<bool>()) {
        let _ = (Greeting::read(&bytes), Response::read(&bytes), Switch::read(&bytes));
        let _ = (Err::read(&bytes), OkPacket::read(&bytes));
        let _ = packet::take(&mut BytesMut::from(&bytes[..]), 100);
        let _ = Reader::new(&bytes).length_encoded_bytes();
        let shapes = [
            ReplyShape::Single, ReplyShape::Results, ReplyShape::Rows, ReplyShape::Prepared, ReplyShape::Authentication,
        ];
        let mut reader = ReplyReader::new(shapes[shape], deprecates_eof).unwrap();
        for packet in scan(&bytes) {
            match reader.packet(&packet) {
                Ok(Progress::Continues) => {}
                Ok(Progress::Ended { .. }) | Err(_) => break,
            }
        }
    }

    #[test]
    fn a_key_is_recovered_from_the_proof(password in text(), other in text(), nonce in any::<[u8; 20]>()) {
        let key = native::key(&password);
        let kept = native::stored(&key);
        prop_assert_eq!(native::recover(&nonce, &native::proof(&nonce, &key), &kept), Some(key));
        let wrong = native::proof(&nonce, &native::key(&other));
        prop_assert_eq!(native::recover(&nonce, &wrong, &kept).is_some(), password == other);
    }
}

#[test]
fn payloads_of_16_mib_are_divided_and_joined() {
    for length in [PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1, 2 * PAYLOAD_BYTES_MAX] {
        let payload: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[1]).collect();
        let mut out = BytesMut::new();
        let next = packet::put(&mut out, 255, &payload);
        assert_eq!(usize::from(next), length / PAYLOAD_BYTES_MAX, "numbers begin again at 0");
        assert_eq!(scan(&out).iter().map(|packet| packet.length).collect::<Vec<_>>(), [length]);
        assert!(matches!(packet::take(&mut out.clone(), length - 1), Err(WireError::TooLarge { .. })));
        assert_eq!(packet::take(&mut out, length).unwrap().unwrap().payload, payload);
        assert!(out.is_empty());
    }
    let mut out = BytesMut::new();
    packet::put(&mut out, 7, &[1; PAYLOAD_BYTES_MAX]);
    let last = out.len() - 1;
    out[last] = 9;
    assert_eq!(packet::take(&mut out, usize::MAX), Err(WireError::Sequence));
}

#[test]
fn the_proof_is_the_one_of_the_servers() {
    // SELECT PASSWORD('secret') of MariaDB 10.11.
    let kept = native::stored(&native::key(b"secret"));
    let hex: String = kept.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(hex, "14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
}

#[test]
fn replies_end_where_the_server_ends_them() {
    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    const OK_MORE: &[u8] = &[0, 0, 0, 10, 0, 0, 0];
    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const EOF_MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
    const EOF_CURSOR: &[u8] = &[0xfe, 0, 0, 0x42, 0];
    const LAST: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const ERR: &[u8] = &[0xff, 0x28, 4, b'#', b'4', b'2', b'0', b'0', b'0'];
    const COLUMN: &[u8] = &[3, b'd', b'e', b'f'];
    const ROW: &[u8] = &[1, b'7'];
    let long_row = [&[0xfe, 0, 0, 0, 1, 0, 0, 0, 0][..], &[b'x'; PAYLOAD_BYTES_MAX]].concat();
    let results = ReplyShape::Results;
    for (shape, deprecates_eof, payloads, expected) in [
        (results, false, vec![OK, OK], (0, false)),
        (results, false, vec![OK_MORE, OK], (1, false)),
        (results, false, vec![OK_MORE, ERR, OK], (1, true)),
        (results, false, vec![&[2], COLUMN, COLUMN, EOF, ROW, ROW, EOF], (6, false)),
        (results, false, vec![&[1], COLUMN, EOF, EOF_MORE, OK], (4, false)),
        (results, false, vec![&[1], COLUMN, EOF, ROW, ERR], (4, true)),
        (results, false, vec![&[1], COLUMN, EOF_CURSOR, OK], (2, false)),
        (results, false, vec![&[1], COLUMN, EOF, &long_row, EOF], (4, false)),
        (results, true, vec![&[1], COLUMN, ROW, LAST], (3, false)),
        (results, true, vec![&[1], COLUMN, LAST, OK], (2, false)),
        (results, true, vec![&[1], COLUMN, &long_row, LAST], (3, false)),
        (ReplyShape::Rows, false, vec![ROW, EOF], (1, false)),
        (ReplyShape::Single, false, vec![b"Uptime: 1"], (0, false)),
        (ReplyShape::Authentication, false, vec![&[0xfe, b'x', 0], &[1, 3], OK], (2, false)),
        (ReplyShape::Prepared, false, vec![&[0, 1, 0, 0, 0, 0, 0, 0, 0]], (0, false)),
        (
            ReplyShape::Prepared,
            false,
            vec![&[0, 1, 0, 0, 0, 1, 0, 2, 0], COLUMN, COLUMN, EOF, COLUMN, EOF],
            (5, false),
        ),
        (ReplyShape::Prepared, true, vec![&[0, 1, 0, 0, 0, 1, 0, 2, 0], COLUMN, COLUMN, COLUMN], (3, false)),
        (ReplyShape::Prepared, true, vec![ERR], (0, true)),
    ] {
        assert_eq!(end(shape, deprecates_eof, &payloads), Some(expected), "{shape:?} {payloads:?}");
    }
    assert_eq!(ReplyReader::new(Command::Quit.reply(), false).map(|_| ()), None);
}

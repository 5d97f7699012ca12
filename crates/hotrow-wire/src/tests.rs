//! Tests that written frames are read unchanged, and that no bytes cause a panic.

use bytes::BytesMut;
use proptest::prelude::*;

use crate::SqlState;
use crate::backend::{self, Problem, Report};
use crate::frontend::{self, Bind, Execute, ObjectName, Parse, Value};
use crate::startup::{self, Packet};
use crate::{Error, split};

fn only_frame(buffer: &BytesMut) -> crate::Frame<'_> {
    let frame = split(buffer, |_| usize::MAX).unwrap().unwrap();
    assert_eq!(frame.bytes.len(), buffer.len());
    frame
}

#[test]
fn bound_values_can_be_bound_again_unchanged() {
    let mut first = BytesMut::new();
    let values = [
        Value { binary: true, bytes: Some(&[0, 0, 0, 7]) },
        Value { binary: false, bytes: None },
        Value { binary: false, bytes: Some(b"seven") },
    ];
    frontend::put_bind_values(&mut first, b"s", &values, &[]);
    let bind = Bind::read(&first[5..]).unwrap();
    assert_eq!((bind.portal, bind.statement, bind.count()), (&b""[..], &b"s"[..], 3));
    assert_eq!([0, 1, 2].map(|index| bind.value(index).unwrap()), values);
    assert!(bind.results().is_empty());
}

#[test]
fn an_incomplete_frame_needs_more_bytes() {
    let mut buffer = BytesMut::new();
    frontend::put_query(&mut buffer, "select 1");
    for end in 0..buffer.len() {
        assert!(split(&buffer[..end], |_| 100).unwrap().is_none());
    }
    assert_eq!(frontend::query(only_frame(&buffer).body()).unwrap(), b"select 1");
}

#[test]
fn a_length_of_two_gigabytes_is_rejected_before_the_bytes_arrive() {
    let result = split(&[b'Q', 0x7f, 0xff, 0xff, 0xff], |_| 1 << 20);
    assert_eq!(result.unwrap_err(), Error::Length { tag: 'Q', length: 0x7fff_ffff });
    assert!(split(&[b'S', 0, 0, 0, 3], |_| 100).is_err());
}

#[test]
fn only_client_messages_pass_the_tag_check() {
    for tag in 0..=255u8 {
        assert_eq!(frontend::check_tag(tag).is_ok(), b"QPBECDHSXFdcfp".contains(&tag), "{tag}");
    }
}

#[test]
fn each_value_of_a_bind_has_its_format() {
    let mut body = b"portal\0name\0".to_vec();
    body.extend([0, 2, 0, 0, 0, 1]); // two formats: text, binary
    body.extend([0, 2]);
    body.extend([0, 0, 0, 1, b'5']);
    body.extend([0xff, 0xff, 0xff, 0xff]);
    body.extend([0, 0]);
    let bind = Bind::read(&body).unwrap();
    assert_eq!((bind.portal, bind.statement, bind.count()), (&b"portal"[..], &b"name"[..], 2));
    assert_eq!(bind.value(0), Some(Value { binary: false, bytes: Some(b"5") }));
    assert_eq!(bind.value(1), Some(Value { binary: true, bytes: None }));
    assert_eq!(bind.value(2), None);
    let mut out = BytesMut::new();
    bind.put(b"", b"h1", &mut out);
    assert_eq!(Bind::read(only_frame(&out).body()).unwrap().rest, bind.rest);
}

#[test]
fn a_bind_with_wrong_lengths_is_malformed() {
    for body in [
        &b"\0\0\0\0\xff\xff"[..],                   // 65,535 values and no bytes
        &b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"[..], // a value of 2 GB
        &b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"[..], // a negative length that is not NULL
        &b"\0\0\0\0\0\0\0\0trailing"[..],
        &b"no zero"[..],
    ] {
        assert!(matches!(Bind::read(body), Err(Error::Malformed(_))), "{body:?}");
    }
}

#[test]
fn a_bind_with_other_formats_than_values_is_read_for_the_server_to_refuse() {
    let bind = |formats: u8, values: u8| {
        let mut body = vec![0, 0, 0, formats];
        body.extend(std::iter::repeat_n([0, 1], usize::from(formats)).flatten());
        body.extend([0, values]);
        body.extend(std::iter::repeat_n([0xff; 4], usize::from(values)).flatten());
        body.extend([0, 0]);
        body
    };
    for (formats, values, fits) in [(0, 3, true), (1, 3, true), (3, 3, true), (2, 3, false), (3, 2, false)] {
        let body = bind(formats, values);
        let bind = Bind::read(&body).unwrap();
        assert_eq!(bind.has_fitting_formats(), fits, "{formats} formats, {values} values");
        assert_eq!((bind.value(2).is_some(), bind.rest), (values == 3 && formats != 2, &body[2..]));
    }
}

#[test]
fn parse_and_its_types_survive_a_round_trip() {
    let parse = Parse { name: b"s", text: b"select $1", types: &[0, 0, 0, 23] };
    let mut out = BytesMut::new();
    parse.put(&mut out);
    let read = Parse::read(only_frame(&out).body()).unwrap();
    assert_eq!((read.name, read.text, read.types), (parse.name, parse.text, parse.types));
}

#[test]
fn describe_and_execute_survive_a_round_trip() {
    assert_eq!(ObjectName::read(b"Sx\0").unwrap(), ObjectName { statement: true, name: b"x" });
    assert!(ObjectName::read(b"Qx\0").is_err());
    assert_eq!(Execute::read(&frontend::EXECUTE[5..]).unwrap(), Execute { portal: b"", rows_max: 0 });
    let mut out = BytesMut::new();
    ObjectName { statement: false, name: b"" }.put(b'D', &mut out);
    assert_eq!(out, frontend::DESCRIBE_PORTAL);
}

#[test]
fn startup_packets() {
    let mut out = BytesMut::new();
    startup::put_start(&mut out, [("user", "ann"), ("database", "shop")].into_iter());
    let (packet, length) = startup::split(&out, 10_000).unwrap().unwrap();
    assert_eq!(length, out.len());
    let parameters = vec![("user".into(), "ann".into()), ("database".into(), "shop".into())];
    assert_eq!(packet, Packet::Start { minor: 0, parameters });
    assert_eq!(startup::split(&[0, 0, 0, 8, 4, 210, 22, 47], 100).unwrap(), Some((Packet::Ssl, 8)));
    assert_eq!(startup::split(&[0, 0, 0, 8, 4, 210, 22, 48], 100).unwrap(), Some((Packet::GssEnc, 8)));
    assert_eq!(
        startup::split(&[0, 0, 0, 8, 0, 2, 0, 0], 100).unwrap(),
        Some((Packet::Unsupported { major: 2, minor: 0 }, 8))
    );
    let mut twice = BytesMut::new();
    startup::put_start(&mut twice, [("user", "ann"), ("database", "shop"), ("user", "bob")].into_iter());
    let Some((Packet::Start { parameters, .. }, _)) = startup::split(&twice, 100).unwrap() else { panic!() };
    let expected = [("database", "shop"), ("user", "bob")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(parameters, expected, "the last value is used");
    let mut cases = BytesMut::new();
    let settings = [("Work_Mem", "2MB"), ("work_mem", "1MB"), ("user", "ann"), ("USER", "bob")];
    startup::put_start(&mut cases, settings.into_iter());
    let Some((Packet::Start { parameters, .. }, _)) = startup::split(&cases, 100).unwrap() else { panic!() };
    let expected = settings[1..].iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    assert_eq!(
        parameters,
        expected.collect::<Vec<_>>(),
        "names of settings are case-insensitive, names of the protocol are not"
    );
    assert!(startup::split(&[0, 0, 0, 7, 0, 3, 0], 100).is_err());
    assert!(startup::split(&[0x7f, 0, 0, 7, 0, 3, 0], 100).is_err());
    let mut cancel = BytesMut::new();
    startup::put_cancel(&mut cancel, 7, &[1, 2, 3, 4]);
    let (packet, _) = startup::split(&cancel, 100).unwrap().unwrap();
    assert_eq!(packet, Packet::Cancel { process_id: 7, secret: vec![1, 2, 3, 4] });
}

#[test]
fn a_problem_is_a_valid_error_response() {
    let mut out = BytesMut::new();
    Problem::fatal(SqlState::ProtocolViolation, "bad \0 frame", "send a good one").put(&mut out);
    let report = Report::read(only_frame(&out).body()).unwrap();
    assert_eq!(
        (report.severity, report.code, report.message),
        (&b"FATAL"[..], &b"08P01"[..], &b"bad   frame"[..])
    );
    assert!(!report.is_error());
}

proptest! {
    #[test]
    fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(frame)) = split(&bytes, |_| 1000) {
            prop_assert!(frame.bytes.len() <= bytes.len());
        }
        let _ = startup::split(&bytes, 1000);
        let _ = Parse::read(&bytes);
        let _ = ObjectName::read(&bytes);
        let _ = Execute::read(&bytes);
        let _ = Report::read(&bytes);
        let _ = backend::data_row(&bytes);
        let _ = backend::parameter_status(&bytes);
        if let Ok(bind) = Bind::read(&bytes) {
            for index in 0..=bind.count() {
                prop_assert_eq!(bind.value(index).is_some(), index < bind.count());
            }
        }
    }
}

//! Authentication messages for both sides: requests of a server and answers of a client.

use bytes::BytesMut;

use crate::backend::tag;
use crate::{Error, Reader, put_cstr, put_frame};

/// The tag of all answers of a client.
pub const RESPONSE: u8 = b'p';

/// A server's authentication message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The client is authenticated.
    Ok,
    /// Requests the password in cleartext.
    Cleartext,
    /// Requests the password hashed with this salt.
    Md5([u8; 4]),
    /// Offers these mechanisms. Each name, and the list, ends with a zero byte.
    Sasl(&'a [u8]),
    /// The mechanism's next message.
    SaslContinue(&'a [u8]),
    /// The mechanism's last message.
    SaslFinal(&'a [u8]),
    /// Another message.
    Other(u32),
}

impl<'a> Request<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let request = match reader.u32()? {
            0 => Request::Ok,
            3 => Request::Cleartext,
            5 => {
                let salt = reader.bytes(4)?.first_chunk();
                Request::Md5(*salt.ok_or(Error::Malformed("no salt"))?)
            }
            10 => return Ok(Request::Sasl(reader.rest())),
            11 => return Ok(Request::SaslContinue(reader.rest())),
            12 => return Ok(Request::SaslFinal(reader.rest())),
            other => return Ok(Request::Other(other)),
        };
        reader.end()?;
        Ok(request)
    }

    /// Appends the message.
    pub fn put(&self, out: &mut BytesMut) {
        let (code, body): (u32, &[u8]) = match self {
            Request::Ok => (0, &[]),
            Request::Cleartext => (3, &[]),
            Request::Md5(salt) => (5, salt),
            Request::Sasl(list) => (10, list),
            Request::SaslContinue(message) => (11, message),
            Request::SaslFinal(message) => (12, message),
            Request::Other(code) => (*code, &[]),
        };
        put_frame(out, tag::AUTHENTICATION, |out| {
            out.extend_from_slice(&code.to_be_bytes());
            out.extend_from_slice(body);
        });
    }
}

/// The names in a list of mechanisms.
pub fn mechanisms(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).take_while(|name| !name.is_empty())
}

pub fn mechanism_list(names: &[&str]) -> Vec<u8> {
    let mut list: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), &[0]].concat()).collect();
    list.push(0);
    list
}

/// Appends PasswordMessage.
pub fn put_password(out: &mut BytesMut, password: &[u8]) {
    put_frame(out, RESPONSE, |out| put_cstr(out, password));
}

/// Appends SASLInitialResponse.
pub fn put_initial_response(out: &mut BytesMut, mechanism: &str, message: &[u8]) {
    put_frame(out, RESPONSE, |out| {
        put_cstr(out, mechanism.as_bytes());
        out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(message);
    });
}

/// Appends SASLResponse.
pub fn put_response(out: &mut BytesMut, message: &[u8]) {
    put_frame(out, RESPONSE, |out| out.extend_from_slice(message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_a_round_trip() {
        let list = mechanism_list(&["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]);
        for request in [
            Request::Ok,
            Request::Cleartext,
            Request::Md5([1, 2, 3, 4]),
            Request::Sasl(&list),
            Request::SaslContinue(b"r=x"),
            Request::SaslFinal(b"v=x"),
            Request::Other(7),
        ] {
            let mut out = BytesMut::new();
            request.put(&mut out);
            let frame = crate::split(&out, |_| 100).unwrap().unwrap();
            assert_eq!((frame.tag, Request::read(frame.body())), (tag::AUTHENTICATION, Ok(request)));
        }
        assert_eq!(mechanisms(&list).last(), Some(&b"SCRAM-SHA-256"[..]));
        for body in [&b""[..], &[0, 0, 0], &[0, 0, 0, 5, 1, 2, 3], &[0, 0, 0, 0, 0]] {
            assert!(Request::read(body).is_err(), "{body:?}");
        }
    }
}

//! The input of a request: names and IDs in its path, its body, its idempotency key. Invalid input is rejected here, because
//! in a batch it would fail the calls of other clients, which would have to run again without it.

use std::marker::PhantomData;
use std::time::Duration;

use crate::limits;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hotrow_core::page;
use serde::de::{DeserializeOwned, DeserializeSeed, Error};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::clients::{Value, values};
use crate::problem::{Kind, Problem};

const KEY: &str = "idempotency-key";
const NAME_HINT: &str = "Write the name in the path with percent-encoding.";
const PATH_HINT: &str = "Write the path in UTF-8 with percent-encoding.";

fn bad(detail: impl Into<String>, hint: &str) -> Problem {
    Problem::new(Kind::BadRequest, detail, hint)
}

/// The name of a counter, an item or a buyer.
#[derive(Serialize)]
pub struct Name(pub String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name {
            name if name.is_empty() => Err("a name is empty".to_owned()),
            name if name.len() > limits::NAME_BYTES_MAX => Err(format!(
                "a name has {} bytes, at most {} are allowed",
                name.len(),
                limits::NAME_BYTES_MAX
            )),
            name if name.contains('\0') => Err("a name contains the character U+0000".to_owned()),
            name => Ok(Name(name)),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Name::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Name::try_from(segment(parts, state).await?).map_err(|detail| bad(detail, NAME_HINT))
    }
}

/// The values of a path's parameters, in their order.
pub async fn path(parts: &mut Parts, names: usize) -> Result<Vec<Value>, Problem> {
    if names == 0 {
        return Ok(Vec::new());
    }
    let path = Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
    let Path(values) = path.map_err(|error| bad(error.body_text(), PATH_HINT))?;
    check_segment(&values[0].1)?;
    let value = |(name, text): (String, String)| -> Result<Value, Problem> {
        Ok(match name.as_str() {
            "user" => Box::new(user(&text)?),
            "id" => Box::new(id(&text, "Use the reservation_id from the answer to the reservation.")?),
            "receipt" => Box::new(receipt(&text)?),
            _ => {
                let hint = if names == 1 { NAME_HINT } else { PATH_HINT };
                Box::new(Name::try_from(text).map_err(|detail| bad(detail, hint))?.0)
            }
        })
    };
    values.into_iter().map(value).collect()
}

fn user(text: &str) -> Result<i64, Problem> {
    text.parse().map_err(|_| bad(format!("{text:?} is not a user number"), "A user is a 64-bit integer."))
}

fn id(text: &str, hint: &str) -> Result<Uuid, Problem> {
    Uuid::try_parse(text).map_err(|_| bad(format!("{text:?} is not a UUID"), hint))
}

fn receipt(text: &str) -> Result<i64, Problem> {
    let receipt = text.parse().ok().filter(|receipt| *receipt >= 0);
    receipt
        .ok_or_else(|| bad(format!("{text:?} is not a receipt"), "Use the receipt that came with the order."))
}

/// A number of pieces of an item: at least 1.
pub struct Quantity(pub i64);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            quantity @ 1.. => Ok(Quantity(quantity)),
            quantity => Err(D::Error::custom(format!("a quantity is at least 1, not {quantity}"))),
        }
    }
}

/// A text of any length that PostgreSQL can store.
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)? {
            text if text.contains('\0') => Err(D::Error::custom("a text contains the character U+0000")),
            text => Ok(Text(text)),
        }
    }
}

/// The page of a list: the name before it, and its length.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    after: Option<Text>,
    max: Option<i32>,
}

impl Page {
    /// The parameters of the call that lists.
    pub fn values(self) -> Vec<Value> {
        values![self.after.map_or_else(String::new, |Text(after)| after), self.max.unwrap_or(100)]
    }
}

/// A whole number within bounds.
#[derive(Serialize)]
pub struct Within<const MIN: i32, const MAX: i32>(pub i32);

impl<'de, const MIN: i32, const MAX: i32> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i32::deserialize(deserializer)? {
            number if (MIN..=MAX).contains(&number) => Ok(Within(number)),
            number => Err(D::Error::custom(format!("{number} is not between {MIN} and {MAX}"))),
        }
    }
}

/// The number of a user.
pub struct User(pub i64);

impl<S: Send + Sync> FromRequestParts<S> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        user(&segment(parts, state).await?).map(User)
    }
}

/// The name of a queue, and a receipt from a take of it.
pub struct Receipt {
    pub queue: String,
    pub receipt: i64,
}

impl<S: Send + Sync> FromRequestParts<S> for Receipt {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (Name(queue), text) = named(parts, state).await?;
        Ok(Receipt { queue, receipt: receipt(&text)? })
    }
}

/// The name of a queue, and the ID of an order in it.
pub struct OrderId {
    pub queue: String,
    pub order_id: Uuid,
}

impl<S: Send + Sync> FromRequestParts<S> for OrderId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (Name(queue), text) = named(parts, state).await?;
        let order_id = id(&text, "Use the order_id that the order was enqueued with.")?;
        Ok(OrderId { queue, order_id })
    }
}

/// The query parameters, after the path's question mark.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let hint = "See /openapi.json for the parameters of this request.";
        query.map(|query| Query(query.0)).map_err(|error| bad(error.body_text(), hint))
    }
}

/// The two parameters of a path. The first is a name.
async fn named<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<(Name, String), Problem> {
    let path = Path::<(String, String)>::from_request_parts(parts, state).await;
    let Path((name, rest)) = path.map_err(|error| bad(error.body_text(), PATH_HINT))?;
    check_segment(&name)?;
    Ok((Name::try_from(name).map_err(|detail| bad(detail, PATH_HINT))?, rest))
}

async fn segment<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    let Path(text) = path.map_err(|error| bad(error.body_text(), PATH_HINT))?;
    check_segment(&text)?;
    Ok(text)
}

/// Rejects the names `.` and `..`. Browsers and most HTTP clients take such a segment out of a path, also with
/// percent-encoding, and would send the request to another path. A client that does send it is told so.
fn check_segment(name: &str) -> Result<(), Problem> {
    if !matches!(name, "." | "..") {
        return Ok(());
    }
    let hint = "Choose another name. What has this name already is reached by the functions of the hotrow schema in SQL.";
    Err(bad(format!("{name:?} cannot be a name in a path, because HTTP clients remove it"), hint))
}

/// Rejects an Idempotency-Key if a repeated request would be executed again, because a client that sends a key relies on it. A
/// GET changes nothing, so its key is accepted.
pub async fn refuse_key(request: Request, next: Next) -> Result<Response, Problem> {
    if request.headers().contains_key(KEY) && !request.method().is_safe() {
        let detail =
            format!("{} {} does not accept an Idempotency-Key", request.method(), request.uri().path());
        let hint = concat!(
            "Leave the header out. ",
            page!("http.md"),
            " lists the requests that accept it, and the effect of repeating the others."
        );
        return Err(bad(detail, hint));
    }
    Ok(next.run(request).await)
}

/// The key that identifies a repeated request.
pub fn key(headers: &HeaderMap) -> Result<Option<Uuid>, Problem> {
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let hint = "Send one header of the form Idempotency-Key: 0193e1a0-7b1c-7e2a-9d3f-5c4b6a798081";
    if values.next().is_some() {
        return Err(bad("the request has more than one Idempotency-Key", hint));
    }
    let text = value.to_str().unwrap_or_default();
    // The draft standard writes the key as a quoted string. Most clients do not.
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    Uuid::try_parse(bare).map(Some).map_err(|_| bad("the Idempotency-Key is not a UUID", hint))
}

/// A body of JSON. An empty body is an object without fields.
pub struct Input<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        parse(&body(request).await?, PhantomData).map(Input)
    }
}

/// A body of JSON, or an empty one.
pub async fn body(request: Request) -> Result<Bytes, Problem> {
    let is_json = is_json(request.headers());
    let limit = Duration::from_millis(limits::HTTP_REQUEST_TIMEOUT_MS);
    let body = match tokio::time::timeout(limit, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return Err(unreadable(error.into_response().status())),
        Err(_) => {
            let detail = format!("the body did not arrive within {limit:?}");
            return Err(Problem::new(Kind::RequestTimeout, detail, "Send the whole body without a pause."));
        }
    };
    if !body.is_empty() && !is_json {
        let hint = "Send the header Content-Type: application/json";
        return Err(Problem::new(Kind::NotJson, "the body's Content-Type is not JSON", hint));
    }
    Ok(body)
}

/// A body, and the Idempotency-Key if the request has one.
pub struct Keyed<T>(pub Option<Uuid>, pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Keyed<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let key = key(request.headers())?;
        let Input(input) = Input::from_request(request, state).await?;
        Ok(Keyed(key, input))
    }
}

fn unreadable(status: StatusCode) -> Problem {
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let (one, many) = (limits::HTTP_BODY_BYTES_MAX, limits::HTTP_BATCH_BYTES_MAX);
        let detail = format!("a body can have {one} bytes, and a body with many orders {many}");
        Problem::new(Kind::BodyTooLarge, detail, "Split it into several requests.")
    } else {
        bad("the body is incomplete", "Send as many bytes as the headers announce.")
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

/// The values of a body. An empty body is an object without fields.
pub fn parse<'de, T: DeserializeSeed<'de>>(body: &'de [u8], seed: T) -> Result<T::Value, Problem> {
    let body = if body.is_empty() { b"{}" } else { body };
    let hint = "See /openapi.json for the fields of this request.";
    // The deserializer of structs also accepts arrays, as objects without names.
    if body.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') {
        return Err(bad("the body is not a JSON object", hint));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| bad(format!("the body: {error}"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        amount: Option<i64>,
    }

    fn sample(body: &[u8]) -> Result<Sample, Problem> {
        parse(body, PhantomData)
    }

    #[test]
    fn integers_are_exact() {
        for amount in [i64::MIN, i64::MAX, (1 << 53) + 1] {
            let body = format!("{{\"amount\": {amount}}}");
            assert_eq!(sample(body.as_bytes()).unwrap().amount, Some(amount));
        }
        for amount in ["9223372036854775808", "1.5", "\"1\"", "1e3"] {
            assert!(sample(format!("{{\"amount\": {amount}}}").as_bytes()).is_err(), "{amount}");
        }
    }

    #[test]
    fn only_an_object_with_known_fields_is_accepted() {
        assert_eq!(sample(b"").unwrap().amount, None);
        assert_eq!(sample(b" {\"amount\": null}").unwrap().amount, None);
        for body in
            ["[1]", "1", "null", "\"x\"", "{\"amounts\": 1}", "{\"amount\": 1, \"amount\": 2}", "{} {}"]
        {
            assert!(sample(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn keys_are_uuids_quoted_or_not() {
        let id = Uuid::from_u128(7).to_string();
        let quoted = format!("\"{id}\"");
        let read = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(KEY, text.parse().unwrap());
            }
            key(&headers).map_err(|_| ())
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[&id]), Ok(Some(Uuid::from_u128(7))));
        assert_eq!(read(&[&quoted]), Ok(Some(Uuid::from_u128(7))));
        for texts in [&[""][..], &["7"], &[&id, &id]] {
            assert_eq!(read(texts), Err(()), "{texts:?}");
        }
    }

    #[test]
    fn media_types() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, text.parse().unwrap());
            is_json(&headers)
        };
        assert!(read("application/json") && read("Application/JSON; charset=utf-8"));
        assert!(read("application/x+json"));
        assert!(!read("text/plain") && !read("application/x-www-form-urlencoded") && !read(""));
    }
}

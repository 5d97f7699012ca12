//! The paths for webhooks of payment gateways and for notifications to dependent services.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::HeaderMap;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::input::{self, Body};
use super::{Problem, Service};
use crate::flow::Webhook;
use crate::gateway::News;
use crate::ids::webhook_of;
use crate::notifications::{Resent, State};
use crate::signature;

const SET_ENDPOINT: &str = include_str!("../../sql/set_endpoint.sql");

/// The status of a request that succeeds.
type Answer = Result<&'static str, Problem>;

/// The longest URL or secret.
const TEXT_BYTES_MAX: usize = 500;

/// `POST /v1/webhooks/{gateway}`: verified, kept as it came, answered, and only then worked on.
pub async fn receive(api: Service, Path(gateway): Path<String>, headers: HeaderMap, body: Body) -> Answer {
    let known = api.payments.gateway(&gateway).ok_or(Problem::NOT_FOUND)?;
    let body = input::whole(body)?;
    let signature = headers.get(signature::HEADER).and_then(|value| value.to_str().ok());
    let verified = known.verify(signature.unwrap_or_default(), &body, Timestamp::now());
    if let Err(distrust) = verified {
        tracing::warn!(gateway, %distrust, "a webhook is refused");
        return Err(Problem::DISTRUSTED);
    }
    // A webhook of an unknown kind is kept too. The gateway would otherwise send it forever.
    let event = match serde_json::from_slice::<News>(&body) {
        Ok(news) if input::name("event", &news.event).is_ok() => news.event,
        _ => webhook_of(&body).to_string(),
    };
    let webhook = Webhook { gateway, event, body: body.to_vec() };
    if !api.payments.keep(&webhook).await? {
        return Ok("known\n");
    }
    // If too many requests are under way, the webhook is left to the workers.
    if let Ok(permit) = api.room.clone().try_acquire_owned() {
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = api.payments.heed(&webhook).await {
                tracing::warn!(%error, event = webhook.event, "a webhook is left to the workers");
            }
        });
    }
    Ok("kept\n")
}

/// A dependent service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    url: String,
    secret: String,
    #[serde(default = "input::yes")]
    active: bool,
}

/// `PUT /v1/endpoints/{name}`
pub async fn set_endpoint(api: Service, Path(name): Path<String>, body: Body) -> Answer {
    input::name("name", &name)?;
    let Endpoint { url, secret, active } = input::json(&input::whole(body)?)?;
    let plain = |text: &str| text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control);
    if !url.starts_with("http://") || url.parse::<axum::http::Uri>().is_err() || !plain(&url) {
        return Err(Problem::invalid("url: an address like http://shop.example/payments is needed"));
    }
    if secret.len() < 16 || !plain(&secret) {
        return Err(Problem::invalid("secret: 16 to 500 characters are needed"));
    }
    api.payments.database.execute(SET_ENDPOINT, &[&name, &url, &secret, &active]).await?;
    Ok("set\n")
}

/// `POST /v1/notifications/{event}/{endpoint}/resend`
pub async fn resend(api: Service, Path((event, endpoint)): Path<(String, String)>) -> Answer {
    let event = input::id(&event)?;
    input::name("endpoint", &endpoint)?;
    match api.payments.notifications.resend(event, &endpoint).await? {
        None => Err(Problem::NOT_FOUND),
        Some(Resent::Delivered) => Err(Problem::DELIVERED),
        Some(Resent::Waits) => Err(Problem::PENDING),
        Some(Resent::Due) => Ok("due\n"),
    }
}

/// The query for notifications.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    endpoint: String,
    state: State,
}

/// `GET /v1/notifications?endpoint=…&state=dead`
pub async fn notifications(
    api: Service,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<axum::Json<serde_json::Value>, Problem> {
    let Query(Which { endpoint, state }) =
        which.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
    input::name("endpoint", &endpoint)?;
    let listed = api.payments.notifications.list(&endpoint, state).await?;
    Ok(axum::Json(json!({ "notifications": listed })))
}

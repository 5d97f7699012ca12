//! The paths of payments: create, move, read and list.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::input::{self, Body, NewPayment, Nothing, Part};
use super::{Api, Problem, problem};
use crate::flow::{Done, Stop};
use crate::machine::{AttemptState, Command, State as At};
use crate::records::{Attempt, Intent, get};
use crate::requests::{self, Claim, Claimed, fingerprint};

const INTENTS: &str = include_str!("../../sql/intents.sql");
const ATTEMPTS: &str = include_str!("../../sql/attempts.sql");
const DAY: &str = include_str!("../../sql/day.sql");

/// The longest page, and the length of a page if the request does not say it.
const PAGE_MAX: i64 = 100;
const PAGE: i64 = 20;
/// A payment has few attempts; one with more has them in the database.
const ATTEMPTS_SHOWN: i64 = 100;

type Answer = Result<Response, Problem>;

/// JSON that no cache may keep.
fn answer(status: StatusCode, body: String) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}

/// The status for the result of a command.
fn status(done: &Done, created: bool) -> StatusCode {
    match done.attempt.as_ref().map(|attempt| attempt.state) {
        Some(AttemptState::Started | AttemptState::Unknown) => StatusCode::ACCEPTED,
        Some(AttemptState::Declined) => StatusCode::PAYMENT_REQUIRED,
        Some(AttemptState::NotExecuted) => StatusCode::SERVICE_UNAVAILABLE,
        Some(AttemptState::Succeeded) | None if created => StatusCode::CREATED,
        Some(AttemptState::Succeeded) | None => StatusCode::OK,
    }
}

fn payment(done: &Done) -> Value {
    let mut value = json!(done.intent);
    value["last_attempt"] = json!(done.attempt);
    value
}

/// A request that changes something.
enum Wish {
    Create(Box<NewPayment>),
    Command(Uuid, Command),
}

impl Api {
    /// Carries a request out once, even if its client disconnects.
    async fn once(self, key: String, fingerprint: Vec<u8>, wish: Wish) -> Answer {
        let permit = self.room.clone().try_acquire_owned().map_err(|_| Problem::BUSY)?;
        let work = tokio::spawn(async move {
            let _permit = permit;
            let database = &self.payments.database;
            let about = match &wish {
                Wish::Create(_) => None,
                Wish::Command(id, _) => Some(*id),
            };
            let claim = match requests::claim(database, &key, &fingerprint, about, self.key_lease).await? {
                Claimed::Ours(claim) => claim,
                Claimed::Answered(status, body) => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                    return Ok(match status {
                        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                            problem::answer(status, body)
                        }
                        _ => answer(status, body),
                    });
                }
                Claimed::Different => return Err(Problem::KEY_REUSED),
                Claimed::Running => return Err(Problem::KEY_RUNNING),
            };
            self.carry_out(&claim, wish).await
        });
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request has panicked");
            Err(Problem::BUSY)
        })
    }

    async fn carry_out(&self, claim: &Claim, wish: Wish) -> Answer {
        let created = matches!(wish, Wish::Create(_));
        let done = match wish {
            Wish::Create(new) => {
                let confirm = new.confirm;
                self.payments.create(intent(claim.intent, *new), confirm, claim.attempt, claim.again).await
            }
            Wish::Command(id, command) => {
                self.payments.command(id, command, claim.attempt, claim.again).await
            }
        };
        let done = done.and_then(|done| match status(&done, created) {
            StatusCode::SERVICE_UNAVAILABLE => Err(Stop::NoGateway),
            _ => Ok(done),
        });
        match done {
            Ok(done) => {
                let (status, body) = (status(&done, created), payment(&done).to_string());
                if status == StatusCode::ACCEPTED {
                    // A repetition may get more.
                    claim.release(&self.payments.database).await?;
                } else if !claim.answer(&self.payments.database, status.as_u16(), &body).await? {
                    // This took too long: another program has taken over and has written the answer that counts.
                    return Err(Problem::KEY_RUNNING);
                }
                Ok(answer(status, body))
            }
            // A first run that is refused has done nothing. A later run may be refused because of what an earlier one, slow
            // but not dead, does meanwhile. Then the answer of the earlier run counts.
            Err(stop) if stop.is_for_good() && !claim.again => {
                let problem = Problem::from(stop);
                let status = problem.status().as_u16();
                if !claim.refuse(&self.payments.database, status, &problem.body()).await? {
                    return Err(Problem::KEY_RUNNING);
                }
                Err(problem)
            }
            Err(stop) => {
                // If this fails too, the key is free after its lease has expired.
                if let Err(error) = claim.release(&self.payments.database).await {
                    tracing::warn!(%error, "a key was not released");
                }
                Err(stop.into())
            }
        }
    }
}

fn intent(id: Uuid, new: NewPayment) -> Intent {
    Intent {
        id,
        merchant: new.merchant,
        customer: new.customer,
        mode: new.mode,
        amount: new.amount,
        currency: new.currency,
        capture_at_once: new.capture_at_once,
        state: At::Created,
        version: 1,
        attempt: None,
        authorization: None,
        gateway: None,
        captured: 0,
        refunded: 0,
        created_at: None,
        updated_at: None,
    }
}

/// `POST /v1/payments`
pub async fn create(State(api): State<Api>, headers: HeaderMap, body: Body) -> Answer {
    let key = input::key(&headers)?.to_owned();
    let body = input::whole(body)?;
    let new: NewPayment = input::json(&body)?;
    new.check()?;
    api.once(key, fingerprint("POST", "/v1/payments", &body), Wish::Create(Box::new(new))).await
}

/// `POST /v1/payments/{id}/confirm`
pub async fn confirm(api: State<Api>, id: Path<String>, headers: HeaderMap, body: Body) -> Answer {
    command(api, id, headers, body, "confirm", |_: Nothing| Ok(Command::Confirm)).await
}

/// `POST /v1/payments/{id}/capture`
pub async fn capture(api: State<Api>, id: Path<String>, headers: HeaderMap, body: Body) -> Answer {
    let wanted = |part: Part| part.check().map(|()| Command::Capture(part.amount));
    command(api, id, headers, body, "capture", wanted).await
}

/// `POST /v1/payments/{id}/cancel`
pub async fn cancel(api: State<Api>, id: Path<String>, headers: HeaderMap, body: Body) -> Answer {
    command(api, id, headers, body, "cancel", |_: Nothing| Ok(Command::Cancel)).await
}

/// `POST /v1/payments/{id}/refund`
pub async fn refund(api: State<Api>, id: Path<String>, headers: HeaderMap, body: Body) -> Answer {
    let wanted = |part: Part| part.check().map(|()| Command::Refund(part.amount));
    command(api, id, headers, body, "refund", wanted).await
}

async fn command<T: serde::de::DeserializeOwned>(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
    name: &str,
    wanted: impl FnOnce(T) -> Result<Command, Problem>,
) -> Answer {
    let id = input::id(&id)?;
    let key = input::key(&headers)?.to_owned();
    let body = input::whole(body)?;
    let command = wanted(input::json(&body)?)?;
    let fingerprint = fingerprint("POST", &format!("/v1/payments/{id}/{name}"), &body);
    api.once(key, fingerprint, Wish::Command(id, command)).await
}

/// `GET /v1/payments/{id}`
pub async fn read(State(api): State<Api>, Path(id): Path<String>) -> Answer {
    let id = input::id(&id)?;
    let intent = api.payments.intent(id).await?;
    let rows = api.payments.database.rows(ATTEMPTS, &[&id, &ATTEMPTS_SHOWN]).await?;
    let attempts = rows.iter().map(Attempt::try_from).collect::<Result<Vec<_>, _>>()?;
    let mut value = json!(intent);
    value["attempts"] = json!(attempts);
    Ok(answer(StatusCode::OK, value.to_string()))
}

/// Which payments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    merchant: String,
    before: Option<Uuid>,
    limit: Option<i64>,
}

/// `GET /v1/payments?merchant=…`
pub async fn list(State(api): State<Api>, page: Result<Query<Page>, QueryRejection>) -> Answer {
    let Query(page) = page.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
    input::name("merchant", &page.merchant)?;
    let limit = page.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("limit: {limit} is not from 1 to {PAGE_MAX}")));
    }
    let before = page.before.unwrap_or(Uuid::max());
    let rows = api.payments.database.rows(INTENTS, &[&page.merchant, &before, &limit]).await?;
    let intents = rows.iter().map(Intent::try_from).collect::<Result<Vec<_>, _>>()?;
    let next = (intents.len() as i64 == limit).then(|| intents.last().map(|intent| intent.id)).flatten();
    Ok(answer(StatusCode::OK, json!({ "payments": intents, "before": next }).to_string()))
}

/// `GET /v1/merchants/{merchant}/days/{day}`
pub async fn day(State(api): State<Api>, Path((merchant, day)): Path<(String, String)>) -> Answer {
    input::name("merchant", &merchant)?;
    let day = input::day(&day)?;
    let rows = api.payments.database.rows(DAY, &[&merchant, &day]).await?;
    let mut totals = Vec::new();
    for row in &rows {
        let number = |column| get::<i64>(row, column);
        totals.push(json!({
            "currency": get::<&str>(row, "currency")?,
            "attempts": number("attempts")?,
            "declined": number("declined")?,
            "authorized": number("authorized")?,
            "captured": number("captured")?,
            "refunded": number("refunded")?,
        }));
    }
    Ok(answer(StatusCode::OK, json!({ "merchant": merchant, "day": day, "totals": totals }).to_string()))
}

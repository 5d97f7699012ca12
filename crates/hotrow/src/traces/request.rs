//! The request for a collector, in the JSON encoding of OTLP, and what its answer says. No I/O, no clock, no random numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotrow_core::traceparent::SpanContext;
use hotrow_gateway::traces::{BatchOutcome, BatchSpan};
use serde_json::{Value, json};

/// Random bytes of one span: its trace's ID, and its own.
pub const ID_BYTES: usize = 24;

/// The kind CLIENT of a span.
const CLIENT: u64 = 3;
/// The status ERROR of a span.
const ERROR: u64 = 2;

/// The body with these spans. Each is the root of a trace of its own, with the ID that belongs to it.
pub fn body(spans: &[BatchSpan], ids: &[[u8; ID_BYTES]]) -> Vec<u8> {
    let spans: Vec<Value> = spans.iter().zip(ids).map(|(span, ids)| of_batch(span, ids)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let request = json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "hotrow"), text("service.version", version)]},
        "scopeSpans": [{"scope": {"name": "hotrow", "version": version}, "spans": spans}],
    }]});
    request.to_string().into_bytes()
}

fn of_batch(span: &BatchSpan, ids: &[u8; ID_BYTES]) -> Value {
    let (trace_id, span_id) = ids.split_at(16);
    let lane = &span.lane;
    let outcome = match span.outcome {
        BatchOutcome::Committed => "committed",
        BatchOutcome::RolledBack => "rolled back",
        BatchOutcome::Unknown => "unknown",
    };
    let mut attributes = vec![
        text("db.system.name", "postgresql"),
        text("hotrow.pool", &lane.pool),
        text("hotrow.lane.kind", lane.kind),
        number("hotrow.lane.index", lane.index as i64),
        number("hotrow.batch.units", span.units as i64),
        number("hotrow.batch.statements", span.statements as i64),
        text("hotrow.batch.outcome", outcome),
    ];
    attributes.extend(lane.node.map(|node| number("hotrow.node", node.into())));
    attributes.extend(lane.replica.as_ref().map(|replica| text("hotrow.replica", replica)));
    let status = if span.outcome == BatchOutcome::Unknown { json!({"code": ERROR}) } else { json!({}) };
    json!({
        "traceId": hex(trace_id),
        "spanId": hex(span_id),
        "name": "hotrow batch",
        "kind": CLIENT,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(span.began + span.took),
        "attributes": attributes,
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "droppedLinksCount": span.dropped_links,
        "status": status,
    })
}

fn link(to: &SpanContext) -> Value {
    json!({"traceId": hex(&to.trace_id), "spanId": hex(&to.span_id)})
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Integers of 64 bits are strings in this encoding.
fn number(key: &str, value: i64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How many spans the collector has rejected in its answer to a request that it accepted, and why.
pub fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = &answer["partialSuccess"];
    let count = &partial["rejectedSpans"];
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)?;
    Some((count, partial["errorMessage"].as_str().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotrow_gateway::traces::TracedLane;

    use super::*;

    fn span(outcome: BatchOutcome) -> BatchSpan {
        BatchSpan {
            lane: Arc::new(TracedLane {
                pool: "ann@shop".to_owned(),
                kind: "write",
                index: 3,
                node: None,
                replica: None,
            }),
            began: UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789),
            took: Duration::from_nanos(11),
            units: 2,
            statements: 5,
            outcome,
            links: vec![SpanContext { trace_id: [0x0a; 16], span_id: [0xb0; 8] }],
            dropped_links: 7,
        }
    }

    fn sent(spans: &[BatchSpan]) -> Value {
        let ids = vec![[0x1f; ID_BYTES]; spans.len()];
        serde_json::from_slice(&body(spans, &ids)).unwrap()
    }

    #[test]
    fn a_batch_is_a_root_span_with_links_in_the_json_encoding_of_otlp() {
        let sent = sent(&[span(BatchOutcome::Committed)]);
        let resource = &sent["resourceSpans"][0];
        assert_eq!(
            resource["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "hotrow"}})
        );
        assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "hotrow");
        let expected = json!({
            "traceId": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
            "spanId": "1f1f1f1f1f1f1f1f",
            "name": "hotrow batch",
            "kind": 3,
            "startTimeUnixNano": "1700000000123456789",
            "endTimeUnixNano": "1700000000123456800",
            "attributes": [
                {"key": "db.system.name", "value": {"stringValue": "postgresql"}},
                {"key": "hotrow.pool", "value": {"stringValue": "ann@shop"}},
                {"key": "hotrow.lane.kind", "value": {"stringValue": "write"}},
                {"key": "hotrow.lane.index", "value": {"intValue": "3"}},
                {"key": "hotrow.batch.units", "value": {"intValue": "2"}},
                {"key": "hotrow.batch.statements", "value": {"intValue": "5"}},
                {"key": "hotrow.batch.outcome", "value": {"stringValue": "committed"}},
            ],
            "links": [{"traceId": "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", "spanId": "b0b0b0b0b0b0b0b0"}],
            "droppedLinksCount": 7,
            "status": {},
        });
        assert_eq!(resource["scopeSpans"][0]["spans"], json!([expected]));
    }

    #[test]
    fn only_an_unknown_outcome_is_an_error() {
        let spans = [BatchOutcome::Committed, BatchOutcome::RolledBack, BatchOutcome::Unknown].map(span);
        let sent = sent(&spans);
        let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let status: Vec<&Value> = spans.iter().map(|span| &span["status"]["code"]).collect();
        assert_eq!(status, [&Value::Null, &Value::Null, &json!(2)]);
    }

    #[test]
    fn rejected_spans_are_read_from_the_answer() {
        let of = |answer: &str| rejected(answer.as_bytes());
        assert_eq!(
            of(r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"full"}}"#),
            Some((3, "full".into()))
        );
        assert_eq!(of(r#"{"partialSuccess":{"rejectedSpans":3}}"#), Some((3, String::new())));
        for answer in
            ["", "{}", "ok", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":{"rejectedSpans":"0"}}"#]
        {
            assert_eq!(of(answer), None, "{answer}");
        }
    }
}
